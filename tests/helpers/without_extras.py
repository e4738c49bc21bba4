"""A small fit, a picture and a page, as if no extra was installed: python tests/helpers/without_extras.py"""

import sys
import tempfile
from importlib.machinery import PathFinder
from pathlib import Path

EXTRAS = {
    "bpy",
    "cebra",
    "dask",
    "distributed",
    "h5py",
    "mkdocs",
    "pandas",
    "polars",
    "pyarrow",
    "pytest",
    "ray",
    "tensorboard",
    "xarray",
    "zarr",
}


class Others(PathFinder):
    """Finds all modules but those of the extras."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        found = name.partition(".")[0] not in EXTRAS
        return super().find_spec(name, path, target) if found else None


def main():
    sys.meta_path[:] = [Others if finder is PathFinder else finder for finder in sys.meta_path]

    import numpy as np

    from identica.cli import main as identica

    with tempfile.TemporaryDirectory() as folder:
        walk = np.random.default_rng(0).normal(size=(200, 3)).cumsum(axis=0)
        data, out = Path(folder) / "walk.npy", Path(folder) / "out"
        np.save(data, walk)
        options = ["--components", "2", "--steps", "3", "--plot", "--quiet"]
        assert identica(["fit", str(data), "--out", str(out), *options]) == 0
        for name in ("codes.npy", "codes.png", "diagnosis.html"):
            assert (out / name).stat().st_size > 0


if __name__ == "__main__":
    main()
