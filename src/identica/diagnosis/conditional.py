"""Laws of recovered codes: how positives vary around them, whether alike everywhere, and how they fill
their space."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from identica.spaces import Box, Euclidean, Space, Sphere

Matrix = NDArray[np.float64]

SHAPES = np.geomspace(0.3, 12.0, 60)  # β that are tried
WALL = 3.0  # spreads from a wall within which it is felt
INSIDE = 100  # differences away from walls that are enough for a fit
STREAM = 7_215_803  # where the seeds of simulations begin
ON_SURFACE = 0.3  # of the variation that distances from the centre have in shuffled codes
COVERED = 0.1  # distance of distribution functions from uniform
TAIL = 1e-3  # share of the codes at either end that their range leaves out


class Law(NamedTuple):
    """A generalised normal law p ∝ e^{−|d/scale|^shape} of differences, with 95 % intervals.

    `number` is that of the differences it was fitted to.
    """

    shape: float
    scale: float
    shape_interval: tuple[float, float]
    scale_interval: tuple[float, float]
    number: int

    @property
    def family(self) -> str:
        """The family of the estimator that is nearest in shape."""
        return nearest_family(self.shape)


def nearest_family(shape: float) -> str:
    """The estimator's name for a shape, by the nearest logarithm.

    >>> nearest_family(1.1), nearest_family(1.9), nearest_family(4)
    ('laplace', 'normal', 'gennorm3')
    """
    return "laplace" if shape < 2**0.5 else "normal" if shape < 6**0.5 else "gennorm3"


def generalized_normal(differences: Matrix, *, resamples: int = 200, random_state: int = 0) -> Law:
    r"""The generalised normal law around 0 of highest likelihood, with bootstrap intervals.

    For a given shape β the best scale is known, λ^β = β·mean |d|^β, which leaves

    .. math:: \min_\beta \; \log 2λ_β + \log Γ(1 + 1/β) + 1/β

    found on a grid and refined by a parabola.

    >>> d = np.random.default_rng(0).laplace(scale=0.05, size=4000)
    >>> law = generalized_normal(d)
    >>> law.shape_interval[0] < 1 < law.shape_interval[1], law.family
    (True, 'laplace')
    """
    from scipy.special import gammaln

    d = np.abs(np.asarray(differences, dtype=np.float64))
    unit = float(np.sqrt(np.mean(d**2))) or 1.0
    powers = np.power.outer(d / unit, SHAPES)
    rng = np.random.default_rng(random_state)
    counts = rng.multinomial(len(d), np.full(len(d), 1 / len(d)), size=resamples) / len(d)
    means = np.vstack([powers.mean(0), counts @ powers])  # the sample itself first
    log_scale = np.log(np.maximum(SHAPES * means, 1e-300)) / SHAPES
    cost = log_scale + gammaln(1 + 1 / SHAPES) + 1 / SHAPES
    shapes, scales = _lowest(cost, log_scale)
    low, high = np.quantile(shapes[1:], (0.025, 0.975)), np.quantile(scales[1:], (0.025, 0.975))
    return Law(
        float(shapes[0]),
        unit * float(scales[0]),
        (float(low[0]), float(low[1])),
        (unit * float(high[0]), unit * float(high[1])),
        len(d),
    )


def _lowest(cost: Matrix, log_scale: Matrix) -> tuple[Matrix, Matrix]:
    """Shape and scale at the lowest cost of each row, between the points of the grid."""
    rows = np.arange(len(cost))
    best = cost.argmin(1).clip(1, len(SHAPES) - 2)
    left, middle, right = cost[rows, best - 1], cost[rows, best], cost[rows, best + 1]
    bend = left - 2 * middle + right
    shift = np.where(bend > 1e-15, (left - right) / (2 * np.where(bend > 1e-15, bend, 1.0)), 0.0)
    place = best + shift.clip(-1, 1)
    points = np.arange(len(SHAPES))
    shape = np.exp(np.interp(place, points, np.log(SHAPES)))
    scale = np.exp([np.interp(p, points, row) for p, row in zip(place, log_scale, strict=True)])
    return shape, scale


# --- the range of codes, and positives around them --------------------------------------------------


def own_range(codes: Matrix) -> tuple[Matrix, Matrix]:
    """Least and greatest value of every code, but for the few at either end."""
    low, high = np.quantile(codes, (TAIL, 1 - TAIL), axis=0)
    return low, high


def inner_differences(h: Matrix, h_pos: Matrix, space: Space) -> list[Matrix]:
    """Differences of each code in pairs; in a box only of anchors that no wall is near to."""
    low, high = own_range(h)
    found = []
    for k, d in enumerate((h_pos - h).T):
        if isinstance(space, Box):
            reach = WALL * np.median(np.abs(d))
            d = d[(h[:, k] - low[k] > reach) & (high[k] - h[:, k] > reach)]
        found.append(d)
    return found


def code_laws(differences: list[Matrix], *, random_state: int = 0) -> list[Law | None]:
    """The law of each code's differences; None where there are few, or nothing varies."""
    return [
        generalized_normal(d, random_state=random_state)
        if len(d) >= INSIDE and float(np.std(d)) > 0
        else None
        for d in differences
    ]


