"""Natural Sprites: rendered shapes that move and grow as measured in real videos.

Klindt et al., "Towards Nonlinear Disentanglement in Natural Data with Temporal Sparse Coding",
ICLR 2021; shapes as in Spriteworld (Watters et al., 2019).
"""

from __future__ import annotations

import ast
import csv
from dataclasses import dataclass
from io import TextIOWrapper
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from identica._validate import as_path, as_rng, count, flag, instance
from identica.datasets._arguments import MOST, real_matrix, whole_numbers
from identica.datasets.kitti_masks import KittiMasks
from identica.datasets.pictures import tile
from identica.datasets.reading import reading
from identica.datasets.root import find
from identica.errors import InputError

FACTORS = ("x", "y", "scale", "orientation", "shape")
SHAPES = ("square", "triangle", "star_4", "spoke_4")
SIZES = (32, 32, 6, 40, 4)  # of the discrete version
MEASURED = "downscale_keepaspect.csv"

Array = NDArray[Any]
Floats = NDArray[np.float64]
Window = tuple[float, float, float]  # x, y, area
Random = np.random.Generator | int


def render(factors: ArrayLike) -> NDArray[np.uint8]:
    """White shapes on black, anti-aliased: N×64×64 of 0…255.

    A pixel's value is the share of 5×5 points in it that lie inside the shape, which has area
    (64·scale)² and is turned by orientation · 9°.

    Args:
        factors: N×5: x and y of the centre as shares of the image, from the upper left (0…1);
            scale (above 0, at most 1); orientation (whole, 0…39); shape (whole, 0…3, see SHAPES).

    >>> image = render([[0.5, 0.5, 0.25, 0, 0]])[0]
    >>> image.shape, int(image.sum()) // 255
    ((64, 64), 256)
    """
    from identica.datasets._polygons import fill  # brings the compiler along

    values = real_matrix("factors", factors, 5)
    wrong = (values < 0) | (values > [1, 1, 1, 39, 3])
    wrong[:, 2] |= values[:, 2] == 0
    wrong[:, 3:] |= values[:, 3:] % 1 != 0
    if wrong.any():
        k = int(wrong.any(axis=0).argmax())
        limits = ("in 0…1", "in 0…1", "above 0, at most 1", "whole, 0…39", "whole, 0…3")[k]
        raise InputError(f"factors: {FACTORS[k]} must be {limits}, got {values[wrong[:, k], k][0]}")
    return fill(
        _outlines(),
        shape=values[:, 4],
        centre=64 * values[:, :2],
        scale=64 * values[:, 2],
        angle=-np.deg2rad(9 * values[:, 3]),  # y points down, so this turns to the left
        samples=5,
        white=255,
    )


def _outlines() -> list[Array]:
    """Corners of the four shapes, each of area 1, y pointing down."""

    def ring(radius: float, degrees: ArrayLike) -> Array:
        angle = np.deg2rad(degrees)
        return radius * np.stack([np.cos(angle), -np.sin(angle)], axis=1)

    quarters = 90 * np.arange(4)
    core, tips = ring(1, quarters + 45), ring(1, quarters)
    shapes = [
        ring(1, quarters + 45),
        ring(1, [90, 210, 330]),
        np.stack([core, ring(2, quarters + 90)], axis=1).reshape(-1, 2),
        # Each side of the inner square carries a bar of length 1.
        np.stack([core + tips, core, core + np.roll(tips, -1, axis=0)], axis=1).reshape(-1, 2),
    ]
    return [shape / np.sqrt(_area(shape)) for shape in shapes]


def _area(corners: Array) -> float:
    x, y = corners.T
    return float(abs(x @ np.roll(y, -1) - y @ np.roll(x, -1)) / 2)


@dataclass(frozen=True, eq=False)
class NaturalSprites:
    """Pairs of sprites: x, y and scale as measured, orientation and shape at random but shared.

    Factors are N×5 (see FACTORS): whole numbers below SIZES if discrete, else as `render` takes
    them.

    Args:
        name: "natural-sprites", or "natural-sprites-kitti" if driven by KITTI Masks.
        transitions: M×2×3, (x, y, scale) of the two frames of each transition; bins if discrete.
        values: None, or for the discrete version what the bins of x, y and scale stand for.
    """

    name: str
    transitions: Array
    values: tuple[Floats, Floats, Floats] | None = None

    def __post_init__(self) -> None:
        self.transitions.setflags(write=False)

    @property
    def discrete(self) -> bool:
        """Whether factors are whole numbers."""
        return self.values is not None

    def pairs(self, n: int, rng: Random) -> tuple[Array, Array]:
        """Factors of n pairs, n×5 each: a random transition, a random orientation and shape."""
        rng = as_rng("rng", rng)
        moves = self.transitions[
            rng.integers(len(self.transitions), size=count("n", n, at_most=MOST))
        ]
        kept = rng.integers(0, SIZES[3:], size=(n, 2))
        first, second = (np.concatenate([moves[:, k], kept], axis=1) for k in (0, 1))
        return first, second

    def sample(self, n: int, rng: Random) -> Array:
        """Factors of n images: uniform on the grid if discrete, else first members of pairs."""
        if not self.discrete:
            return self.pairs(n, rng)[0]
        return as_rng("rng", rng).integers(0, SIZES, size=(count("n", n, at_most=MOST), 5))

    def images(self, factors: ArrayLike) -> NDArray[np.uint8]:
        """The images, N×64×64 of 0…255, with these factors."""
        if self.values is None:
            return render(factors)
        bins = whole_numbers("factors", factors, SIZES)
        measured = [values[bins[:, k]] for k, values in enumerate(self.values)]
        return render(np.column_stack([*measured, bins[:, 3:]]))


