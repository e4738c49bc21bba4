"""Dimension of the codes, and how much of what pairs share each code holds and all codes miss."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from identica.diagnosis.sequence import Order
from identica.metrics.standardise import centre_and_scale, is_constant, standardised
from identica.spaces import Product, Space, Sphere

Matrix = NDArray[np.float64]
Rows = NDArray[np.int64]

NEIGHBOURS = 2500  # codes whose nearest neighbours are computed
SHARED = 0.1  # correlation within pairs up to which a code counts as noise
DIRECTIONS = 16  # codes that are predicted from the others
HALF = 1000  # rows of each half used for that
WIDTHS = 2.0, 1.0, 0.5  # kernel widths of the regressions, in standard deviations of the codes


class Intrinsic(NamedTuple):
    """Dimension of the surface that codes lie on, its standard error, and the largest possible value."""

    dimension: float
    error: float
    room: int


@dataclass(frozen=True)
class Dimensions:
    """Measurements of the dimension of the codes.
    Attributes:
        varies: which codes vary at all.
        correlations: correlation of each code with that of the positive.
        canonical: canonical correlations of the codes of anchors and positives.
        intrinsic: dimension of the surface that the codes lie on.
        columns: number of dimensions of the observations; None if they are not rows.
        missed: greatest share of variance that pairs of observations share beyond their codes.
        explained: share of the variance of the observations that the codes explain.
        own: smallest share of a code that the other codes do not predict, see `own_share`; None on a
            sphere, where the other codes determine each one.
        missed_error: standard error of `missed`.
    """

    varies: list[bool]
    correlations: Matrix
    canonical: Matrix
    intrinsic: Intrinsic
    columns: int | None
    missed: float | None
    explained: float | None
    own: float | None = None
    missed_error: float = 0.0


def dimensions(
    h: Matrix,
    h_pos: Matrix,
    space: Space,
    observations: tuple[Matrix, Matrix] | None,
    order: Order,
    random_state: int,
) -> Dimensions:
    """Measure the dimension of codes h and h_pos (N×n), and what they miss of given observations."""
    surfaces = [
        intrinsic_dimension(h[:, columns], part, order, random_state)
        for part, columns in parts(space)
    ]
    own = [
        own_share(h[:, columns], h_pos[:, columns], order, random_state)
        for part, columns in parts(space)
        if not isinstance(part, Sphere)
    ]
    left_out = explained = columns = None
    error = 0.0
    if observations is not None:
        columns = int(np.linalg.matrix_rank(standardised(observations[0]), rtol=1e-3))
        left_out, error, explained = missed(*observations, h, h_pos, order, random_state)
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
        explained,
        min(own) if own else None,
        error,
    )


def parts(space: Space) -> list[tuple[Space, slice]]:
    """The factors of a product space with their columns; the space itself if it is not a product."""
    spaces = space.spaces if isinstance(space, Product) else (space,)
    ends = np.cumsum([part.dim for part in spaces])
    return [(part, slice(end - part.dim, end)) for part, end in zip(spaces, ends, strict=True)]


def varying(h: Matrix) -> NDArray[np.bool_]:
    """Which codes vary by more than a thousandth of the most variable one."""
    spread = h.std(0)
    return np.asarray(~is_constant(h) & (spread > 1e-3 * spread.max()))


def pair_correlations(h: Matrix, h_pos: Matrix) -> Matrix:
    """Correlation of each code with that of the positive, n values; 0 for a constant code."""
    return np.asarray((standardised(h) * standardised(h_pos)).mean(0))


def canonical_correlations(h: Matrix, h_pos: Matrix) -> Matrix:
    """Canonical correlations of the codes of anchors and positives, n values in descending order."""
    from scipy.linalg import orth

    one, other = (orth(standardised(matrix), rcond=1e-8) for matrix in (h, h_pos))
    singular = np.linalg.svd(one.T @ other, compute_uv=False).clip(0, 1)
    return np.asarray(np.pad(singular, (0, h.shape[1] - len(singular))))


def intrinsic_dimension(h: Matrix, space: Space, order: Order, random_state: int = 0) -> Intrinsic:
    """Dimension of the set that codes lie on, from the distances r of close pairs of rows:

        d = 1 / mean log(r_0 / r),  r < r_0

    (Takens' estimator of the correlation dimension), relative to codes that fill their space: the same
    columns shuffled independently, or uniform points on the sphere. Successive rows are close whatever the
    dimension, so only rows far apart in time count (Theiler, "Spurious dimension from correlation
    algorithms applied to limited time-series data", 1986). The standard error is a jackknife estimate over
    tenths of the time.
    """
    rng = np.random.default_rng(random_state)
    live = h[:, varying(h)]
    n = live.shape[1]
    if n < 2:
        return Intrinsic(float(n), 0.0, n)
    rows = np.sort(rng.permutation(len(live))[:NEIGHBOURS])
    live = live[rows]
    if isinstance(space, Sphere) and n == h.shape[1]:
        room, full = n - 1, rng.normal(size=live.shape)
        full *= np.linalg.norm(live, axis=1, keepdims=True) / np.linalg.norm(
            full, axis=1, keepdims=True
        )
    else:
        room, live = n, _whitened(live)
        full = rng.permuted(live, axis=0)
    first, second = np.triu_indices(len(rows), 1)
    far = np.abs(order.times[rows[first]] - order.times[rows[second]]) > order.apart
    number = min(2 * len(rows), int(far.sum()) // 20)
    if number < 2 * len(rows) // 20:
        return Intrinsic(float(room), float(room), room)
    tenth = np.argsort(np.argsort(order.times[rows], kind="stable")) * 10 // len(rows)
    found, without = _correlation_dimension(live, far, number, tenth)
    filled, _ = _correlation_dimension(full, np.ones_like(far), number * len(far) // int(far.sum()))
    if not filled:  # codes of a few values are all equally close
        return Intrinsic(float(room), float(room), room)
    error = np.sqrt(0.9 * np.square(without - without.mean()).sum())
    return Intrinsic(float(room * found / filled), float(room * error / filled), room)


def _correlation_dimension(
    points: Matrix, pairs: NDArray[np.bool_], number: int, group: Rows | None = None
) -> tuple[float, Matrix]:
    """The dimension from the closest pairs of points, and its value without each group of points; both up
    to the same factor, as outliers are left out. 0 if no distance is smaller than another."""
    from scipy.spatial.distance import pdist

    distances = pdist(points)
    chosen = np.flatnonzero(pairs & (distances > 0))
    if not len(chosen):
        return 0.0, np.zeros(1)
    number = min(number, len(chosen) - 1)
    chosen = chosen[np.argpartition(distances[chosen], number)[: number + 1]]
    logs = np.log(distances[chosen].max() / distances[chosen])
    kept = logs <= np.quantile(logs, 0.9)  # outliers dominate the tail
    total, count = float(logs[kept].sum()), int(kept.sum())
    if total == 0:
        return 0.0, np.zeros(1)
    if group is None:
        return count / total, np.zeros(1)
    ends = np.array(np.triu_indices(len(points), 1))[:, chosen[kept]]
    without = []
    for each in range(int(group.max()) + 1):
        left = logs[kept][(group[ends] != each).all(0)]
        without.append(len(left) / left.sum() if left.sum() > 0 else 0.0)
    return count / total, np.array(without)


def _whitened(matrix: Matrix) -> Matrix:
    centred = standardised(matrix)
    values, vectors = np.linalg.eigh(centred.T @ centred / len(centred))
    return np.asarray(
        centred @ vectors / np.sqrt(np.maximum(values, 1e-6 * values[-1])) @ vectors.T
    )


def related(x: Matrix, x_pos: Matrix, order: Order) -> bool:
    """Whether the observations of a pair are related: the direction in which standardised columns covary
    most in one half of the pairs is tested on the other half."""
    mean, scale = centre_and_scale(x)
    seen, seen_pos = ((part - mean) / scale for part in (x, x_pos))
    fit, score = order.halves(0)
    covary = seen[fit].T @ seen_pos[fit]
    direction = np.linalg.eigh(covary + covary.T)[1][:, -1]
    one, other = (standardised((part[score] @ direction)[:, None]) for part in (seen, seen_pos))
    return bool((one * other).mean() > max(SHARED, 4 / np.sqrt(len(score))))


def missed(
    x: Matrix, x_pos: Matrix, h: Matrix, h_pos: Matrix, order: Order, random_state: int = 0
) -> tuple[float, float, float]:
    """The share of the observations that pairs have in common but the codes miss, its standard error, and
    the share of variance that the codes explain.

    Whitened observations are regressed on the codes by a nonlinear model, with one half of the pairs. In
    the other half, the residual of an observation is compared with that of its positive and with that of a
    control: the positive with the nearest code, among those at other times. Any function of the codes that
    the regression misses is shared with the control as well, whereas a factor that is missing from the codes
    is shared with the positive only. The first number is the share of variance that is shared with positives
    and not with controls, in the direction in which it is largest in the other half of the time. Its
    standard error comes from blocks of time. The unexplained variance includes noise, which pairs do
    not share.

    Args:
        x, x_pos: observations, N×d.
        h, h_pos: their codes, N×n.
    """
    fit, score = order.halves(random_state)
    seen = _whitened_alike(x, x_pos)
    left, left_pos = _least_unexplained(seen, (h, h_pos), fit, score, random_state)
    both = (left.T @ left + left_pos.T @ left_pos) / (2 * len(score))
    explained = 1 - float(np.trace(both)) / len(both)
    rows, strangers = _near_strangers(h[score], h_pos[score], order.near(score, score))
    if not len(rows):
        return 0.0, 0.0, explained
    shares = left[rows], left_pos[rows] - left_pos[strangers]
    # the best of many directions is biased upwards, above all for similar rows: each half of the time
    # selects a direction, which is evaluated on the other half
    ahead = np.argsort(order.times[score[rows]], kind="stable")
    parts = ahead[: len(ahead) // 2], ahead[len(ahead) // 2 :]
    products = np.empty(len(rows))
    for found, judged in (parts, parts[::-1]):
        beyond = shares[0][found].T @ shares[1][found]
        direction = np.linalg.eigh(beyond + beyond.T)[1][:, -1]
        products[judged] = np.prod([part[judged] @ direction for part in shares], axis=0)
    stretches = (order.times[score[rows]] // max(1, order.apart))[ahead]
    cuts = np.flatnonzero(np.diff(stretches)) + 1
    sums = np.array([part.sum() for part in np.split(products[ahead] - products.mean(), cuts)])
    error = float(np.sqrt((sums**2).sum())) / len(rows)
    most = float(products.mean())
    return (min(1.0, most) if most > 3 * error else 0.0), error, explained


def own_share(h: Matrix, h_pos: Matrix, order: Order, random_state: int = 0) -> float:
    """The share of a code that the other codes do not predict, minimised over codes and principal
    components: 1 for independent factors, 0 if one code is a function of the others.

    Only the part of a code that pairs share counts, so noise does not.
    """
    live = varying(h)
    scale = h.std(0)[live]
    codes, codes_pos = ((part - h.mean(0))[:, live] / scale for part in (h, h_pos))
    n = codes.shape[1]
    if n < 2:
        return 1.0
    fit, score = (half[:: -(-len(half) // HALF)] for half in order.halves(random_state))
    turn = np.linalg.eigh(codes.T @ codes)[1]
    shares = [1.0]
    for basis in (np.eye(n), turn):
        both = codes @ basis, codes_pos @ basis
        for k in range(min(n, DIRECTIONS)):
            target = both[0][:, k : k + 1], both[1][:, k : k + 1]
            shared = float((target[0][score] * target[1][score]).sum())
            if shared <= SHARED * float(np.square(target[0][score]).sum()):
                continue
            others = np.delete(both[0], k, 1), np.delete(both[1], k, 1)
            left, left_pos = _least_unexplained(
                target, others, fit, score, random_state, (1e-6, 1e-3), landmarks=100
            )
            shares.append(float((left * left_pos).sum()) / shared)
    return max(0.0, min(shares))


def _near_strangers(h: Matrix, h_pos: Matrix, near: NDArray[np.bool_]) -> tuple[Rows, Rows]:
    """Anchors and their controls: for each, the positive of another anchor at a different time whose code is
    nearest.

    Only anchors with a control at least as close as their own positive are comparable; in many
    dimensions, the quarter of the anchors that comes closest to this.
    """
    from scipy.spatial.distance import cdist

    _, spread = centre_and_scale(h)
    distances = np.where(near, np.inf, cdist(h / spread, h_pos / spread))
    strangers = distances.argmin(1)
    excess = distances.min(1) - np.linalg.norm((h_pos - h) / spread, axis=1)
    fairest = np.argsort(excess)[: max(-(-len(h) // 4), int((excess <= 0).sum()))]
    fairest = fairest[np.isfinite(excess[fairest])]
    return fairest, np.asarray(strangers[fairest], dtype=np.int64)


def _least_unexplained(
    seen: tuple[Matrix, Matrix],
    codes: tuple[Matrix, Matrix],
    fit: Rows,
    score: Rows,
    random_state: int,
    penalties: tuple[float, ...] = (1e-6,),
    landmarks: int = 400,
) -> tuple[Matrix, Matrix]:
    """Residuals of both members of pairs after a smooth regression on the codes, at the best kernel width."""
    rests = []
    known = np.vstack([part[fit] for part in seen])
    least, most = known.min(0), known.max(0)
    for width in WIDTHS:
        one, other = _smooth_features(*codes, fit, width, landmarks, random_state)
        inputs = np.vstack([one[fit], other[fit]])
        products, targets = inputs.T @ inputs, inputs.T @ known
        for penalty in penalties:
            ridge = penalty * len(inputs) * np.eye(len(products))
            weights = np.linalg.solve(products + ridge, targets)
            # no extrapolation beyond the observed values
            guesses = [(part[score] @ weights).clip(least, most) for part in (one, other)]
            rests.append((seen[0][score] - guesses[0], seen[1][score] - guesses[1]))
    return min(rests, key=lambda rest: float(np.square(rest).mean()))


def _whitened_alike(x: Matrix, x_pos: Matrix) -> tuple[Matrix, Matrix]:
    """Whiten both members of the pairs; very weak columns are not amplified and constant ones are dropped."""
    mean, scale = x.mean(0), x.std(0)
    live = scale > 1e-9 * max(float(scale.max()), 1e-300)
    seen, seen_pos = ((part - mean)[:, live] / scale[live] for part in (x, x_pos))
    values, vectors = np.linalg.eigh(seen.T @ seen / len(seen))
    whiten = vectors / np.sqrt(np.maximum(values, 1e-4 * values[-1]))
    return seen @ whiten, seen_pos @ whiten


def _smooth_features(
    h: Matrix, h_pos: Matrix, fit: Rows, width: float, landmarks: int, random_state: int
) -> tuple[Matrix, Matrix]:
    """The codes and smooth functions of them (Nyström features of a Gaussian kernel)."""
    from sklearn.kernel_approximation import Nystroem

    centre, spread = centre_and_scale(h)
    codes, codes_pos = ((part - centre) / spread for part in (h, h_pos))
    kernel = Nystroem(
        gamma=1 / (width**2 * h.shape[1]),
        n_components=min(landmarks, len(fit)),
        random_state=random_state,
    ).fit(codes[fit])
    one, other = (
        np.hstack([kernel.transform(part), part, np.ones((len(part), 1))])
        for part in (codes, codes_pos)
    )
    return one, other
