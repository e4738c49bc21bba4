"""KITTI Masks: real pedestrian masks in motion, 64×64, with their position and area.

Klindt et al., "Towards Nonlinear Disentanglement in Natural Data with Temporal Sparse Coding",
ICLR 2021; from KITTI-MOTS and MOTSChallenge (Voigtlaender et al., CVPR 2019; CC BY-NC-SA 3.0).
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from identica._io import writing
from identica._validate import as_array, as_path, as_rng, count, instance
from identica.datasets import _mots, _unpickle
from identica.datasets._arguments import MOST, check_array, whole_numbers
from identica.datasets.pictures import tile
from identica.datasets.reading import read_npz, reading
from identica.datasets.root import find
from identica.errors import InputError

FACTORS = ("y", "x", "area")
LARGEST = 2**30  # bytes of an archive once unpacked; the published data set has 45 MB

Array = NDArray[Any]
Random = np.random.Generator | int


@dataclass(frozen=True, eq=False)
class KittiMasks:
    """Mask sequences, frame after frame and sequence after sequence; read-only.

    Args:
        masks_packed: N×512 uint8, `np.packbits` of the N frames of 64×64.
        latents: N×3 float32: y and x of the centre of mass and area, in pixels.
        seq_lengths: Frames of each of the S sequences, in order.
        source: "kitti" or "mots" for each sequence ("" where not known).
        video: Name of the video for each sequence ("" where not known).
        window: Which of the six windows, for each sequence (−1 where not known).
        track_id: Id of the pedestrian, for each sequence (−1 where not known).
    """

    masks_packed: NDArray[np.uint8]
    latents: NDArray[np.float32]
    seq_lengths: NDArray[np.int32]
    source: NDArray[np.str_]
    video: NDArray[np.str_]
    window: NDArray[np.int8]
    track_id: NDArray[np.int32]

    def __post_init__(self) -> None:
        check_array("masks_packed", self.masks_packed, "uint8", (None, 512))
        n, lengths = len(self), self.seq_lengths
        check_array("latents", self.latents, "floats", (n, 3))
        check_array("seq_lengths", lengths, "whole numbers", (None,))
        # each at most n, so that the sum cannot overflow
        if not len(lengths) or lengths.min() < 1 or lengths.max() > n or lengths.sum() != n:
            raise InputError(f"seq_lengths must be at least 1 each and {n} together")
        for name in ("source", "video"):
            check_array(name, getattr(self, name), "text", lengths.shape)
        for name in ("window", "track_id"):
            check_array(name, getattr(self, name), "whole numbers", lengths.shape)
        for name in _FIELDS:
            getattr(self, name).setflags(write=False)

    def __len__(self) -> int:
        return len(self.masks_packed)

    @cached_property
    def _last(self) -> NDArray[np.int64]:
        """For each frame, the last frame of its sequence."""
        return np.repeat(np.cumsum(self.seq_lengths, dtype=np.int64) - 1, self.seq_lengths)

    @cached_property
    def anchors(self) -> NDArray[np.int64]:
        """The frames that have a successor."""
        return np.flatnonzero(np.arange(len(self)) < self._last)

    def frames(self, indices: ArrayLike) -> NDArray[np.uint8]:
        """Masks of 0 and 1, len(indices)×64×64, of the frames with these indices."""
        chosen = whole_numbers("indices", np.atleast_1d(as_array("indices", indices)), len(self))
        return np.unpackbits(self.masks_packed[chosen], axis=1).reshape(-1, 64, 64)

    def pairs(
        self, max_lag: int, n: int, rng: Random
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Indices (i, j) of `n` pairs of frames of one sequence, j after i.

        i is uniform over the frames that have a successor; j = min(i + Δ, end of the sequence)
        with Δ ~ U{1, …, max_lag}.

        >>> masks = np.zeros((5, 512), np.uint8)
        >>> data = _assemble([masks[:3], masks[3:]])
        >>> i, j = data.pairs(max_lag=1, n=100, rng=0)
        >>> sorted(set(zip(i.tolist(), j.tolist())))
        [(0, 1), (1, 2), (3, 4)]
        """
        n, max_lag = count("n", n, at_most=MOST), count("max_lag", max_lag)
        longest = int(self.seq_lengths.max()) - 1
        if longest == 0:
            raise InputError("pairs need a sequence of at least 2 frames, all have 1")
        if max_lag > longest:
            raise InputError(
                f"max_lag must be at most {longest}, the longest lag within a sequence, "
                f"got {max_lag}"
            )
        rng = as_rng("rng", rng)
        first = self.anchors[rng.integers(len(self.anchors), size=n)]
        step = rng.integers(1, max_lag + 1, size=n)
        return first, np.minimum(first + step, self._last[first])

    def save(self, path: str | Path) -> None:
        """Write the npz archive that `load` reads, in one step."""
        with writing("path", as_path("path", path)) as temporary, temporary.open("wb") as file:
            np.savez_compressed(file, **{name: getattr(self, name) for name in _FIELDS})