def load(path: str | Path | None = None, *, discrete: bool = False) -> NaturalSprites:
    """Natural Sprites, driven by the transitions measured in YouTube-VOS.

    A comma-separated file with a heading and the columns `id`, `cat_id` (of an object and its
    class) and `t_0`, `t_1`, … (frames). A frame is empty or a list of windows of the video, each
    `None` or `(y, x, area)` of the object's mask in pixels of 64×64:

        id,cat_id,t_0,t_1
        1,26,"[(31.2, 40.5, 210), None]","[(31.0, 41.1, 214), (30.9, 9.3, 80)]"

    Two neighbouring frames that both have a window are a transition. It is kept if its area lies
    between the 5 % and 95 % quantiles in both frames; x and y are divided by 64, and
    scale = √(area/4096). The discrete version takes the middles of 32, 32 and 6 bins of x, y, area.

    Args:
        path: The file; by default `natural_sprites/downscale_keepaspect.csv` under the data root.
        discrete: Bins instead of measured values.
    """
    if path is None:
        url = "https://zenodo.org/record/3948069"
        path = find("natural_sprites", MEASURED, get=f"download it from {url}")
    return _from_moves("natural-sprites", _read(as_path("path", path)), discrete)


def from_kitti(masks: KittiMasks, *, discrete: bool = False) -> NaturalSprites:
    """`natural-sprites-kitti`: the same, driven by neighbouring frames of KITTI Masks.

    For use without the measured file. It is not the published data set, hence the other name.

    Args:
        masks: From `identica.datasets.kitti_masks.load()`.
        discrete: Bins instead of measured values.
    """
    instance("masks", masks, KittiMasks, "KITTI Masks")
    measured = masks.latents[:, [1, 0, 2]].astype(float)
    moves = np.stack([measured[masks.anchors], measured[masks.anchors + 1]], axis=1)
    return _from_moves("natural-sprites-kitti", moves, discrete)


def picture(sprites: NaturalSprites) -> NDArray[np.uint8]:
    """A grey picture of 36 random pairs: the two members of each side by side."""
    first, second = sprites.pairs(36, rng=0)
    images = np.stack([sprites.images(first), sprites.images(second)], axis=1)
    return tile(images.reshape(6, 12, 64, 64))


def _from_moves(name: str, moves: Floats, discrete: bool) -> NaturalSprites:
    """From M×2×3 measured (x, y, area), in pixels."""
    if len(moves) < 2:
        raise InputError(f"{name} needs at least 2 transitions, got {len(moves)}")
    flag("discrete", discrete)
    area = moves[:, :, 2]
    low, high = np.quantile(area, [0.05, 0.95], axis=0)
    moves = moves[((area >= low) & (area <= high)).all(axis=1)]
    if not len(moves):
        raise InputError(f"{name} needs transitions within the 5 % to 95 % quantiles of area")
    if not discrete:
        return NaturalSprites(name, _scaled(moves))
    bins = np.empty(moves.shape, np.int64)
    middles = np.zeros((max(SIZES[:3]), 3))  # there are fewer bins of area
    for k, size in enumerate(SIZES[:3]):
        edges = np.histogram_bin_edges(moves[:, :, k], size)
        # The last bin includes its upper edge.
        bins[:, :, k] = np.minimum(np.digitize(moves[:, :, k], edges) - 1, size - 1)
        middles[:size, k] = (edges[1:] + edges[:-1]) / 2
    x, y, scale = (_scaled(middles)[:size, k] for k, size in enumerate(SIZES[:3]))
    return NaturalSprites(name, bins, (x, y, scale))


def _scaled(measured: Floats) -> Floats:
    """From (x, y, area) in pixels to (x, y, scale) as shares of the image."""
    return np.concatenate([measured[..., :2] / 64, np.sqrt(measured[..., 2:] / 4096)], axis=-1)


def _read(path: Path) -> Floats:
    """The transitions of the measured file, M×2×3 (x, y, area)."""
    moves: list[tuple[Window, Window]] = []
    with reading(path, "comma-separated text") as file:
        # A byte order mark, as spreadsheets write it, is no part of the heading.
        rows = csv.reader(TextIOWrapper(file, encoding="utf-8-sig", newline=""))
        heading = {name: column for column, name in enumerate(next(rows, []))}
        missing = [name for name in ("id", "cat_id", "t_0", "t_1") if name not in heading]
        if missing:
            raise InputError(
                f"{path} must have the columns id, cat_id, t_0, t_1, …; missing: {missing}"
            )
        times = [heading[f"t_{k}"] for k in range(len(heading)) if f"t_{k}" in heading]
        for row in rows:
            try:
                frames = [_windows(row[time]) for time in times]
            except Exception:  # malformed expressions fail in many ways
                raise InputError(
                    f"{path}, line {rows.line_num}: a frame must be empty or a list of windows, each "
                    "None or (y, x, area) within 64×64 pixels"
                ) from None
            moves += [(a[w], b[w]) for a, b in pairwise(frames) for w in a if w in b]
    return np.array(moves, dtype=float).reshape(-1, 2, 3)


def _windows(cell: str) -> dict[int, Window]:
    """(x, y, area) in each window of a frame that shows the object."""
    found = {}
    windows = ast.literal_eval(cell) if cell else []
    if not isinstance(windows, list | tuple):
        raise ValueError
    for w, window in enumerate(windows):
        if window is not None:
            y, x, area = window
            numbers = all(type(value) in (int, float) for value in window)
            if not numbers or not (0 <= x <= 64 and 0 <= y <= 64 and 0 < area <= 4096):
                raise ValueError
            found[w] = (float(x), float(y), float(area))
    return found
