"""3DIdent on disk: raw latents next to PNGs, as published, or next to packed images that train without
decoding."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from types import NoneType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from identica._io import is_locked, locked, make_folder, read_json, replacing, write_json
from identica._validate import as_path, count, flag, function, instance
from identica.datasets._arguments import check_array, whole_numbers
from identica.datasets.pictures import save
from identica.datasets.reading import map_npy, read_png, reason
from identica.datasets.threedident.scene import LARGEST, check_latents, check_size
from identica.errors import InputError

LATENTS, PNGS, PACKED, SETTINGS = "raw_latents.npy", "images", "packed", "build.json"
BLOCK = 1024  # images of a packed file
STEP = 64  # images drawn between two reports of progress
DIGITS = 6  # of the numbers in names, at least
MEND = "delete it and run build again, which renders it (or copy it again, if it was not built)"

Bytes = NDArray[np.uint8]
Draw = Callable[[NDArray[np.float64], int], Bytes]  # N×10 raw latents and a size to images
Tick = Callable[[int, int], None]  # called with the number of images so far and in total


class ImageSet:
    """A 3DIdent data set in a folder, its own or the original download.

    The folder holds `raw_latents.npy` (N×10 in [−1, 1]) and either `images/000000.png` … or
    `packed/000000.npy` … (uint8 n×S×S×3, 1,024 images each, named by the first), which are mapped
    into memory. PNGs may also have names as short as their number allows: the 25,000 published test
    images begin with `00000.png`. Anything else in the folder is left alone.

    Attributes:
        raw_latents: N×10 numbers.
        size: side S of the images in pixels.
    """

    def __init__(self, folder: Path | str) -> None:
        self.folder = as_path("folder", folder)
        self.raw_latents = _read_latents(self.folder / LATENTS)
        n = len(self.raw_latents)
        if n == 0:
            raise InputError(f"{self.folder / LATENTS} must hold at least one row, it is empty")
        self._packed: list[Bytes] = []
        if (self.folder / PACKED).is_dir():
            names = [_name(start, "npy") for start in range(0, n, BLOCK)]
            _check_files(self.folder / PACKED, names, n)
            self._packed = [self._open(start) for start in range(0, n, BLOCK)]
            self.size = self._packed[0].shape[1]
        elif (self.folder / PNGS).is_dir():
            padded = any((self.folder / PNGS).glob("[0-9]" * DIGITS + ".png"))
            self._digits = DIGITS if padded else len(str(n - 1))
            names = [_name(row, "png", self._digits) for row in range(n)]
            _check_files(self.folder / PNGS, names, n)
            self.size = len(_read_png(self._png(0)))
        else:
            raise InputError(
                f"{self.folder} must hold a folder {PNGS} or {PACKED} next to {LATENTS}"
            )

    def __len__(self) -> int:
        return len(self.raw_latents)

    def images(self, rows: Any) -> Bytes:
        """The images of the given rows, n×S×S×3."""
        rows = whole_numbers("rows", rows, len(self))
        images = np.empty((len(rows), self.size, self.size, 3), np.uint8)
        if not self._packed:
            for i, row in enumerate(rows):
                images[i] = _read_png(self._png(row), self.size)
            return images
        files = rows // BLOCK
        for k in np.unique(files):
            here = files == k
            images[here] = self._packed[k][rows[here] % BLOCK]
        return images

    def _png(self, row: int) -> Path:
        return self.folder / PNGS / _name(row, "png", self._digits)

    def _open(self, start: int) -> Bytes:
        path = self.folder / PACKED / _name(start, "npy")
        with _rendered_again(path):
            images: Bytes = map_npy(path)
        rows = min(BLOCK, len(self.raw_latents) - start)
        size = self._packed[0].shape[1] if self._packed else max(images.shape[1:2], default=0)
        check_array(str(path), images, "uint8", (rows, size, size, 3))
        return images


def build(
    folder: Path | str,
    raw_latents: Any,
    draw: Draw,
    *,
    size: int = 64,
    packed: bool = True,
    settings: dict[str, Any] | None = None,
    step: int = STEP,
    tick: Tick | None = None,
) -> ImageSet:
    """Draw the images of N×10 raw latents into a folder, and open it.

    An interrupted build resumes where it stopped, with at most one step lost, and ends with the same
    files. Several processes may work on the same folder, and share the work.

    Args:
        folder: where to; created if necessary.
        raw_latents: N×10 numbers in [−1, 1].
        draw: makes images from n×10 raw latents and a size, the same ones however they are grouped.
        size: side of the images.
        packed: write `packed/`, which trains without decoding, instead of PNGs.
        settings: whatever else determines the images, for `build.json`; a build with other settings
            into the same folder is refused, and the folder stays as it was.
        step: how many images to draw at once; few where drawing is slow.
        tick: progress callback, called with the number of images so far and in total.

    >>> from tempfile import TemporaryDirectory
    >>> from identica.datasets.threedident import latents, render
    >>> with TemporaryDirectory() as folder:
    ...     data = build(folder, latents(x=[-1, 0, 1]), render, size=32)
    ...     data.images([2, 0]).shape
    (2, 32, 32, 3)
    """
    z, size, folder = check_latents(raw_latents), check_size(size), as_path("folder", folder)
    instance("settings", settings, (dict, NoneType), "a dictionary")
    flag("packed", packed)
    function("draw", draw)
    if tick is not None:
        function("tick", tick)
    wanted = {"n": len(z), "size": size, "packed": packed, **(settings or {})}
    count("n", len(z))
    count("step", step)
    make_folder("out", folder)
    try:
        _claim(folder, z, wanted)
        home = make_folder("out", folder / (PACKED if packed else PNGS))
        for patient in (False, True):  # first blocks that no other process works on
            for start in range(0, len(z), BLOCK):
                rows = range(start, min(start + BLOCK, len(z)))
                lock = folder / f".{start:06d}.lock"
                if _done(home, rows, packed) or (not patient and is_locked(lock)):
                    continue
                with locked(lock):
                    if not _done(home, rows, packed):  # another may have meanwhile
                        _build_block(home, z, rows, draw, size, packed, step, tick)
                lock.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"out: cannot write {error.filename or folder}: {reason(error)}") from None
    if tick is not None:
        tick(len(z), len(z))
    return ImageSet(folder)


def _claim(folder: Path, z: NDArray[np.float64], wanted: dict[str, Any]) -> None:
    """Write the settings and latents, or check that they equal those in the folder.

    The settings come first, so that an interrupted start is recognised and resumed.
    """
    lock, settings, latents = folder / ".lock", folder / SETTINGS, folder / LATENTS
    with locked(lock):
        try:
            if settings.exists():
                existing = read_json(settings)
                if existing != wanted:
                    raise InputError(
                        "out must be a new folder, or one with the same build: "
                        f"{folder} holds {existing}"
                    )
            elif latents.exists():
                raise InputError(f"out must be a new folder: {folder} holds another data set")
            if latents.exists():
                if not np.array_equal(_read_latents(latents), z):
                    raise InputError(f"out must be a new folder: {latents} holds other latents")
                return
            _sweep(folder, SETTINGS, LATENTS)
            write_json(settings, wanted)
            with replacing(latents) as temporary, temporary.open("wb") as file:
                np.save(file, z, allow_pickle=False)
        finally:
            lock.unlink(missing_ok=True)


def _done(home: Path, rows: range, packed: bool) -> bool:
    if packed:
        return (home / _name(rows[0], "npy")).exists()
    return all((home / _name(row, "png")).exists() for row in rows)


def _build_block(
    home: Path,
    z: NDArray[np.float64],
    rows: range,
    draw: Draw,
    size: int,
    packed: bool,
    step: int,
    tick: Tick | None,
) -> None:
    """Render the missing images of a block; the caller holds its lock."""
    suffix = "npy" if packed else "png"
    _sweep(home, *(_name(row, suffix) for row in rows))
    whole = sum(name.endswith(f".{suffix}") for name in os.listdir(home))
    part = home / f".{_name(rows[0], suffix)}.part"
    if packed:
        begun = _begin(part, (len(rows), size, size, 3))
        there, todo = BLOCK * whole + begun, list(rows[begun:])
    else:
        there, todo = whole, [row for row in rows if not (home / _name(row, suffix)).exists()]
    for start in range(0, len(todo), step):
        if tick is not None:
            tick(min(there + start, len(z)), len(z))
        some = todo[start : start + step]
        images = draw(z[some], size)
        check_array("what draw returns", images, "uint8", (len(some), size, size, 3))
        if packed:
            with part.open("ab") as file:
                file.write(images.tobytes())
        else:
            for row, image in zip(some, images, strict=True):
                save(image, home / _name(row, suffix))
    if packed:
        os.replace(part, home / _name(rows[0], suffix))


def _begin(part: Path, shape: tuple[int, ...]) -> int:
    """Start the array of a block under a temporary name, or resume it; how many images it has.

    Its header has the final shape from the start, and images are appended as they are drawn. An image
    that a kill left incomplete is cut off.
    """
    file = BytesIO()
    np.lib.format.write_array_header_1_0(
        file, {"descr": "|u1", "fortran_order": False, "shape": shape}
    )
    header, image = file.getvalue(), math.prod(shape[1:])
    if not part.exists() or part.stat().st_size < len(header):
        part.write_bytes(header)
    whole = min((part.stat().st_size - len(header)) // image, shape[0])
    os.truncate(part, len(header) + whole * image)
    return whole


def _name(number: int, suffix: str, digits: int = DIGITS) -> str:
    return f"{number:0{digits}d}.{suffix}"


def _sweep(folder: Path, *names: str) -> None:
    """Remove the temporary files that killed processes left behind for these names."""
    hidden = {f".{name}" for name in names}
    for left in os.listdir(folder):  # .NAME.PROCESS.tmp
        if left.endswith(".tmp") and left.rsplit(".", 2)[0] in hidden:
            (folder / left).unlink(missing_ok=True)


@contextmanager
def _rendered_again(path: Path) -> Iterator[None]:
    """Add to errors about a damaged file how to replace it."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{error}: {MEND}" if path.exists() else str(error)) from None


def _read_latents(path: Path) -> NDArray[np.float64]:
    array = np.array(map_npy(path))
    if array.dtype.kind != "f":
        raise InputError(f"{path} must hold floats, got {array.dtype}")
    try:
        return check_latents(array)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _check_files(folder: Path, names: list[str], n: int) -> None:
    """Raise unless the numbered files of a folder are exactly those that belong to n latents."""
    present = {path.name for path in folder.glob(f"[0-9]*{Path(names[0]).suffix}")}
    expected = f"{folder} must hold {len(names)} files ({names[0]} …) for the {n} rows of {LATENTS}"
    if more := present.difference(names):
        raise InputError(
            f"{expected}, but there is {min(more)}, too: the latents belong to another data set"
        )
    if missing := [name for name in names if name not in present]:
        raise InputError(
            f"{expected}: {len(missing)} are missing, the first is {missing[0]} (an interrupted build "
            "resumes when it is started again)"
        )


def _read_png(path: Path, size: int | None = None) -> Bytes:
    with _rendered_again(path):
        image: Bytes = read_png(path, size or LARGEST, "RGB")
    side = size or len(image)
    check_array(str(path), image, "uint8", (side, side, 3))
    return image
