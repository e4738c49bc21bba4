"""Linear R²: how much of the true factors a linear map reads off the codes."""

from __future__ import annotations

from typing import Any

import numpy as np

from identica.errors import InputError
from identica.metrics.standardise import Matrix, factors_and_codes, is_constant, standardised


def linear_r2(z: Any, h: Any, *, in_sample: bool = False) -> float:
    """Share of the variance of the true factors that a least-squares map of the codes explains.

        R² = (1/d) Σ_j max(0, 1 − Σ_i (z_ij − ẑ_ij)² / Σ_i (z_ij − z̄_j)²),   ẑ = A h + b

    The mean is uniform: each factor counts the same, whatever its variance. The map (A, b) is
    fitted on the first half of the rows and scored on the second, so rows that come in an order
    (a sequence, a sweep over one factor) should be shuffled first. Scores lie in [0, 1]: a factor
    predicted worse than by its mean, which only happens on held-out rows, counts 0.
    It is 1 exactly when h is an affine map of z, the guarantee for a convex body.

    Reference: Zimmermann et al., Contrastive Learning Inverts the Data Generating Process,
    ICML 2021, section 4.

    Args:
        z: true factors, N×d.
        h: codes, N×k; collinear or constant columns are fine.
        in_sample: fit and score on all rows, as published.

    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(size=(1000, 3))
    >>> h = z @ rng.normal(size=(3, 3)) + 5
    >>> round(linear_r2(z, h), 6)
    1.0
    """
    return float(linear_r2_per_factor(z, h, in_sample=in_sample).mean())


def linear_r2_per_factor(z: Any, h: Any, *, in_sample: bool = False) -> Matrix:
    """R² of each true factor, d values in [0, 1]; their mean is `linear_r2`.

    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(size=(1000, 2))
    >>> linear_r2_per_factor(z, z[:, :1]).round(2)
    array([1., 0.])
    """
    z, h = factors_and_codes(z, h, rows=2 if in_sample else 4)
    half = len(z) // 2
    fit, score = (slice(None), slice(None)) if in_sample else (slice(half), slice(half, None))
    if (constant := is_constant(z[score])).any():
        where = "" if in_sample else "in the second half of the rows, which is scored, "
        raise InputError(
            f"z must vary in every column: {where}column {int(constant.argmax())} is constant, "
            "so its R² is undefined"
        )
    factors, codes = standardised(z, score), standardised(h, fit)
    mean = factors[fit].mean(axis=0)
    weights = np.linalg.lstsq(codes[fit], factors[fit] - mean)[0]
    residual = factors[score] - mean - codes[score] @ weights
    return np.asarray(np.maximum(0.0, 1 - (residual**2).mean(axis=0)))  # the variance there is 1
