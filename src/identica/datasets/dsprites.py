"""dSprites: a white shape on black, 64×64, under five factors; the original, or re-rendered.

Matthey et al., "dSprites: Disentanglement testing Sprites dataset", 2017 (Apache-2.0).
"""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from identica._io import writing
from identica._progress import progress_bar
from identica._validate import as_array, as_rng, count
from identica.datasets._arguments import MOST, check_array, whole_numbers
from identica.datasets.pictures import tile
from identica.datasets.reading import map_npy, read_header, read_npz, reading
from identica.datasets.root import data_root, find
from identica.errors import InputError

FACTORS = ("shape", "scale", "orientation", "posX", "posY")
SIZES = (3, 6, 40, 32, 32)
TOTAL = 737_280
COLUMNS = 12  # images in a row of a contact sheet
ORIGINAL = "dsprites_ndarray_co1sh3sc6or40x32y32_64x64.npz"

Array = NDArray[Any]
Classes = NDArray[np.int64]
Random = np.random.Generator | int

_CHUNK = 4096  # images held unpacked at a time: 16 MB
LARGEST = 2**26  # bytes of the classes in an archive; the original has 35 MB


def render(latents_classes: ArrayLike) -> NDArray[np.uint8]:
    """Re-rendered dSprites: images of 0 and 1, N×64×64.

    A pixel is white if its middle lies in the shape, centred at 16 + 32·pos/31 pixels and
    turned by −2π·orientation/39 (from x to y, which points down), with scale s = ½ + scale/10:
    a square of half-side 9.598·s; an ellipse of semi-axes 12.7668·s and 7.2148·s; the heart
    x = 9.59888·sin³t, y = −1.4384 − .66218·(13 cos t − 5 cos 2t − 2 cos 3t − cos 4t), times s.
    Ellipse and heart are polygons of 180 corners, t = 0°, 2°, …. The constants were measured on 320
    frames of the original, all of which are reproduced bit for bit.

    Args:
        latents_classes: N×5 whole numbers: shape (0 square, 1 ellipse, 2 heart), scale (0…5),
            orientation (0…39), posX and posY (0…31).

    >>> image = render([[0, 5, 0, 16, 16]])[0]
    >>> image.shape, int(image.sum())
    ((64, 64), 361)
    """
    from identica.datasets._polygons import fill  # brings the compiler along

    classes = whole_numbers("latents_classes", latents_classes, SIZES)
    return fill(
        _outlines(),
        shape=classes[:, 0],
        centre=16 + 32 * classes[:, 3:] / 31,
        scale=0.5 + classes[:, 1] / 10,
        angle=-2 * np.pi * classes[:, 2] / 39,
    )


def _outlines() -> list[Array]:
    t = np.arange(180) * np.pi / 90
    height = 13 * np.cos(t) - 5 * np.cos(2 * t) - 2 * np.cos(3 * t) - np.cos(4 * t)
    return [
        9.598 * np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]),
        np.stack([12.7668 * np.cos(t), 7.2148 * np.sin(t)], axis=1),
        np.stack([9.59888 * np.sin(t) ** 3, -1.4384 - 0.66218 * height], axis=1),
    ]


def index_of(latents_classes: ArrayLike) -> NDArray[np.int64]:
    """The positions in the data set of the images with these classes (N×5).

    >>> index_of([[0, 0, 0, 0, 1], [2, 5, 39, 31, 31]])
    array([     1, 737279])
    """
    classes = whole_numbers("latents_classes", latents_classes, SIZES)
    return np.ravel_multi_index(tuple(classes.T), SIZES)


def classes_of(index: ArrayLike) -> Classes:
    """The classes (N×5) of the images at these positions of the data set.

    >>> classes_of([1])
    array([[0, 0, 0, 0, 1]])
    """
    places = whole_numbers("index", np.atleast_1d(as_array("index", index)), TOTAL)
    return np.stack(np.unravel_index(places, SIZES), axis=1).astype(np.int64)


def unpack(packed: ArrayLike) -> NDArray[np.uint8]:
    """Images of 0 and 1, N×64×64, from N×512 packed bits."""
    bits = as_array("packed", packed)
    check_array("packed", bits, "uint8", (None, 512))
    return np.unpackbits(bits, axis=1).reshape(-1, 64, 64)


def load(path: str | Path | None = None) -> NDArray[np.uint8]:
    """All images of the original dSprites, bit-packed (N×512), memory-mapped.

    The first call unpacks the archive (a pass over 3 GB, little memory) and leaves a file of
    377 MB under the data root, named by a hash of the archive: a later call reads the archive
    (26 MB) to find it, and notices if it was damaged in the meantime. Nothing is unpickled.

    Args:
        path: The original archive; by default
            `dsprites/dsprites_ndarray_co1sh3sc6or40x32y32_64x64.npz` under the data root.
    """
    if path is None:
        url = "https://github.com/google-deepmind/dsprites-dataset"
        path = find("dsprites", ORIGINAL, get=f"download it from {url}")
    with reading(path, "the dSprites archive") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        packed = data_root() / "dsprites" / f"dsprites_original_{digest[:16]}.npy"
        if not packed.is_file():
            _check_order(path)
            with zipfile.ZipFile(file) as archive:
                _write(packed, _stream(archive))
    try:
        images = map_npy(packed)
        check_array("packed", images, "uint8", (TOTAL, 512))
    except InputError:
        raise InputError(f"{packed} is damaged: delete it, and it will be made again") from None
    return images


def is_at_hand() -> bool:
    """Whether the original archive is under the data root."""
    return (data_root() / "dsprites" / ORIGINAL).is_file()


