"""Procrustes error: how far the codes are from a rotation of the true factors."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from identica._validate import as_matrix, same_rows
from identica.errors import InputError
from identica.metrics.standardise import Matrix, factors_and_codes, is_constant, unit_size


class ProcrustesResult(NamedTuple):
    """The relative error, and the rotation (k×d) and scale that carry codes onto factors."""

    error: float
    rotation: Matrix
    scale: float


def procrustes(z: Any, h: Any) -> ProcrustesResult:
    """Relative squared error of the best orthogonal map, with one scale, from codes to factors.

        min_{s, QᵀQ = I} ‖Z − s H Q‖² / ‖Z‖² = 1 − ‖ZᵀH‖_*² / (‖Z‖² ‖H‖²)

    with Z and H centred, ‖·‖ the Frobenius and ‖·‖_* the nuclear norm.

    It is 0 when h is a rotation or reflection of z up to scale and shift, the guarantee on the
    sphere, and 1 when the codes are uninformative; swapping z and h leaves it the same. Where the widths
    differ the narrower one is padded with zeros, so what a wider code adds counts as error.

    Reference: Schönemann, A generalized solution of the orthogonal Procrustes problem,
    Psychometrika 1966; `scipy.spatial.procrustes` calls this error the disparity.

    Args:
        z: true factors, N×d.
        h: codes, N×k.

    >>> z = np.random.default_rng(0).normal(size=(100, 2))
    >>> error, rotation, scale = procrustes(z, 2 * z @ np.array([[0, -1], [1, 0]]))
    >>> round(error, 6), round(scale, 6), rotation.round().astype(int)
    (0.0, 0.5, array([[ 0,  1], [-1,  0]]))
    """
    factors, codes = as_matrix("z", z), as_matrix("h", h)
    same_rows(z=factors, h=codes)
    if is_constant(factors).all():
        raise InputError("z must vary: every column is constant, so there is nothing to map onto")
    (factors, z_exponent), (codes, h_exponent) = unit_size(factors), unit_size(codes)
    (z_centred, z_size), (h_centred, h_size) = map(_centred, factors_and_codes(factors, codes))
    left, singular, right = np.linalg.svd(z_centred.T @ h_centred, full_matrices=False)
    fit = float(singular.sum())
    with np.errstate(over="ignore", under="ignore"):  # a scale beyond floats is infinity or 0
        scale = np.ldexp(fit * z_size / h_size, z_exponent - h_exponent) if h_size else 0.0
    return ProcrustesResult(float(np.clip(1 - fit**2, 0.0, 1.0)), (left @ right).T, float(scale))


def _centred(matrix: Matrix) -> tuple[Matrix, float]:
    """The centred matrix at Frobenius norm 1, and the norm it had; zeros where it is constant."""
    centred = np.where(is_constant(matrix), 0.0, matrix - matrix.mean(axis=0))
    size = float(np.linalg.norm(centred))
    return (centred / size if size else centred), size