_FIELDS = [field.name for field in fields(KittiMasks)]


def load(path: str | Path | None = None) -> KittiMasks:
    """KITTI Masks from an npz archive of ours or from the original `kitti_peds_v2.pickle`.

    The pickle may hold NumPy arrays and plain containers only, and runs nothing: a dict with
    "pedestrians", a list of T×64×64 masks, and "pedestrians_latents", a list of T×3 (y, x, area).

    Args:
        path: The file; by default `kitti_masks/kitti_masks.npz` under the data root.
    """
    if path is None:
        path = find(
            "kitti_masks", "kitti_masks.npz", get="make it with `identica data kitti-masks build`"
        )
    path = as_path("path", path)
    with reading(path, "KITTI Masks") as file:
        original = file.read(1) == b"\x80" or path.suffix in (".pickle", ".pkl")
    content = _unpickle.load(path) if original else read_npz(path, _FIELDS, LARGEST)
    try:
        return _from_original(content) if original else KittiMasks(**content)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def build(kitti: str | Path | None = None, mots: str | Path | None = None) -> KittiMasks:
    """KITTI Masks rebuilt from the public annotations, bit for bit.

    Args:
        kitti: Folder with the KITTI-MOTS annotations: either text files (`instances_txt`:
            `0000.txt`, …) or a subfolder of id-map PNGs for each video (`instances`: `0000/`, …).
        mots: The same for MOTSChallenge.
    """
    if kitti is None and mots is None:
        raise InputError("kitti or mots must be a folder of annotations, got neither")
    packed: list[Array] = []
    names: list[tuple[str, str, int, int]] = []
    for source, folder in (("kitti", kitti), ("mots", mots)):
        for video in [] if folder is None else _videos(source, as_path(source, folder)):
            for window, track, masks in _mots.sequences(_mots.read_video(video)):
                packed.append(_pack(masks))
                names.append((source, video.stem, window, track))
    if not packed:
        raise InputError("kitti and mots hold no pedestrian that is large enough for long enough")
    return _assemble(packed, names=names)


def check(data: KittiMasks) -> dict[str, float]:
    """Statistics to compare with the published ones, after a check that latents and masks agree.

    Counts of sequences, frames and neighbouring pairs, and the excess kurtosis of the change of
    each factor between neighbouring frames (published: area 68.92, x 38.50, y 65.39).
    """
    from scipy.stats import kurtosis

    instance("data", data, KittiMasks, "KITTI Masks")
    wrong = np.abs(_latents(data.masks_packed) - data.latents).max(axis=1) > 1e-3
    if wrong.any():
        raise InputError(f"latents must match the masks: {wrong.sum()} of {len(data)} do not")
    change = data.latents[data.anchors + 1].astype(float) - data.latents[data.anchors]
    numbers = {"sequences": len(data.seq_lengths), "frames": len(data), "pairs": len(change)}
    # Without any change there is no kurtosis to speak of.
    spread = change.std(axis=0) if len(change) else np.zeros(3)
    return numbers | {
        f"kurtosis_{name}": float(kurtosis(change[:, k])) if spread[k] else 0.0
        for k, name in enumerate(FACTORS)
    }


