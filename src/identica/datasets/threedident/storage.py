"""3DIdent on disk: raw latents beside PNGs, as published, or beside packed images that train without
decoding."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from identica._check import InputError, count
from identica._files import make_folder, replacing, write_json
from identica.datasets.threedident.scene import check_latents
from identica.runs import is_locked, locked

LATENTS, PNGS, PACKED, SETTINGS = "raw_latents.npy", "images", "packed", "build.json"
BLOCK = 1024  # images of a packed file
STEP = 64  # images drawn between two words of progress

Bytes = NDArray[np.uint8]
Draw = Callable[[NDArray[np.float64], int], Bytes]  # N×10 raw latents and a size to images
Tick = Callable[[int, int], None]  # told how many images are there, and of how many


class ImageSet:
    """A 3DIdent data set in a folder, its own or the original download.

    The folder holds `raw_latents.npy` (N×10 in [−1, 1]) and either `images/000000.png` … or
    `packed/000000.npy` … (uint8 n×S×S×3, 1,024 images each, named by the first), which are mapped
    into memory. Anything else in it is left alone.

    Attributes:
        raw_latents: N×10 numbers.
        size: side S of the images in pixels.
    """

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)
        self.raw_latents = _read_latents(self.folder / LATENTS)
        n = len(self.raw_latents)
        if n == 0:
            raise InputError(f"{self.folder / LATENTS} must hold at least one row, it is empty")
        self._packed: list[Bytes] = []
        if (self.folder / PACKED).is_dir():
            _check_names(self.folder / PACKED, "npy", n, range(0, n, BLOCK))
            self._packed = [self._open(start) for start in range(0, n, BLOCK)]
            self.size = self._packed[0].shape[1]
        elif (self.folder / PNGS).is_dir():
            _check_names(self.folder / PNGS, "png", n, range(n))
            self.size = len(_read_png(self._png(0)))
        else:
            raise InputError(
                f"{self.folder} must hold a folder {PNGS} or {PACKED} beside {LATENTS}"
            )

    def __len__(self) -> int:
        return len(self.raw_latents)

    def images(self, rows: Any) -> Bytes:
        """The images of the given rows, n×S×S×3."""
        rows = np.asarray(rows, dtype=np.intp)
        if rows.ndim != 1 or (len(rows) and not 0 <= rows.min() <= rows.max() < len(self)):
            raise InputError(f"rows must be a list of numbers between 0 and {len(self) - 1}")
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
        return self.folder / PNGS / f"{row:06d}.png"

    def _open(self, start: int) -> Bytes:
        path = self.folder / PACKED / f"{start:06d}.npy"
        images = _load(path, mapped=True)
        rows = min(BLOCK, len(self.raw_latents) - start)
        size = self._packed[0].shape[1] if self._packed else images.shape[-2:][0]
        if images.dtype != np.uint8 or images.shape != (rows, size, size, 3):
            raise InputError(
                f"{path} must hold uint8 {rows}×{size}×{size}×3, as its neighbours and {LATENTS} "
                f"say; got {images.dtype} {'×'.join(map(str, images.shape))}"
            )
        return images


def build(
    folder: Path | str,
    raw_latents: Any,
    draw: Draw,
    *,
    size: int = 64,
    packed: bool = True,
    settings: dict[str, Any] | None = None,
    tick: Tick | None = None,
) -> ImageSet:
    """Draw the images of N×10 raw latents into a folder, and open it.

    A build that was interrupted goes on where it stopped and ends in the same files. Several processes
    may work on the same folder: they share the work out.

    Args:
        folder: where to; made if need be.
        raw_latents: N×10 numbers in [−1, 1].
        draw: makes images from n×10 raw latents and a size, the same ones however they are grouped.
        size: side of the images.
        packed: write `packed/`, which trains without decoding, instead of PNGs.
        settings: what else decides the images, for `build.json`; a build with other settings is
            refused in the same folder.
        tick: told how many images are there, and of how many.

    >>> from tempfile import TemporaryDirectory
    >>> from identica.datasets.threedident import latents, render
    >>> with TemporaryDirectory() as folder:
    ...     data = build(folder, latents(x=[-1, 0, 1]), render, size=32)
    ...     data.images([2, 0]).shape
    (2, 32, 32, 3)
    """
    z, size, folder = check_latents(raw_latents), count("size", size), Path(folder)
    wanted = {"n": len(z), "size": size, "packed": packed, **(settings or {})}
    count("n", len(z))
    make_folder("out", folder / (PACKED if packed else PNGS))
    _claim(folder, z, wanted)
    starts = range(0, len(z), BLOCK)
    for patient in (False, True):  # first what nobody else is at, then what others have left
        for start in starts:
            rows = range(start, min(start + BLOCK, len(z)))
            lock = folder / f".{start:06d}.lock"
            if _done(folder, rows, packed) or (not patient and is_locked(lock)):
                continue
            with locked(lock):
                _build_block(folder, z, rows, draw, size, packed, tick)
            lock.unlink(missing_ok=True)
    if tick is not None:
        tick(len(z), len(z))
    return ImageSet(folder)


def _claim(folder: Path, z: NDArray[np.float64], wanted: dict[str, Any]) -> None:
    """Write the latents and settings, or see that they are the same as those that are there."""
    with locked(folder / ".lock"):
        if (folder / SETTINGS).exists():
            found = json.loads((folder / SETTINGS).read_text(encoding="utf-8"))
            if found != wanted:
                raise InputError(
                    f"out must be a new folder, or one with the same build: {folder} holds {found}"
                )
        elif (folder / LATENTS).exists():
            raise InputError(f"out must be a new folder: {folder} holds another data set")
        if not (folder / LATENTS).exists():
            with replacing(folder / LATENTS) as temporary:
                _save(temporary, z)
        elif not np.array_equal(_read_latents(folder / LATENTS), z):
            raise InputError(f"out must be a new folder: {folder / LATENTS} holds other latents")
        write_json(folder / SETTINGS, wanted)
    (folder / ".lock").unlink(missing_ok=True)


def _done(folder: Path, rows: range, packed: bool) -> bool:
    if packed:
        return (folder / PACKED / f"{rows[0]:06d}.npy").exists()
    return all((folder / PNGS / f"{row:06d}.png").exists() for row in rows)


def _build_block(
    folder: Path,
    z: NDArray[np.float64],
    rows: range,
    draw: Draw,
    size: int,
    packed: bool,
    tick: Tick | None,
) -> None:
    """Draw what is missing of a block; the caller holds its lock."""
    suffix, home = ("npy", folder / PACKED) if packed else ("png", folder / PNGS)
    before = sum(1 for _ in home.glob(f"*.{suffix}")) * (BLOCK if packed else 1)
    todo = [row for row in rows if packed or not (home / f"{row:06d}.png").exists()]
    if _done(folder, rows, packed):  # by somebody else, while this process waited
        return
    drawn = []
    for start in range(0, len(todo), STEP):
        if tick is not None:
            tick(min(before + start, len(z)), len(z))
        some = todo[start : start + STEP]
        images = draw(z[some], size)
        if packed:
            drawn.append(images)
            continue
        for row, image in zip(some, images, strict=True):
            _write_png(home / f"{row:06d}.png", image)
    if packed:
        path = home / f"{rows[0]:06d}.npy"
        for left in home.glob(f".{path.name}.*.tmp"):  # of a process that was killed
            left.unlink(missing_ok=True)
        with replacing(path) as temporary:
            _save(temporary, np.concatenate(drawn))


# --- files ------------------------------------------------------------------------------------------


def _save(path: Path, array: NDArray[Any]) -> None:
    with path.open("wb") as file:  # np.save would add .npy to a temporary name
        np.save(file, array, allow_pickle=False)


def _load(path: Path, *, mapped: bool = False) -> NDArray[Any]:
    try:
        return np.asanyarray(np.load(path, mmap_mode="r" if mapped else None, allow_pickle=False))
    except FileNotFoundError:
        raise InputError(f"{path} does not exist") from None
    except (ValueError, OSError, EOFError) as error:
        raise InputError(f"{path} is not an array of NumPy, or is cut short: {error}") from None


def _read_latents(path: Path) -> NDArray[np.float64]:
    try:
        return check_latents(_load(path))
    except InputError as error:
        raise InputError(f"{path}: {error}" if path.exists() else str(error)) from None


def _check_names(folder: Path, suffix: str, n: int, wanted: range) -> None:
    """Raise unless a folder has exactly the numbered files that belong to n latents."""
    found = {path.name for path in folder.glob(f"[0-9]*.{suffix}")}
    names = [f"{number:06d}.{suffix}" for number in wanted]
    missing = [name for name in names if name not in found]
    if len(found) > len(names) - len(missing):
        more = min(found - set(names))
        raise InputError(
            f"{folder} must hold {len(names)} files for the {n} rows of {LATENTS}, but there is "
            f"{more}, too: the latents are of another data set"
        )
    if missing:
        raise InputError(
            f"{folder} must hold {len(names)} files for the {n} rows of {LATENTS}: "
            f"{len(missing)} are missing, the first is {missing[0]} (a build that was interrupted "
            f"goes on when it is started again)"
        )


def _write_png(path: Path, image: Bytes) -> None:
    from PIL import Image

    with replacing(path) as temporary:
        Image.fromarray(image).save(temporary, format="png")


def _read_png(path: Path, size: int | None = None) -> Bytes:
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(path) as file:
            image = np.asarray(file.convert("RGB"))
    except FileNotFoundError:
        raise InputError(f"{path} does not exist") from None
    except (UnidentifiedImageError, OSError, SyntaxError) as error:
        raise InputError(f"{path} is not an image, or is cut short: {error}") from None
    side = len(image) if size is None else size
    if image.shape != (side, side, 3):
        raise InputError(f"{path} must be {side}×{side} pixels, got {image.shape[:2]}")
    return image
