"""How many dimensions codes have, which of them carry what pairs share, and what they miss of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from identica.metrics.columns import is_constant, standardised
from identica.spaces import Product, Space, Sphere

Matrix = NDArray[np.float64]
Rows = NDArray[np.int64]

TREE = 4096  # codes whose neighbours are looked up
LANDMARKS = 400  # of the regression of observations on codes
WIDTHS = 2.0, 1.0, 0.5  # of its kernel, in standard deviations of the codes


class Intrinsic(NamedTuple):
    """Dimensions of the surface that codes lie on, its standard error, and how many there could be."""

    dimension: float
    error: float
    room: int


@dataclass(frozen=True)
class Dimensions:
    """How many dimensions the codes have.

    Attributes:
        varies: which codes vary at all.
        correlations: of each code with its positive's.
        canonical: of the combinations of codes that pairs share most.
        intrinsic: dimension of the surface that the codes lie on.
        columns: how many dimensions the observations have; None if they are not rows.
        missed: greatest share of variance that pairs of observations share beyond their codes.
        told: share of the observations' variance that the codes determine.
    """

    varies: list[bool]
    correlations: Matrix
    canonical: Matrix
    intrinsic: Intrinsic
    columns: int | None
    missed: float | None
    told: float | None


def dimensions(
    h: Matrix,
    h_pos: Matrix,
    space: Space,
    observations: tuple[Matrix, Matrix] | None,
    random_state: int,
) -> Dimensions:
    """The dimensions of codes h and h_pos (N×n), and what they miss of the observations, if given."""
    surfaces = [
        intrinsic_dimension(h[:, columns], part, random_state=random_state)
        for part, columns in parts(space)
    ]
    left_out = told = columns = None
    if observations is not None:
        columns = int(np.linalg.matrix_rank(standardised(observations[0]), rtol=1e-3))
        left_out, told = missed(*observations, h, h_pos, random_state=random_state)
    return Dimensions(
        varying(h).tolist(),
        pair_correlations(h, h_pos),
        canonical_correlations(h, h_pos),
        Intrinsic(
            sum(surface.dimension for surface in surfaces),
            math.sqrt(sum(surface.error**2 for surface in surfaces)),
            sum(surface.room for surface in surfaces),
        ),
        columns,
        left_out,
        told,
    )


def parts(space: Space) -> list[tuple[Space, slice]]:
    """The simple spaces that a space consists of, with their columns."""
    spaces = space.spaces if isinstance(space, Product) else (space,)
    ends = np.cumsum([part.dim for part in spaces])
    return [(part, slice(end - part.dim, end)) for part, end in zip(spaces, ends, strict=True)]


def varying(h: Matrix) -> NDArray[np.bool_]:
    """Which codes vary by more than a thousandth of the one that varies most."""
    spread = h.std(0)
    return np.asarray(~is_constant(h) & (spread > 1e-3 * spread.max()))


def pair_correlations(h: Matrix, h_pos: Matrix) -> Matrix:
    """Correlation of each code with its positive's, n values; 0 for a constant one."""
    return np.asarray((standardised(h) * standardised(h_pos)).mean(0))


def canonical_correlations(h: Matrix, h_pos: Matrix) -> Matrix:
    """Correlations of the combinations of codes that pairs share most, falling, n values."""
    bases = [_orthonormal(matrix) for matrix in (h, h_pos)]
    found = np.linalg.svd(bases[0].T @ bases[1], compute_uv=False).clip(0, 1)
    return np.asarray(np.pad(found, (0, h.shape[1] - len(found))))


def _orthonormal(matrix: Matrix) -> Matrix:
    left, singular, _ = np.linalg.svd(standardised(matrix), full_matrices=False)
    return np.asarray(left[:, singular > 1e-8 * max(singular[0], 1e-300)])


def intrinsic_dimension(h: Matrix, space: Space, *, random_state: int = 0) -> Intrinsic:
    """Dimension of the set that codes lie on, from the two nearest neighbours of each:

        d = N / Σ_i log(r_i2 / r_i1)

    (Facco et al., "Estimating the intrinsic dimension of datasets by a minimal neighborhood information",
    2017), relative to codes that fill their space: of the same columns each shuffled by
    itself, or uniform on the sphere.
    """
    rng = np.random.default_rng(random_state)
    live = h[:, varying(h)]
    if len(live) > TREE:
        live = live[rng.choice(len(live), TREE, replace=False)]
    n = live.shape[1]
    if n < 2:
        return Intrinsic(float(n), 0.0, n)
    if isinstance(space, Sphere) and n == h.shape[1]:
        room, full = n - 1, rng.normal(size=live.shape)
        full *= np.linalg.norm(live, axis=1, keepdims=True) / np.linalg.norm(
            full, axis=1, keepdims=True
        )
    else:
        room, live = n, _whitened(live)
        full = rng.permuted(live, axis=0)
    error = room * np.sqrt(2 / len(live))
    return Intrinsic(room * _two_nearest(live) / _two_nearest(full), float(error), room)


def _whitened(matrix: Matrix) -> Matrix:
    centred = standardised(matrix)
    values, vectors = np.linalg.eigh(centred.T @ centred / len(centred))
    return np.asarray(
        centred @ vectors / np.sqrt(np.maximum(values, 1e-6 * values[-1])) @ vectors.T
    )


