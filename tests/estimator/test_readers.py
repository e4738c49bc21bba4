"""Files that need a library of their own: with the library where it is installed, else with a stand-in that
has the same interface."""

import json
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from identica import InputError
from identica.estimator.files import fingerprint, read

X = np.random.default_rng(0).normal(size=(6, 2))
DAYS = np.array(["mo"] * 3 + ["tu"] * 3)


@pytest.mark.parametrize(
    ("file", "library"),
    [("x.parquet", "pyarrow"), ("x.h5", "h5py"), ("x.hdf5", "h5py"), ("x.zarr", "zarr")],
)
def test_a_library_that_is_missing_is_named(tmp_path, monkeypatch, file, library):
    for name in (library, "pyarrow.parquet"):
        monkeypatch.setitem(sys.modules, name, None)
    if library == "zarr":
        (tmp_path / file).mkdir()
    else:
        (tmp_path / file).write_bytes(b"PAR1")
    said = rf"files need {library}, which is not installed: pip install identica\[files\]"
    with pytest.raises(InputError, match=said):
        read(tmp_path / file)


# --- stand-ins --------------------------------------------------------------------------------------


class Arrays(dict):
    """A file of HDF5, or a group of zarr: arrays by name."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def visititems(self, visit):
        visit("group", SimpleNamespace())
        for name, item in self.items():
            visit(name, item)

    def members(self, max_depth):
        assert max_depth is None
        return (("group", SimpleNamespace()), *self.items())


class Texts(np.ndarray):
    """Text in HDF5, which is bytes unless it is asked for as text."""

    def asstr(self):
        return np.asarray(self)


def module(name, **content):
    made = ModuleType(name)
    vars(made).update(content)
    return made


def with_hdf5(monkeypatch, **arrays):
    def opened(path, mode):
        assert mode == "r"
        return Arrays(arrays)

    def check_string_dtype(dtype):
        return dtype if dtype.kind in "OU" else None

    fake = module("h5py", File=opened, check_string_dtype=check_string_dtype)
    monkeypatch.setitem(sys.modules, "h5py", fake)


def test_hdf5(tmp_path, monkeypatch):
    with_hdf5(monkeypatch, **{"deep/x": X, "day": DAYS.view(Texts)})
    (tmp_path / "x.h5").write_bytes(b"stand-in")
    found = read(tmp_path / "x.h5", array="deep/x", groups="day")
    assert np.array_equal(found.x, X)
    assert found.groups.tolist() == DAYS.tolist()
    with pytest.raises(InputError, match=r"array must be given, as .*x\.h5 holds deep/x, day"):
        read(tmp_path / "x.h5")
    with pytest.raises(InputError, match="DATA must hold real numbers"):
        read(tmp_path / "x.h5", array="day")


def test_arrays_cannot_claim_more_than_their_file_stands_for(tmp_path, monkeypatch):
    claimed = SimpleNamespace(dtype=np.dtype(float), nbytes=1 << 40, shape=(1 << 37, 1))
    with_hdf5(monkeypatch, x=claimed)
    (tmp_path / "x.h5").write_bytes(b"stand-in")
    with pytest.raises(InputError, match="x claims 1099511627776 bytes"):
        read(tmp_path / "x.h5")


def store(path, **metadata):
    (path / "x").mkdir(parents=True)
    (path / "x" / ".zarray").write_text(json.dumps({"shape": [6, 2], **metadata}))
    return path


def test_zarr(tmp_path, monkeypatch):
    made = {}
    monkeypatch.setitem(sys.modules, "zarr", module("zarr", open=lambda path, mode: made["x"]))
    path = store(tmp_path / "x.zarr")
    made["x"] = Arrays(x=X, day=np.arange(6) // 3)
    found = read(path, groups="day")
    assert np.array_equal(found.x, X)
    assert found.groups.tolist() == [0, 0, 0, 1, 1, 1]
    made["x"] = X
    assert np.array_equal(read(path).x, X)
    with pytest.raises(InputError, match=r"DATA: .*none\.zarr does not exist"):
        read(tmp_path / "none.zarr")
    (tmp_path / "file.zarr").write_text("")
    with pytest.raises(InputError, match="must be a folder"):
        read(tmp_path / "file.zarr")


@pytest.mark.parametrize("word", ["pickle", "numcodecs.pickle", "\\u0070ickle"])
def test_nothing_in_a_store_is_unpickled(tmp_path, monkeypatch, word):
    monkeypatch.setitem(sys.modules, "zarr", module("zarr", open=None))
    path = store(tmp_path / "x.zarr")
    (path / "x" / ".zarray").write_text(f'{{"filters": [{{"id": "{word}"}}]}}')
    with pytest.raises(InputError, match="never unpickled"):
        read(path)


def test_the_fingerprint_of_a_folder_is_that_of_its_files(tmp_path):
    one, other = store(tmp_path / "one.zarr"), store(tmp_path / "other.zarr")
    assert fingerprint(one) == fingerprint(other)
    (other / "x" / "0.0").write_bytes(b"")
    assert fingerprint(one)["sha256"] != fingerprint(other)["sha256"]
    assert fingerprint(one)["bytes"] == fingerprint(other)["bytes"]


class Column:
    def __init__(self, values):
        self.values = values

    def to_numpy(self):
        return self.values


def with_parquet(monkeypatch, frame, **about):
    metadata = {b"pandas": json.dumps(about).encode()} if about else None
    table = SimpleNamespace(
        schema=SimpleNamespace(metadata=metadata),
        column_names=list(frame.columns),
        column=lambda name: Column(frame[name].to_numpy()),
    )
    fake = module("pyarrow.parquet", read_table=lambda path: table)
    monkeypatch.setitem(sys.modules, "pyarrow", module("pyarrow", parquet=fake))
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", fake)


def test_parquet(tmp_path, monkeypatch):
    dates = pd.to_datetime(["2020-01-01", "2020-01-02", "2020-01-09", "2020-01-10"])
    frame = pd.DataFrame({"a": [1, 2, 3, 4], "when": dates, "kind": ["x", "x", "y", "y"]})
    (tmp_path / "x.parquet").write_bytes(b"PAR1")
    with_parquet(monkeypatch, frame)
    with pytest.raises(InputError, match=r"column 'when' of .* row 0 .* has the date or duration"):
        read(tmp_path / "x.parquet", groups="kind")
    found = read(tmp_path / "x.parquet", groups="kind", drop="when")
    assert found.x.tolist() == [[1], [2], [3], [4]]
    assert found.groups.tolist() == ["x", "x", "y", "y"]
    with_parquet(monkeypatch, frame, index_columns=["when"])
    found = read(tmp_path / "x.parquet", columns="a")
    assert found.groups.tolist() == [0, 0, 1, 1]
    assert "column 'when'" in found.notes[0]
    with_parquet(monkeypatch, frame[["a"]], index_columns=[{"kind": "range"}])
    assert read(tmp_path / "x.parquet").columns == ["a"]


# --- the libraries themselves -----------------------------------------------------------------------


def test_real_hdf5(tmp_path):
    h5py = pytest.importorskip("h5py", reason="part of identica[files]")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("deep/x", data=X)
        file["day"] = DAYS.astype(object)
    found = read(tmp_path / "x.h5", array="deep/x", groups="day")
    assert np.array_equal(found.x, X)
    assert found.groups.tolist() == DAYS.tolist()
    with h5py.File(tmp_path / "huge.h5", "w") as file:
        file.create_dataset("x", shape=(1 << 37, 2), dtype="f8", chunks=(1 << 10, 2))
    with pytest.raises(InputError, match="claims"):
        read(tmp_path / "huge.h5")
    (tmp_path / "x.h5").write_bytes((tmp_path / "x.h5").read_bytes()[:1000])
    with pytest.raises(InputError, match="damaged or not"):
        read(tmp_path / "x.h5", array="deep/x")


def test_real_zarr(tmp_path):
    zarr = pytest.importorskip("zarr", reason="part of identica[files]")
    group = zarr.open_group(str(tmp_path / "x.zarr"), mode="w")
    group.create_array("x", data=X)
    group.create_array("deep/day", data=np.arange(6) // 3)
    found = read(tmp_path / "x.zarr", groups="deep/day")
    assert np.array_equal(found.x, X)
    assert found.groups.tolist() == [0, 0, 0, 1, 1, 1]
    zarr.save_array(str(tmp_path / "one.zarr"), X)
    assert np.array_equal(read(tmp_path / "one.zarr").x, X)
    (tmp_path / "empty.zarr").mkdir()
    with pytest.raises(InputError, match=r"empty\.zarr"):
        read(tmp_path / "empty.zarr")


def test_real_parquet(tmp_path):
    pytest.importorskip("pyarrow", reason="part of identica[files]")
    frame = pd.DataFrame({"a": [1, 2, 4], "b": [0.5, None, 2], "day": ["x", "x", "y"]})
    frame.to_parquet(tmp_path / "x.parquet", engine="pyarrow")
    found = read(tmp_path / "x.parquet", groups="day", missing="drop")
    assert found.columns == ["a", "b"]
    assert np.array_equal(found.x, [[1, 0.5], [2, np.nan], [4, 2]], equal_nan=True)
    assert found.groups.tolist() == ["x", "x", "y"]
    dates = pd.to_datetime(["2020-01-01", "2020-01-02", "2020-01-09"])
    frame.set_index(dates)[["a"]].to_parquet(tmp_path / "x.parquet", engine="pyarrow")
    assert read(tmp_path / "x.parquet").groups.tolist() == [0, 0, 1]
    frame.assign(day=frame["day"].astype("category")).to_parquet(tmp_path / "x.parquet")
    with pytest.raises(InputError, match=r"column 'day' of .* row 0 \(from 0\) has 'x'"):
        read(tmp_path / "x.parquet", columns="a,day")
