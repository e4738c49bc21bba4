"""The distribution of codes over their space, its distance from uniform, and whether it fixes the axes."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from identica.diagnosis.dimension import parts, varying
from identica.families import Family, Joint
from identica.metrics import agreement
from identica.spaces import Box, Product, Space, Sphere
from identica.theory import distance_from_uniform

Matrix = NDArray[np.float64]

STREAM = 7_215_803  # first seed of the simulations
ON_SURFACE = 0.3  # variation of the distance from the centre, relative to shuffled codes
COVERED = 0.1  # distance of distribution functions from uniform
TAIL = 1e-3  # fraction of the codes beyond either end of their range


@dataclass(frozen=True)
class Marginal:
    """Distances of the codes from a uniform distribution.

    Attributes:
        uniform: distance of each code, 0 to 1; except on a sphere, after the rotation to independent
            components if that makes it smaller.
        energy: relative energy distance of the joint distribution, 0 to 1; None in R^n.
        blur: distance of a uniform distribution with the noise of the codes added.
    """

    uniform: Matrix
    energy: float | None
    blur: float = 0.0


def marginal(h: Matrix, space: Space, random_state: int) -> Marginal:
    """Measure how far codes h (N×n) are from uniform."""
    measured = [
        _marginal_of_part(h[:, columns], part, random_state) for part, columns in parts(space)
    ]
    energies = [part.energy for part in measured if part.energy is not None]
    return Marginal(
        np.concatenate([part.uniform for part in measured]), max(energies) if energies else None
    )


def _marginal_of_part(h: Matrix, space: Space, random_state: int) -> Marginal:
    uniform, seed = uniform_distances(h, space), STREAM + random_state
    if isinstance(space, Sphere):
        return Marginal(uniform, distance_from_uniform(h, space, random_state=seed))
    turned = independent_components(h, slice(None), random_state) if space.dim > 1 else None
    if turned is not None:  # codes may be a rotation of uniform factors
        distances = uniform_distances(turned, space)
        if distances.max() < uniform.max():
            h, uniform = turned, distances
    if not isinstance(space, Box):
        return Marginal(uniform, None)
    low, high = own_range(h)
    filling = (h - low) / np.where(high > low, high - low, 1.0)
    return Marginal(uniform, distance_from_uniform(filling, Box(space.dim), random_state=seed))


def blur(noise: float, random_state: int) -> float:
    """Distance from uniform of a uniform distribution with a given share of normal noise.

    >>> blur(0.0, 0) < 0.02 < blur(0.1, 0)
    True
    """
    rng = np.random.default_rng(STREAM + random_state)
    even = rng.permutation(np.linspace(0, 1, 4000))
    spread = np.sqrt(min(noise, 0.99) / (1 - min(noise, 0.99)) / 12)
    noisy = even + spread * rng.normal(size=even.shape)
    return float(uniform_distances(noisy[:, None], Box(1))[0])


def own_range(codes: Matrix) -> tuple[Matrix, Matrix]:
    """Smallest and largest value of every code, without a few outliers at either end."""
    low, high = np.quantile(codes, (TAIL, 1 - TAIL), axis=0)
    return low, high


def uniform_distances(h: Matrix, space: Space) -> Matrix:
    """Kolmogorov–Smirnov distance of each code from uniform over its own range or, on a sphere, from a
    coordinate of a uniform point."""
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
    """Map codes (N×n) that cover an ellipsoid to the unit sphere by an affine map; None if they do not.

    The ellipsoid is the quadric q(h) = 1 fitted by least squares. Codes lie on it if their distances from
    its centre, in its own metric, vary little compared with those of codes with shuffled coordinates.
    """
    n = h.shape[1]
    if n < 2 or n * (n + 3) // 2 > len(h) // 4 or (h.std(0) == 0).any():
        return None
    centre, scale = h.mean(0), h.std(0)
    y, y_pos = ((part - centre) / scale for part in (h, h_pos))
    first, second = np.triu_indices(n)
    features = np.hstack([y[:, first] * y[:, second], y])
    quadric = least_squares(features, np.ones((len(y), 1))).ravel()
    form = np.zeros((n, n))
    form[first, second] = quadric[: len(first)] / 2
    form += form.T
    values, vectors = np.linalg.eigh(form)
    if values[0] <= 1e-3 * values[-1]:  # not an ellipsoid
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


def least_squares(features: Matrix, target: Matrix) -> Matrix:
    """Least-squares weights, also for the nearly collinear squares of points on a sphere."""
    return np.asarray(np.linalg.lstsq(features, target, rcond=1e-5)[0])


# --- axes -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Axes:
    """Whether linear independent component analysis (FastICA) confirms the axes of the codes.

    Attributes:
        sure: agreement (MCC) of the components of two halves of the data: 1 if they are well defined.
        same: agreement (MCC) of the codes with the components.
    """

    sure: float
    same: float


def axes(h: Matrix, h_pos: Matrix, random_state: int) -> dict[str, Axes]:
    """Independent components of the codes and of their differences, if these are non-Gaussian."""
    live = varying(h)
    if live.sum() < 2:
        return {}
    found = {"codes": h[:, live], "differences": (h_pos - h)[:, live]}
    return {name: _axes_of(values, random_state) for name, values in found.items()}


def _axes_of(values: Matrix, random_state: int) -> Axes:
    half = np.random.default_rng(random_state).permutation(len(values)) % 2 == 0
    one, other = (
        independent_components(values, part, random_state + seed)
        for seed, part in enumerate((half, ~half))
    )
    if one is None or other is None:
        return Axes(0.0, 0.0)
    same = [agreement([part, values], "permutation") for part in (one, other)]
    return Axes(agreement([one, other], "permutation"), float(np.mean(same)))


def independent_components(
    values: Matrix, rows: NDArray[np.bool_] | slice, random_state: int
) -> Matrix | None:
    """Independent components of values (N×n), fitted to the given rows; None if the fit fails."""
    from sklearn.decomposition import FastICA

    ica = FastICA(whiten="unit-variance", max_iter=300, random_state=random_state)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # without convergence, the two halves disagree
        try:
            components = ica.fit(values[rows]).transform(values)
        except (ValueError, np.linalg.LinAlgError):
            return None
    return (
        components if components.shape == values.shape and np.isfinite(components).all() else None
    )


def fixes_axes(
    space: Space, conditional: Family, learn_precision: bool, *, uniform: bool = True
) -> bool:
    """Whether the theory identifies the axes: by a box that is filled, by a distance that is not
    rotation invariant, or by learnt precisions."""
    if isinstance(space, Product):
        families = conditional.parts if isinstance(conditional, Joint) else ()
        return all(
            fixes_axes(part, family, learn_precision, uniform=uniform)
            for part, (family, _) in zip(space.spaces, families, strict=True)
        )
    if isinstance(space, Sphere):
        return learn_precision
    return (uniform and isinstance(space, Box)) or learn_precision or conditional.p != 2