def _two_nearest(points: Matrix) -> float:
    from scipy.spatial import cKDTree

    distances: Matrix = np.asarray(cKDTree(points).query(points, k=3)[0])[:, 1:]
    apart = distances[distances[:, 0] > 0]
    logs = np.sort(np.log(apart[:, 1] / apart[:, 0]))
    if not len(logs) or logs[-1] <= 0:
        return 0.0
    kept = logs[: max(1, int(0.9 * len(logs)))]  # the tail is that of outliers
    # the mean of the kept nine tenths of an exponential distribution is a known part of its own
    return float((1 + 0.1 * np.log(0.1) / 0.9) / kept.mean())


def missed(
    x: Matrix, x_pos: Matrix, h: Matrix, h_pos: Matrix, *, random_state: int = 0
) -> tuple[float, float]:
    """What the codes leave out of the observations although pairs share it, and what they hold.

    Observations are whitened and regressed on the codes, not linearly, with one half of the pairs.
    In the other half, what is left of an observation is compared with what is left of its positive,
    and of a stranger: the other positive whose code is nearest. Whatever depends on the codes alone,
    however roughly, is shared with that stranger as well; a factor that is missing from the codes is shared
    with the positive only. The first number is the share of variance that positives share and
    strangers do not, in the direction in which it is greatest. The second is the share of all variance
    that the codes explain; what pairs do not share (noise) may well be left out.

    Args:
        x, x_pos: observations, N×d.
        h, h_pos: their codes, N×n.
    """
    order = np.random.default_rng(random_state).permutation(len(x))
    fit, score = order[: len(x) // 2], order[len(x) // 2 :]
    seen = _whitened_alike(x, x_pos)
    rests = [_unexplained(seen, (h, h_pos), fit, score, w, random_state) for w in WIDTHS]
    left, left_pos = min(rests, key=lambda rest: float(np.square(rest).mean()))
    both = (left.T @ left + left_pos.T @ left_pos) / (2 * len(score))
    rows, strangers = _near_strangers(h[score], h_pos[score])
    beyond = left[rows].T @ (left_pos[rows] - left_pos[strangers]) / len(rows)
    shared, directions = np.linalg.eigh((beyond + beyond.T) / 2)
    most, direction = float(shared[-1]), directions[:, -1]
    related = most > 4 / np.sqrt(len(rows)) * float(direction @ both @ direction)
    return min(1.0, most) if related else 0.0, 1 - float(np.trace(both)) / len(both)


def _near_strangers(h: Matrix, h_pos: Matrix) -> tuple[Rows, Rows]:
    """Anchors, and for each the positive of another one whose code is nearest to the anchor's.

    Only anchors that have a stranger no farther than their own positive can be compared fairly; in
    many dimensions, the quarter that comes nearest to it.
    """
    from scipy.spatial import cKDTree

    spread = np.where(h.std(0) > 0, h.std(0), 1.0)
    distances, found = map(np.asarray, cKDTree(h_pos / spread).query(h / spread, k=2))
    rows = np.arange(len(h))
    second = (found[:, 0] == rows).astype(int)
    distance, strangers = distances[rows, second], found[rows, second]
    excess = distance - np.linalg.norm((h_pos - h) / spread, axis=1)
    fairest = np.argsort(excess)[: max(-(-len(h) // 4), int((excess <= 0).sum()))]
    return fairest, np.asarray(strangers[fairest], dtype=np.int64)


def _unexplained(
    seen: tuple[Matrix, Matrix],
    codes: tuple[Matrix, Matrix],
    fit: Rows,
    score: Rows,
    width: float,
    random_state: int,
) -> tuple[Matrix, Matrix]:
    """What a smooth regression on the codes leaves of both members of a pair."""
    one, other = _smooth_features(*codes, fit, width, random_state)
    inputs = np.vstack([one[fit], other[fit]])
    ridge = 1e-6 * len(inputs) * np.eye(inputs.shape[1])
    targets = np.vstack([part[fit] for part in seen])
    weights = np.linalg.solve(inputs.T @ inputs + ridge, inputs.T @ targets)
    return seen[0][score] - one[score] @ weights, seen[1][score] - other[score] @ weights


def _whitened_alike(x: Matrix, x_pos: Matrix) -> tuple[Matrix, Matrix]:
    """Uncorrelated columns of unit variance; very weak ones are not blown up, constant ones go."""
    mean, scale = x.mean(0), x.std(0)
    live = scale > 1e-9 * max(float(scale.max()), 1e-300)
    seen, seen_pos = ((part - mean)[:, live] / scale[live] for part in (x, x_pos))
    values, vectors = np.linalg.eigh(seen.T @ seen / len(seen))
    whiten = vectors / np.sqrt(np.maximum(values, 1e-4 * values[-1]))
    return seen @ whiten, seen_pos @ whiten


def _smooth_features(
    h: Matrix, h_pos: Matrix, fit: Rows, width: float, random_state: int
) -> tuple[Matrix, Matrix]:
    """The codes and smooth functions of them (the Nyström method for a Gaussian kernel)."""
    from sklearn.kernel_approximation import Nystroem

    centre, spread = h.mean(0), np.where(h.std(0) > 0, h.std(0), 1.0)
    codes, codes_pos = ((part - centre) / spread for part in (h, h_pos))
    kernel = Nystroem(
        gamma=1 / (width**2 * h.shape[1]),
        n_components=min(LANDMARKS, len(fit)),
        random_state=random_state,
    ).fit(codes[fit])
    one, other = (
        np.hstack([kernel.transform(part), part, np.ones((len(part), 1))])
        for part in (codes, codes_pos)
    )
    return one, other
