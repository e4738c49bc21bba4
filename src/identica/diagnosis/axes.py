"""Do codes have axes of their own? What independent component analysis finds, and the theory allows."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from identica.diagnosis.dimension import varying
from identica.families import Family, Joint
from identica.metrics import agreement
from identica.spaces import Box, Product, Space, Sphere

Matrix = NDArray[np.float64]


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