def misfit(differences: list[Matrix], shape: float) -> float:
    """Greatest distance of the distribution functions of any code's differences and a generalised
    normal law of the given shape, at its best scale; 0 to 1."""
    from scipy.stats import gennorm, kstest

    distances = [0.0]
    for d in differences:
        if len(d) >= INSIDE and float(np.std(d)) > 0:
            scale = (shape * np.mean(np.abs(d) ** shape)) ** (1 / shape)
            distances.append(float(kstest(d / scale, gennorm(shape).cdf).statistic))
    return max(distances)


def concentration(h: Matrix, h_pos: Matrix) -> float:
    """κ of the von Mises–Fisher law with the mean cosine of the pairs; 0 where they are unrelated."""
    from scipy.optimize import brentq

    from identica.families import mean_cosine

    cosine = float(np.mean(_cosine(h, h_pos)))
    n, highest = h.shape[1], 1e6
    if cosine <= mean_cosine(n, 1e-6):
        return 0.0
    if cosine >= mean_cosine(n, highest):
        return highest
    return float(brentq(lambda kappa: mean_cosine(n, kappa) - cosine, 1e-6, highest))


def _cosine(h: Matrix, h_pos: Matrix) -> Matrix:
    size = np.linalg.norm(h, axis=1) * np.linalg.norm(h_pos, axis=1)
    return np.asarray((h * h_pos).sum(1) / np.where(size > 0, size, 1.0))


def simulated(
    h: Matrix, space: Space, law: list[Law | None] | float, *, random_state: int
) -> Matrix:
    """Positives of the codes as they would be, were the fitted law the same everywhere.

    Args:
        h: codes, N×n.
        law: one for each code, or the concentration on a sphere.
    """
    import torch

    from identica.families import GeneralizedNormal, VonMisesFisher

    # a stream of its own: data made from the same seed would be related to these draws
    source = torch.Generator().manual_seed(STREAM + random_state)
    if isinstance(space, Sphere):
        assert isinstance(law, float)
        sphere = Sphere(space.dim)
        centre = sphere.project(torch.from_numpy(np.ascontiguousarray(h)))
        drawn = VonMisesFisher(law).sample(sphere, centre, generator=source)
        return np.asarray(drawn.numpy()) * space.radius
    assert isinstance(law, list)
    low, high = own_range(h)
    positives = h.copy()
    for k, found in enumerate(law):
        if found is None:
            continue
        family = GeneralizedNormal(found.shape, found.scale)
        column: Any = np.ascontiguousarray(h[:, k : k + 1])
        line: Space = Euclidean(1)
        if isinstance(space, Box):
            line, column = Box(1, low[k], high[k]), column.clip(low[k], high[k])
        positives[:, k] = family.sample(line, torch.from_numpy(column), generator=source)[:, 0]
    return positives


# --- the same everywhere? ---------------------------------------------------------------------------


def position_dependence(
    h: Matrix, h_pos: Matrix, space: Space, law: list[Law | None] | float, *, random_state: int = 0
) -> float:
    r"""How much the spread of positives changes from place to place, as a standard deviation of its
    logarithm (0.1: by about a tenth).

    .. math:: σ^2 = \frac{1}{4n} \operatorname{Var}_h
        \bigl\| \bar M^{-1/2}\,\operatorname{Cov}(h̃ − h \mid h)\,\bar M^{-1/2} \bigr\|_F^2

    beyond what walls or the curvature of a sphere make of a law that is the same everywhere, which
    is simulated. The covariance is a quadratic function of the place; two functions, each fitted to one half
    of the pairs, are multiplied, so that noise does not count.

    If positives vary alike around all true factors, any bend of the map from factors to codes
    shows here: a map that leaves the covariance constant is affine.
    """
    null = simulated(h, space, law, random_state=random_state)
    varies = np.std(h, axis=0) > 1e-9 * max(float(np.abs(h).max()), 1e-300)
    place = _quadratic((h[:, varies] - h[:, varies].mean(0)) / h[:, varies].std(0))
    moves = [_residual(place, (positive - h)[:, varies]) for positive in (h_pos, null)]
    n = int(varies.sum())
    values, vectors = np.linalg.eigh(moves[0].T @ moves[0] / len(h))
    if n == 0 or values[-1] <= 0:
        return 0.0
    whiten = vectors / np.sqrt(np.maximum(values, 1e-9 * values[-1]))
    real, flat = (move @ whiten for move in moves)
    first, second = np.triu_indices(n)
    products = real[:, first] * real[:, second] - flat[:, first] * flat[:, second]
    weight = np.where(first == second, 1.0, 2.0)
    half = np.random.default_rng(random_state).permutation(len(h)) % 2 == 0
    fields = [place @ _least_squares(place[part], products[part]) for part in (half, ~half)]
    one, other = (field - field.mean(0) for field in fields)
    return float(np.sqrt(max(0.0, float((one * other).mean(0) @ weight) / (4 * n))))