def sample(n: int, rng: Random) -> Classes:
    """Classes (n×5) of images drawn uniformly."""
    shape = count("n", n, at_most=MOST), len(SIZES)
    return as_rng("rng", rng).integers(0, SIZES, size=shape)


def pairs_uni(n: int, rng: Random) -> tuple[Classes, Classes]:
    """Classes of n pairs (n×5 each): a uniform anchor and its positive under UNI.

    Of the D = 5 factors, k ~ U{1, …, D−1} chosen at random are redrawn among their other values
    (Locatello et al., "Weakly-Supervised Disentanglement Without Compromises", ICML 2020).
    """
    rng = as_rng("rng", rng)
    anchors = sample(n, rng)
    return anchors, _uni(anchors, rng)


def pairs_lap(n: int, rng: Random) -> tuple[Classes, Classes]:
    """Classes of n pairs (n×5 each): a uniform anchor and its positive under LAP.

    The shape stays. Any other factor of K values at i moves to j with p ∝ exp(−|i − j| / ln K). If none
    changed, a random one is drawn again, from the same distribution without its current value
    (Klindt et al., "Towards Nonlinear Disentanglement in Natural Data with Temporal Sparse Coding",
    ICLR 2021).
    """
    rng = as_rng("rng", rng)
    anchors = sample(n, rng)
    return anchors, _lap(anchors, rng)


def _uni(classes: Classes, rng: np.random.Generator) -> Classes:
    n, d = classes.shape
    # The k smallest of d random numbers are at k places chosen without replacement.
    rank = rng.random((n, d)).argsort(axis=1).argsort(axis=1)
    changes = rank < rng.integers(1, d, size=(n, 1))
    step = rng.integers(1, SIZES, size=(n, d))
    return np.where(changes, (classes + step) % SIZES, classes)


def _lap(classes: Classes, rng: np.random.Generator) -> Classes:
    moved, free = classes.copy(), range(1, len(SIZES))
    for k in free:
        moved[:, k] = _move(classes[:, k], SIZES[k], rng, stay=True)
    same = np.flatnonzero((moved == classes).all(axis=1))
    chosen = rng.choice(free, size=len(same))
    for k in free:
        rows = same[chosen == k]
        moved[rows, k] = _move(classes[rows, k], SIZES[k], rng, stay=False)
    return moved


def _move(start: Classes, size: int, rng: np.random.Generator, stay: bool) -> Classes:
    distance = np.abs(np.arange(size) - start[:, None])
    weight = np.exp(-distance / np.log(size))
    if not stay:
        weight[distance == 0] = 0
    below = np.cumsum(weight, axis=1)
    threshold = rng.random((len(start), 1)) * below[:, -1:]
    # Rounding may put the threshold on the very end.
    return np.minimum((below <= threshold).sum(axis=1), size - 1)


def compare(packed: NDArray[np.uint8], *, progress: bool = False) -> tuple[int, int]:
    """How many of all images (N×512, bit-packed) differ from re-rendered ones, in how many pixels."""
    check_array("packed", packed, "uint8", (TOTAL, 512))
    images = pixels = 0
    for start in progress_bar(range(0, TOTAL, _CHUNK), unit="block", disable=not progress):
        index = np.arange(start, min(start + _CHUNK, TOTAL))
        off = (unpack(packed[index]) != render(classes_of(index))).sum(axis=(1, 2))
        images, pixels = images + int((off > 0).sum()), pixels + int(off.sum())
    return images, pixels


def picture(packed: NDArray[np.uint8] | None = None) -> NDArray[np.uint8]:
    """A grey picture of images: along each row one factor runs through its values.

    They are re-rendered, or taken from `packed` ones as from `load`.
    """
    rows = np.tile(sample(1, rng=0), (len(SIZES), COLUMNS, 1))
    for k, size in enumerate(SIZES):
        rows[k, :, k] = np.linspace(0, size - 1, COLUMNS).round()
    chosen = rows.reshape(-1, 5)
    images = render(chosen) if packed is None else unpack(packed[index_of(chosen)])
    return tile(images.reshape(*rows.shape[:2], 64, 64).astype(bool))


def _write(path: Path, chunks: Iterable[Array]) -> None:
    """Pack the images, chunk after chunk, into an npy file; never all of them in memory."""
    header = {"descr": "|u1", "fortran_order": False, "shape": (TOTAL, 512)}
    with writing("path", path) as temporary, temporary.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        for images in chunks:
            file.write(np.packbits(images.reshape(len(images), 64 * 64), axis=1).tobytes())


def _check_order(path: str | Path) -> None:
    """Raise unless an archive has the classes of all images in order, after a column for the colour."""
    classes = read_npz(path, ["latents_classes"], LARGEST)["latents_classes"]
    if classes.shape != (TOTAL, 6) or (classes[:, 1:] != classes_of(np.arange(TOTAL))).any():
        raise ValueError("latents_classes must be those of dSprites, in their order")


def _stream(archive: zipfile.ZipFile) -> Iterator[Array]:
    """All images, chunk after chunk; reading past the last byte compares the checksum."""
    with archive.open("imgs.npy") as file:
        shape, fortran, dtype = read_header(file, archive.getinfo("imgs.npy").file_size)
        if shape != (TOTAL, 64, 64) or fortran or dtype != np.uint8:
            raise ValueError(f"imgs must be uint8 of shape {TOTAL}×64×64, got {dtype} {shape}")
        for start in range(0, TOTAL, _CHUNK):
            n = min(_CHUNK, TOTAL - start)
            images = np.frombuffer(file.read(n * 4096), np.uint8).reshape(n, 64, 64)
            if images.max() > 1:
                raise ValueError("imgs must be 0 or 1")
            yield images
        if file.read(1):
            raise ValueError("imgs has bytes after its end")