def picture(data: KittiMasks, rows: int = 8, columns: int = 12) -> NDArray[np.uint8]:
    """A grey picture of random sequences, one per row, at evenly spaced times."""
    instance("data", data, KittiMasks, "KITTI Masks")
    rows, columns = count("rows", rows), count("columns", columns)
    order = np.random.default_rng(0).permutation(len(data.seq_lengths))
    chosen = np.sort(order[:rows])
    stops = np.cumsum(data.seq_lengths)[chosen]
    starts = stops - data.seq_lengths[chosen]
    times = np.linspace(starts, stops - 1, columns, axis=1).round().astype(int)
    return tile(data.frames(times.ravel()).reshape(*times.shape, 64, 64).astype(bool))


def _videos(source: str, folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise InputError(f"{source} must be a folder of annotations, but {folder} is not one")
    videos = sorted(folder.glob("*.txt"))
    videos = videos or sorted(sub for sub in folder.iterdir() if any(sub.glob("*.png")))
    if not videos:
        raise InputError(
            f"{source} must be a folder of text files or of subfolders of PNG files, "
            f"one for each video; {folder} has neither"
        )
    return videos


def _pack(masks: Array) -> Array:
    return np.packbits(masks.reshape(len(masks), 64 * 64), axis=1)


def _latents(packed: Array) -> NDArray[np.float32]:
    """Centre of mass (y, x) and area of packed masks."""
    y, x = (axis.ravel() for axis in np.mgrid[:64, :64])
    sums = np.stack([y, x, np.ones_like(x)], axis=1).astype(np.float32)
    latents = np.empty((len(packed), 3), np.float32)
    for start in range(0, len(packed), 1024):
        # Whole numbers below 2**24, so single precision is exact.
        masks = np.unpackbits(packed[start : start + 1024], axis=1).astype(np.float32)
        total = (masks @ sums).astype(float)
        total[:, :2] /= np.maximum(total[:, 2:], 1)
        latents[start : start + 1024] = total
    return latents


def _assemble(
    packed: list[Array],
    latents: Array | None = None,
    names: list[tuple[str, str, int, int]] | None = None,
) -> KittiMasks:
    masks = np.concatenate(packed)
    source, video, window, track = zip(*(names or [("", "", -1, -1)] * len(packed)), strict=True)
    return KittiMasks(
        masks_packed=masks,
        latents=_latents(masks) if latents is None else latents,
        seq_lengths=np.array([len(sequence) for sequence in packed], np.int32),
        source=np.array(source),
        video=np.array(video),
        window=np.array(window, np.int8),
        track_id=np.array(track, np.int32),
    )


def _from_original(content: Any) -> KittiMasks:
    """From what `kitti_peds_v2.pickle` holds."""
    expected = InputError(
        "expected a dict with 'pedestrians', a list of T×64×64 masks of 0 and 1, and "
        "'pedestrians_latents', a list of T×3 (y, x, area)"
    )
    if not isinstance(content, dict):
        raise expected
    packed, latents = [], None
    try:
        # Keys are bytes in pickles that Python 2 wrote.
        content = {k.decode() if isinstance(k, bytes) else k: v for k, v in content.items()}
        for sequence in content["pedestrians"]:
            # Lists as numbers: as text, each entry would take as much as the longest.
            masks = sequence if isinstance(sequence, np.ndarray) else np.asarray(sequence, float)
            white = masks != 0
            if masks.shape[1:] != (64, 64) or (masks[white] != masks.max()).any():
                raise expected
            packed.append(_pack(white))
        if (factors := content.get("pedestrians_latents")) is not None:
            with np.errstate(over="ignore"):  # infinity is refused below
                rows = zip(factors, packed, strict=True)
                latents = [np.asarray(f, np.float32).reshape(len(p), 3) for f, p in rows]
    except (KeyError, TypeError, ValueError, OverflowError):
        raise expected from None
    if not packed:
        raise expected
    return _assemble(packed, None if latents is None else np.concatenate(latents))
