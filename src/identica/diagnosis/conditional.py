"""The distribution of positives around recovered codes, and whether it is the same everywhere."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from identica.diagnosis.dimension import parts
from identica.diagnosis.marginal import STREAM, least_squares, own_range
from identica.diagnosis.sequence import Order
from identica.families import Family, Joint
from identica.spaces import Box, Euclidean, Space, Sphere

Matrix = NDArray[np.float64]

SHAPES = np.geomspace(0.3, 12.0, 60)  # grid of β
WALL = 3.0  # distance from a wall, in spreads of the positives, up to which it truncates them
RESAMPLES = 200  # bootstrap resamples
INSIDE = 100  # differences away from the walls needed for a fit


class GeneralizedNormalFit(NamedTuple):
    """A generalised normal distribution p ∝ e^{−|d/scale|^shape} of differences, with 95 % intervals.

    `number` is the number of differences it was fitted to.
    """

    shape: float
    scale: float
    shape_interval: tuple[float, float]
    scale_interval: tuple[float, float]
    number: int

    @property
    def family(self) -> str:
        """The family of the estimator with the nearest shape."""
        return nearest_family(self.shape)


Fits = list[GeneralizedNormalFit | None]


@dataclass(frozen=True)
class Positives:
    """The distribution of positives around their codes.

    Attributes:
        codes: fitted distribution of the differences of each code; None if too few lie away from the
            walls, and on a sphere.
        concentration: κ of the positives, on a sphere.
        misfit: greatest Kolmogorov–Smirnov distance between the differences and the model's family at
            its best scale.
        anisotropy: ratio of the widest to the narrowest spread of positives.
        bend: how much the spread depends on position, see `position_dependence`.
    """

    codes: Fits
    concentration: float | None
    misfit: float
    anisotropy: float
    bend: float


def positives(
    h: Matrix, h_pos: Matrix, space: Space, conditional: Family, order: Order, random_state: int
) -> Positives:
    """Describe how positives h_pos (N×n) vary around codes h, compared with the assumed family."""
    families = (
        [f for f, _ in conditional.parts] if isinstance(conditional, Joint) else [conditional]
    )
    measured = [
        _positives_of_part(h[:, columns], h_pos[:, columns], part, family, order, random_state)
        for (part, columns), family in zip(parts(space), families, strict=True)
    ]
    kappas = [part.concentration for part in measured if part.concentration is not None]
    return Positives(
        [fit for part in measured for fit in part.codes],
        kappas[0] if kappas else None,
        max(part.misfit for part in measured),
        max(part.anisotropy for part in measured),
        max(part.bend for part in measured),
    )


def _positives_of_part(
    h: Matrix, h_pos: Matrix, space: Space, family: Family, order: Order, random_state: int
) -> Positives:
    if isinstance(space, Sphere):
        from scipy.stats import ks_2samp

        kappa = concentration(h, h_pos)
        drawn = simulated(h, space, kappa, random_state=random_state)
        steps = [np.linalg.norm(positive - h, axis=1) for positive in (h_pos, drawn)]
        spread = np.sqrt(np.linalg.eigvalsh(np.cov((h_pos - h).T)).clip(min=0))
        return Positives(
            [None] * space.dim,
            kappa,
            float(ks_2samp(*steps).statistic),
            _ratio(spread),
            position_dependence(h, h_pos, space, kappa, order, random_state),
        )
    differences = inner_differences(h, h_pos, space)
    fits = fit_differences(differences, random_state=random_state)
    return Positives(
        fits,
        None,
        misfit(differences, family.p or 2.0),
        _ratio(np.median(np.abs(h_pos - h), axis=0)),
        position_dependence(h, h_pos, space, fits, order, random_state),
    )


def _ratio(spread: Matrix) -> float:
    least, most = float(spread.min()), float(spread.max())
    return most / least if least > 0 else math.inf if most > 0 else 1.0


# --- fits -------------------------------------------------------------------------------------------


def nearest_family(shape: float) -> str:
    """The estimator's name of the family nearest in log shape.

    >>> nearest_family(1.1), nearest_family(1.9), nearest_family(4)
    ('laplace', 'normal', 'gennorm3')
    """
    return "laplace" if shape < 2**0.5 else "normal" if shape < 6**0.5 else "gennorm3"


def generalized_normal(differences: Matrix, *, random_state: int = 0) -> GeneralizedNormalFit:
    """Maximum-likelihood generalised normal distribution around 0, with bootstrap intervals.

    For a given shape β the best scale is known, λ^β = β·mean |d|^β, which leaves

        min_β  log 2λ_β + log Γ(1 + 1/β) + 1/β

    found on a grid and refined by a parabola.

    >>> d = np.random.default_rng(0).laplace(scale=0.05, size=4000)
    >>> fit = generalized_normal(d)
    >>> fit.shape_interval[0] < 1 < fit.shape_interval[1], fit.family
    (True, 'laplace')
    """
    from scipy.special import gammaln

    d = np.abs(np.asarray(differences, dtype=np.float64))
    unit = float(np.sqrt(np.mean(d**2))) or 1.0
    powers = np.power.outer(d / unit, SHAPES)
    rng = np.random.default_rng(random_state)
    counts = rng.multinomial(len(d), np.full(len(d), 1 / len(d)), size=RESAMPLES) / len(d)
    means = np.vstack([powers.mean(0), counts @ powers])  # the first row is the sample itself
    log_scale = np.log(np.maximum(SHAPES * means, 1e-300)) / SHAPES
    cost = log_scale + gammaln(1 + 1 / SHAPES) + 1 / SHAPES
    shapes, scales = _lowest(cost, log_scale)
    low, high = np.quantile(shapes[1:], (0.025, 0.975)), np.quantile(scales[1:], (0.025, 0.975))
    return GeneralizedNormalFit(
        float(shapes[0]),
        unit * float(scales[0]),
        (float(low[0]), float(low[1])),
        (unit * float(high[0]), unit * float(high[1])),
        len(d),
    )


def _lowest(cost: Matrix, log_scale: Matrix) -> tuple[Matrix, Matrix]:
    """Shape and scale of the lowest cost of each row, interpolated between grid points."""
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


# --- positives around their codes -------------------------------------------------------------------


def inner_differences(h: Matrix, h_pos: Matrix, space: Space) -> list[Matrix]:
    """Differences of each code in pairs; in a box, only of anchors away from the walls."""
    low, high = own_range(h)
    differences = []
    for k, d in enumerate((h_pos - h).T):
        if isinstance(space, Box):
            reach = WALL * np.median(np.abs(d))
            d = d[(h[:, k] - low[k] > reach) & (high[k] - h[:, k] > reach)]
        differences.append(d)
    return differences


def fit_differences(differences: list[Matrix], *, random_state: int = 0) -> Fits:
    """Fit the differences of each code; None if there are too few, or if they are constant."""
    return [
        generalized_normal(d, random_state=random_state)
        if len(d) >= INSIDE and float(np.std(d)) > 0
        else None
        for d in differences
    ]


def misfit(differences: list[Matrix], shape: float) -> float:
    """Greatest Kolmogorov–Smirnov distance between the differences of a code and a generalised normal
    of the given shape at its best scale; 0 to 1."""
    from scipy.stats import gennorm, kstest

    distances = [0.0]
    for d in differences:
        if len(d) >= INSIDE and float(np.std(d)) > 0:
            scale = (shape * np.mean(np.abs(d) ** shape)) ** (1 / shape)
            distances.append(float(kstest(d / scale, gennorm(shape).cdf).statistic))
    return max(distances)


def concentration(h: Matrix, h_pos: Matrix) -> float:
    """κ of the von Mises–Fisher distribution with the mean cosine of the pairs; 0 if they are unrelated."""
    from scipy.optimize import brentq

    from identica.families import mean_cosine

    size = np.linalg.norm(h, axis=1) * np.linalg.norm(h_pos, axis=1)
    cosine = float(np.mean((h * h_pos).sum(1) / np.where(size > 0, size, 1.0)))
    n, highest = h.shape[1], 1e6
    if cosine <= mean_cosine(n, 1e-6):
        return 0.0
    if cosine >= mean_cosine(n, highest):
        return highest
    return float(brentq(lambda kappa: mean_cosine(n, kappa) - cosine, 1e-6, highest))


def simulated(h: Matrix, space: Space, fit: Fits | float, *, random_state: int) -> Matrix:
    """Simulate positives of codes h (N×n) under a distribution that is the same everywhere: `fit` holds
    one for each code, or the concentration on a sphere."""
    import torch

    from identica.families import GeneralizedNormal, VonMisesFisher

    # a separate stream: data generated from the same seed would correlate with these draws
    source = torch.Generator().manual_seed(STREAM + random_state)
    if isinstance(space, Sphere):
        assert isinstance(fit, float)
        sphere = Sphere(space.dim)
        centre = sphere.project(torch.from_numpy(np.ascontiguousarray(h)))
        drawn = VonMisesFisher(fit).sample(sphere, centre, generator=source)
        return np.asarray(drawn.numpy()) * space.radius
    assert isinstance(fit, list)
    low, high = own_range(h)
    positives = h.copy()
    for k, found in enumerate(fit):
        if found is None:
            continue
        family = GeneralizedNormal(found.shape, found.scale)
        column: Any = np.ascontiguousarray(h[:, k : k + 1])
        line: Space = Euclidean(1)
        if isinstance(space, Box):
            line, column = Box(1, low[k], high[k]), column.clip(low[k], high[k])
        positives[:, k] = family.sample(line, torch.from_numpy(column), generator=source)[:, 0]
    return positives


# --- dependence on position -------------------------------------------------------------------------


def position_dependence(
    h: Matrix, h_pos: Matrix, space: Space, fit: Fits | float, order: Order, random_state: int = 0
) -> float:
    """How much the spread of positives depends on position, as the standard deviation of its logarithm
    (0.1: by about a tenth).

        σ² = E‖S(h) − E S‖_F² / 4n,  S(h) = M^{−1/2} Cov(h̃ − h | h) M^{−1/2},  M = E Cov(h̃ − h | h)

    minus the value for simulated positives of a distribution that is the same everywhere, which accounts
    for walls and for the curvature of a sphere. The covariance is modelled as a quadratic function of
    position. Two such functions, each fitted to one half of the pairs (of the time, in a sequence), are
    multiplied, so that noise does not inflate the estimate.

    If positives vary alike around all true factors, any curvature of the map from factors to codes shows
    up here: a map that leaves the covariance constant is affine.
    """
    null = simulated(h, space, fit, random_state=random_state)
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
    halves = order.halves(random_state)
    fields = [place @ least_squares(place[part], products[part]) for part in halves]
    one, other = (field - field.mean(0) for field in fields)
    return float(np.sqrt(max(0.0, float((one * other).mean(0) @ weight) / (4 * n))))


def _quadratic(columns: Matrix) -> Matrix:
    """Quadratic features: 1, every column and products of two; only squares if there are many columns."""
    n = columns.shape[1]
    first, second = np.triu_indices(n) if n <= 12 else (np.arange(n), np.arange(n))
    ones = np.ones((len(columns), 1))
    return np.hstack([ones, columns, columns[:, first] * columns[:, second]])


def _residual(features: Matrix, target: Matrix) -> Matrix:
    return np.asarray(target - features @ least_squares(features, target))
