"""How codes fill their space: evenly, as the theory asks, or not; and whether that gives them axes."""

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

STREAM = 7_215_803  # where the seeds of simulations begin
ON_SURFACE = 0.3  # of the variation that distances from the centre have in shuffled codes
COVERED = 0.1  # distance of distribution functions from uniform
TAIL = 1e-3  # share of the codes at either end that their range leaves out


@dataclass(frozen=True)
class Marginal:
    """How codes are distributed.

    Attributes:
        uniform: distance of each code from uniform, 0 to 1; off the sphere in the rotation that
            makes codes independent, if it is less there.
        energy: relative energy distance of all codes together from uniform, 0 to 1; None in R^n.
        blur: distance from uniform of what is uniform but for the noise of the codes.
    """

    uniform: Matrix
    energy: float | None
    blur: float = 0.0


def marginal(h: Matrix, space: Space, random_state: int) -> Marginal:
    """How codes h (N×n) fill their space."""
    found = [_marginal_of_part(h[:, columns], part, random_state) for part, columns in parts(space)]
    energies = [part.energy for part in found if part.energy is not None]
    return Marginal(
        np.concatenate([part.uniform for part in found]), max(energies) if energies else None
    )


def _marginal_of_part(h: Matrix, space: Space, random_state: int) -> Marginal:
    uniform, seed = uniform_distances(h, space), STREAM + random_state
    if isinstance(space, Sphere):
        return Marginal(uniform, distance_from_uniform(h, space, random_state=seed))
    turned = independent_components(h, slice(None), random_state) if space.dim > 1 else None
    if turned is not None:  # codes may be a rotation of what is uniform
        distances = uniform_distances(turned, space)
        if distances.max() < uniform.max():
            h, uniform = turned, distances
    if not isinstance(space, Box):
        return Marginal(uniform, None)
    low, high = own_range(h)
    filling = (h - low) / np.where(high > low, high - low, 1.0)
    return Marginal(uniform, distance_from_uniform(filling, Box(space.dim), random_state=seed))


def blur(noise: float, random_state: int) -> float:
    """Distance from uniform of a uniform distribution with some share of (normal) noise.

    >>> blur(0.0, 0) < 0.02 < blur(0.1, 0)
    True
    """
    rng = np.random.default_rng(STREAM + random_state)
    even = rng.permutation(np.linspace(0, 1, 4000))
    spread = np.sqrt(min(noise, 0.99) / (1 - min(noise, 0.99)) / 12)
    noisy = even + spread * rng.normal(size=even.shape)
    return float(uniform_distances(noisy[:, None], Box(1))[0])


def own_range(codes: Matrix) -> tuple[Matrix, Matrix]:
    """Least and greatest value of every code, but for the few at either end."""
    low, high = np.quantile(codes, (TAIL, 1 - TAIL), axis=0)
    return low, high


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
    quadric = least_squares(features, np.ones((len(y), 1))).ravel()
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


def least_squares(features: Matrix, target: Matrix) -> Matrix:
    """Weights of least squares; on a sphere the squares add up to a constant, but for rounding."""
    return np.asarray(np.linalg.lstsq(features, target, rcond=1e-5)[0])


# --- axes -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Axes:
    """Whether linear independent component analysis (FastICA) finds the same axes as the codes have.

    Attributes:
        sure: agreement (MCC) of the axes found in two halves of the data: 1 if there are any.
        same: agreement of the codes with what it finds.
    """

    sure: float
    same: float


def axes(h: Matrix, h_pos: Matrix, random_state: int) -> dict[str, Axes]:
    """Axes of the codes, and of their differences: either may have some (be independent, not normal)."""
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
    """Independent components of values (N×n), learnt from some of the rows; None where it fails."""
    from sklearn.decomposition import FastICA

    ica = FastICA(whiten="unit-variance", max_iter=300, random_state=random_state)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what does not converge is not the same in two halves
        try:
            found = ica.fit(values[rows]).transform(values)
        except (ValueError, np.linalg.LinAlgError):
            return None
    return found if found.shape == values.shape and np.isfinite(found).all() else None


def fixes_axes(
    space: Space, conditional: Family, learn_precision: bool, *, uniform: bool = True
) -> bool:
    """Whether the theory can single out the axes: a box that is filled, a distance that is no
    rotation's, or precisions of their own."""
    if isinstance(space, Product):
        families = conditional.parts if isinstance(conditional, Joint) else ()
        return all(
            fixes_axes(part, family, learn_precision, uniform=uniform)
            for part, (family, _) in zip(space.spaces, families, strict=True)
        )
    if isinstance(space, Sphere):
        return learn_precision
    return (uniform and isinstance(space, Box)) or learn_precision or conditional.p != 2
