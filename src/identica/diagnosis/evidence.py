"""The numbers of a diagnosis: what they are, and how they are taken from codes."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from identica.diagnosis import conditional as _laws
from identica.diagnosis import dimension as _dimension
from identica.diagnosis.conditional import Law
from identica.diagnosis.dimension import Intrinsic
from identica.families import Family, Joint
from identica.metrics import agreement
from identica.metrics.columns import standardised
from identica.spaces import Box, Product, Space, Sphere
from identica.theory import distance_from_uniform

Matrix = NDArray[np.float64]


class Codes(NamedTuple):
    """What one model makes of pairs it has not seen.

    Attributes:
        h, h_pos: codes of the members of each pair, N×n.
        bits: evidence that each pair belongs together, N (see `identica.estimator.fit.log_likelihood`).
        control: the same for positives in a random order, at the temperature that suits them best.
        seen: mean evidence for as many pairs of its training, if they are at hand.
    """

    h: Matrix
    h_pos: Matrix
    bits: Matrix
    control: Matrix
    seen: float | None = None


@dataclass(frozen=True)
class Score:
    """Evidence that unseen pairs belong together, in bits above chance, with standard errors.

    `control` is that of shuffled pairs, `seen` that of pairs the model was trained on.
    """

    bits: float
    error: float
    control: float
    control_error: float
    seen: float | None
    most: float


@dataclass(frozen=True)
class Restarts:
    """How the codes of models that started differently agree, m×m: up to a linear map (R²), and up
    to permutation and scale (MCC)."""

    linear: Matrix
    permutation: Matrix

    @property
    def mean_linear(self) -> float:
        return _mean_off_diagonal(self.linear)

    @property
    def mean_permutation(self) -> float:
        return _mean_off_diagonal(self.permutation)


@dataclass(frozen=True)
class Axes:
    """Whether linear independent component analysis (FastICA) finds the same axes as the codes have.

    Attributes:
        sure: agreement (MCC) of the axes found in two halves of the data: 1 if there are any.
        same: agreement of the codes with what it finds.
    """

    sure: float
    same: float


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


@dataclass(frozen=True)
class Laws:
    """How codes and their positives are distributed.

    Attributes:
        codes: law of each code's differences; None where walls leave none, and on a sphere.
        concentration: κ of positives, on a sphere.
        misfit: greatest distance of the differences' distribution from that of the model's family
            at its best scale.
        anisotropy: ratio of the widest to the narrowest spread of positives.
        bend: by how much the spread depends on the place, see `position_dependence`.
        uniform: distance of each code from uniform, 0 to 1; off the sphere in the rotation that
            makes codes independent, if it is less there.
        energy: relative energy distance of all codes together from uniform, 0 to 1; None in R^n.
    """

    codes: list[Law | None]
    concentration: float | None
    misfit: float
    anisotropy: float
    bend: float
    uniform: Matrix
    energy: float | None


# --- taking them ------------------------------------------------------------------------------------


def score(codes: Sequence[Codes]) -> Score:
    bits = np.mean([code.bits for code in codes], axis=0)
    control = np.mean([code.control for code in codes], axis=0)
    seen = [code.seen for code in codes if code.seen is not None]
    root = math.sqrt(len(bits))
    return Score(
        float(bits.mean()),
        float(bits.std()) / root,
        float(control.mean()),
        float(control.std()) / root,
        float(np.mean(seen)) if seen else None,
        math.log2(len(bits)),
    )


def restarts(codes: Sequence[Matrix]) -> Restarts:
    def matrix(up_to: str) -> Matrix:
        found = np.eye(len(codes))
        for i, j in combinations(range(len(codes)), 2):
            found[i, j] = found[j, i] = agreement([codes[i], codes[j]], up_to)
        return found

    return Restarts(matrix("affine"), matrix("permutation"))


def _mean_off_diagonal(matrix: Matrix) -> float:
    return float(matrix[np.triu_indices(len(matrix), 1)].mean())


def axes(h: Matrix, h_pos: Matrix, random_state: int) -> dict[str, Axes]:
    """Axes of the codes, and of their differences: either may have some (be independent, not normal)."""
    live = _dimension.varying(h)
    if live.sum() < 2:
        return {}
    found = {"codes": h[:, live], "differences": (h_pos - h)[:, live]}
    return {name: _axes_of(values, random_state) for name, values in found.items()}


def _axes_of(values: Matrix, random_state: int) -> Axes:
    half = np.random.default_rng(random_state).permutation(len(values)) % 2 == 0
    one, other = (
        _independent(values, part, random_state + seed) for seed, part in enumerate((half, ~half))
    )
    if one is None or other is None:
        return Axes(0.0, 0.0)
    same = [agreement([part, values], "permutation") for part in (one, other)]
    return Axes(agreement([one, other], "permutation"), float(np.mean(same)))


def _independent(
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


def dimensions(
    h: Matrix,
    h_pos: Matrix,
    space: Space,
    observations: tuple[Matrix, Matrix] | None,
    random_state: int,
) -> Dimensions:
    parts = [
        _dimension.intrinsic_dimension(h[:, columns], part, random_state=random_state)
        for part, columns in _parts(space)
    ]
    missed = told = columns = None
    if observations is not None:
        columns = int(np.linalg.matrix_rank(standardised(observations[0]), rtol=1e-3))
        missed, told = _dimension.missed(*observations, h, h_pos, random_state=random_state)
    return Dimensions(
        _dimension.varying(h).tolist(),
        _dimension.pair_correlations(h, h_pos),
        _dimension.canonical_correlations(h, h_pos),
        Intrinsic(
            sum(p.dimension for p in parts),
            math.sqrt(sum(p.error**2 for p in parts)),
            sum(p.room for p in parts),
        ),
        columns,
        missed,
        told,
    )


def laws(h: Matrix, h_pos: Matrix, space: Space, conditional: Family, random_state: int) -> Laws:
    families = (
        [f for f, _ in conditional.parts] if isinstance(conditional, Joint) else [conditional]
    )
    parts = [
        _part_laws(h[:, columns], h_pos[:, columns], part, family, random_state)
        for (part, columns), family in zip(_parts(space), families, strict=True)
    ]
    kappas = [p.concentration for p in parts if p.concentration is not None]
    energies = [p.energy for p in parts if p.energy is not None]
    return Laws(
        [law for p in parts for law in p.codes],
        kappas[0] if kappas else None,
        max(p.misfit for p in parts),
        max(p.anisotropy for p in parts),
        max(p.bend for p in parts),
        np.concatenate([p.uniform for p in parts]),
        max(energies) if energies else None,
    )


def _part_laws(h: Matrix, h_pos: Matrix, space: Space, family: Family, random_state: int) -> Laws:
    uniform = _laws.uniform_distances(h, space)
    if isinstance(space, Sphere):
        kappa = _laws.concentration(h, h_pos)
        drawn = _laws.simulated(h, space, kappa, random_state=random_state)
        steps = [np.linalg.norm(positive - h, axis=1) for positive in (h_pos, drawn)]
        spread = np.sqrt(np.linalg.eigvalsh(np.cov((h_pos - h).T)).clip(min=0))
        return Laws(
            [None] * space.dim,
            kappa,
            _laws.distance_of_laws(*steps),
            _ratio(spread),
            _laws.position_dependence(h, h_pos, space, kappa, random_state=random_state),
            uniform,
            distance_from_uniform(h, space, random_state=_laws.STREAM + random_state),
        )
    differences = _laws.inner_differences(h, h_pos, space)
    found = _laws.code_laws(differences, random_state=random_state)
    filling = h
    turned = _independent(h, slice(None), random_state) if space.dim > 1 else None
    if turned is not None:  # codes may be a rotation of what is uniform
        distances = _laws.uniform_distances(turned, space)
        if distances.max() < uniform.max():
            filling, uniform = turned, distances
    energy = None
    if isinstance(space, Box):
        low, high = _laws.own_range(filling)
        filling = (filling - low) / np.where(high > low, high - low, 1.0)
        energy = distance_from_uniform(
            filling, Box(space.dim), random_state=_laws.STREAM + random_state
        )
    return Laws(
        found,
        None,
        _laws.misfit(differences, family.p or 2.0),
        _ratio(np.median(np.abs(h_pos - h), axis=0)),
        _laws.position_dependence(h, h_pos, space, found, random_state=random_state),
        uniform,
        energy,
    )


def _ratio(spread: Matrix) -> float:
    least, most = float(spread.min()), float(spread.max())
    return most / least if least > 0 else math.inf if most > 0 else 1.0


def _parts(space: Space) -> list[tuple[Space, slice]]:
    """Simple spaces and their columns."""
    spaces = space.spaces if isinstance(space, Product) else (space,)
    ends = np.cumsum([part.dim for part in spaces])
    return [(part, slice(end - part.dim, end)) for part, end in zip(spaces, ends, strict=True)]