def _quadratic(columns: Matrix) -> Matrix:
    """1, every column, and products of two; squares alone where there are many columns."""
    n = columns.shape[1]
    first, second = np.triu_indices(n) if n <= 12 else (np.arange(n), np.arange(n))
    ones = np.ones((len(columns), 1))
    return np.hstack([ones, columns, columns[:, first] * columns[:, second]])


def _residual(features: Matrix, target: Matrix) -> Matrix:
    return np.asarray(target - features @ _least_squares(features, target))


def _least_squares(features: Matrix, target: Matrix) -> Matrix:
    """Weights of least squares; on a sphere the squares add up to a constant, but for rounding."""
    return np.asarray(np.linalg.lstsq(features, target, rcond=1e-5)[0])


# --- how codes fill their space ---------------------------------------------------------------------


def uniform_distances(h: Matrix, space: Space) -> Matrix:
    """How far each code is from uniform between its own ends, or each coordinate from that of a uniform
    point on the sphere: the greatest distance of the distribution functions (Kolmogorov–Smirnov)."""
    from scipy.stats import beta

    ordered = np.sort(h, axis=0)
    if isinstance(space, Sphere):
        radius = np.linalg.norm(h, axis=1).mean()
        half = (space.dim - 1) / 2
        expected = beta.cdf((ordered / radius + 1) / 2, half, half)
    else:
        low, high = own_range(h)
        width = np.where(high > low, high - low, 1.0)
        expected = np.clip((ordered - low) / width, 0, 1)
    steps = np.arange(len(h) + 1) / len(h)
    above = (steps[1:, None] - expected).max(0)
    below = (expected - steps[:-1, None]).max(0)
    return np.asarray(np.maximum(above, below))


def as_directions(
    h: Matrix, h_pos: Matrix, *, random_state: int = 0
) -> tuple[Matrix, Matrix] | None:
    """Codes (N×n) moved to the unit sphere by a linear map, if they cover an ellipsoid; else None.

    The ellipsoid is the quadric q(h) = 1 of least squares. Codes lie on it if their distances from its
    centre, in its own metric, vary little beside those of codes whose coordinates are shuffled.
    """
    n = h.shape[1]
    if n < 2 or n * (n + 3) // 2 > len(h) // 4 or (h.std(0) == 0).any():
        return None
    centre, scale = h.mean(0), h.std(0)
    y, y_pos = ((part - centre) / scale for part in (h, h_pos))
    first, second = np.triu_indices(n)
    features = np.hstack([y[:, first] * y[:, second], y])
    quadric = _least_squares(features, np.ones((len(y), 1))).ravel()
    form = np.zeros((n, n))
    form[first, second] = quadric[: len(first)] / 2
    form += form.T
    values, vectors = np.linalg.eigh(form)
    if values[0] <= 1e-3 * values[-1]:  # a quadric of another kind
        return None
    middle = np.linalg.solve(form, -quadric[len(first) :] / 2)
    found, found_pos = ((part - middle) @ (vectors * np.sqrt(values)) for part in (y, y_pos))
    shuffled = np.random.default_rng(random_state).permuted(found, axis=0)
    real, loose = (_variation(np.linalg.norm(part, axis=1)) for part in (found, shuffled))
    if real > ON_SURFACE * loose:
        return None
    found, found_pos = (
        part / np.linalg.norm(part, axis=1, keepdims=True) for part in (found, found_pos)
    )
    covers = float(uniform_distances(found, Sphere(n)).max()) < COVERED
    return (found, found_pos) if covers else None


def _variation(values: Matrix) -> float:
    return float(values.std() / values.mean())


def distance_of_laws(a: Matrix, b: Matrix) -> float:
    """The greatest distance of two empirical distribution functions, 0 to 1."""
    from scipy.stats import ks_2samp

    return float(ks_2samp(a, b).statistic)
