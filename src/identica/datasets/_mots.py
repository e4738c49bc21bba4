"""From MOTS annotations (run-length text or id-map PNGs) to mask sequences, as in KITTI Masks.

Ids are class·1000 + instance, with class 1 car and 2 pedestrian; 0 is background, 10000 to be
ignored. Voigtlaender et al., "MOTS: Multi-Object Tracking and Segmentation", CVPR 2019.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from identica.datasets.reading import read_png, reading
from identica.errors import InputError

SIZE = 64
LARGEST = 4096  # pixels along a side of a video; the published ones have 1920
WINDOWS = 6
SMALLEST = 30  # pixels; below that a track is cut
VOLUME = 2**26  # ids of a video at height 64, 128 MB; the largest published one has 2**24

Array = NDArray[Any]


def decode(rle: str, height: int, width: int) -> NDArray[np.bool_]:
    """The height×width mask of a compressed COCO run-length code.

    Runs of 0 and 1 alternate down the columns. A run is a number in base 32, least digit first,
    in characters from "0" on, with bit 5 set where another digit follows and bit 4 of the
    last digit as its sign; from the fourth on it is the difference to the run two before.

    >>> decode("132", 2, 3).astype(int)
    array([[0, 1, 0],
           [1, 1, 0]])
    """
    if max(height, width) > LARGEST:
        raise InputError(f"rle must cover {LARGEST}×{LARGEST} pixels at most, not {height}×{width}")
    digits = np.frombuffer(rle.encode(), np.uint8).astype(np.int64) - 48
    if not len(digits) or digits.min() < 0 or digits.max() > 63 or digits[-1] & 32:
        raise InputError("rle must be a whole compressed COCO run-length code")
    last = np.flatnonzero(digits & 32 == 0)
    first = np.concatenate([[0], last[:-1] + 1])
    length = last - first + 1
    if length.max() > 6:
        raise InputError("rle must be a whole compressed COCO run-length code")
    place = np.arange(len(digits)) - np.repeat(first, length)
    runs = np.add.reduceat((digits & 31) << (5 * place), first)
    runs -= np.where(digits[last] & 16, 1 << (5 * length), 0)
    runs[1::2] = np.cumsum(runs[1::2])
    runs[2::2] = np.cumsum(runs[2::2])
    if runs.min() < 0 or runs.sum() != height * width:
        raise InputError(f"rle must cover {height}×{width} pixels, got {runs.sum()}")
    inside = np.arange(len(runs)) % 2 == 1
    return np.repeat(inside, runs).reshape(width, height).T


def read_video(path: Path) -> Array:
    """Id maps of a video, T×64×w, from an `instances_txt` file or a folder of id-map PNGs.

    Frames before the first annotation and after the last are left out, and so are all but one of
    those between two annotations: a track is cut by one empty frame as by many.
    """
    ids = _read_text(path) if path.is_file() else _read_pngs(path)
    if ids.shape[2] < SIZE:
        raise InputError(f"{path}: images must be at least as wide as high")
    return ids


def _read_text(path: Path) -> Array:
    with reading(path, "annotations of a video") as file:
        text = file.read().decode("ascii", errors="replace")
    maps: dict[int, Array] = {}
    grid: tuple[Array, Array] | None = None
    shape = (0, 0)
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            *numbers, rle = line.split()
            frame, track, _, height, width = map(int, numbers)
            if grid is None:
                shape, grid = (height, width), _nearest(height, width)
            if shape != (height, width) or not (0 <= track < 2**16 and 0 <= frame < 2**16):
                raise ValueError
            mask = decode(rle, *shape)[grid]
            if frame not in maps:
                maps[frame] = np.zeros(mask.shape, np.uint16)
                _check_volume(len(maps), mask)
            maps[frame][mask] = track
        except InputError as error:
            raise InputError(f"{path}, line {number}: {error}") from None
        except ValueError:
            raise InputError(
                f"{path}, line {number}: expected 'frame id class height width rle' with the "
                f"same height and width throughout, got {line[:60]!r}"
            ) from None
    if not maps:
        raise InputError(f"{path} has no annotations")
    frames: list[Array] = []
    for frame in sorted(maps):
        if frames and frame - 1 not in maps:
            frames.append(np.zeros_like(maps[frame]))
        frames.append(maps[frame])
    return np.stack(frames)


def _read_pngs(folder: Path) -> Array:
    frames: list[Array] = []
    for file in sorted(folder.glob("*.png")):
        ids = read_png(file, LARGEST)
        # Pillow before 11.3 has 16-bit images as int32. Ids do not fit into 8 bits.
        if ids.ndim != 2 or ids.dtype not in (np.uint16, np.int32):
            raise InputError(
                f"{file} must be a grey 16-bit PNG of ids, got {ids.dtype} {ids.shape}"
            )
        try:
            frames.append(ids[_nearest(*ids.shape)].astype(np.uint16))
            _check_volume(len(frames), frames[-1])
        except InputError as error:
            raise InputError(f"{file}: {error}") from None
    if not frames:
        raise InputError(f"{folder} has no PNG files")
    if len({frame.shape for frame in frames}) > 1:
        raise InputError(f"{folder} must hold images of one size")
    return np.stack(frames)


def _check_volume(frames: int, ids: Array) -> None:
    if frames * ids.size > VOLUME:
        raise InputError(
            f"a video must have at most {VOLUME // ids.size} frames {ids.shape[1]} wide "
            f"at height {SIZE}"
        )


def _nearest(height: int, width: int) -> tuple[Array, Array]:
    """Rows and columns that a nearest-neighbour resize to height 64 picks.

    In single precision, as the data set was made, so that whole multiples fall the same way.
    """
    if min(height, width) < SIZE or max(height, width) > LARGEST:
        raise InputError(
            f"images must have {SIZE} to {LARGEST} pixels along each side, got {height}×{width}"
        )
    sizes = (height, SIZE), (width, int(width // (height / SIZE)))
    rows, columns = (
        (np.arange(new, dtype=np.float32) * (np.float32(old) / np.float32(new))).astype(np.int64)
        for old, new in sizes
    )
    return rows[:, None], columns


def sequences(ids: Array) -> Iterator[tuple[int, int, NDArray[np.bool_]]]:
    """The pedestrian sequences of a video, window by window and track by track: the number of the window,
    the id of the track, and its masks.

    Six windows 64 wide slide over the video. In each, the sorted ids without the first
    (background) and the last (to be ignored), and without cars, are tracks. A track is cut
    where its mask has fewer than 30 pixels; a piece before such a gap is kept if longer than
    2 frames, the track's final piece if longer than 1. Klindt et al., "Towards Nonlinear
    Disentanglement in Natural Data with Temporal Sparse Coding", ICLR 2021.

    Args:
        ids: Id maps T×64×w.
    """
    stride = (ids.shape[2] - SIZE) // (WINDOWS - 1)
    for window in range(WINDOWS):
        view = ids[:, :, window * stride : window * stride + SIZE]
        found = np.zeros(2**16, bool)
        for frame in view:
            found[frame] = True
        # The last id is dropped even if nothing is to be ignored, as in the published data.
        present = np.flatnonzero(found)[1:-1]
        for track in present[present // 1000 != 1]:
            masks = view == track
            area = masks.sum(axis=(1, 2))
            end = np.flatnonzero(area)[-1] + 1
            edges = np.flatnonzero(np.diff(area >= SMALLEST, prepend=False, append=False))
            for start, stop in edges.reshape(-1, 2):
                if stop - start > (1 if stop == end else 2):
                    yield window, int(track), masks[start:stop]
