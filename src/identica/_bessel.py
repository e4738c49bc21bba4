"""Means over directions of the von Mises–Fisher distribution: ratios and logarithms of Bessel functions."""

from __future__ import annotations

import math


def mean_cosine(dim: int, kappa: float) -> float:
    """E cos∠(z, μ) = I_{n/2}(κ) / I_{n/2−1}(κ) of the von Mises–Fisher distribution.

    >>> round(mean_cosine(10, 1.0), 5)
    0.09918
    """
    if _is_small(dim, kappa):
        return kappa / dim * math.exp(_log_series(dim + 2, kappa) - _log_series(dim, kappa))
    return math.exp(_log_bessel(dim / 2, kappa) - _log_bessel(dim / 2 - 1, kappa))


def log_mean_exp_gap(dim: int, kappa: float) -> float:
    """log E e^{κ(cos − 1)} for a uniform direction, = log[Γ(n/2) (2/κ)^{n/2−1} e^{−κ} I_{n/2−1}(κ)].

    >>> round(10.0 + log_mean_exp_gap(10, 10.0), 5)
    3.85221
    """
    if _is_small(dim, kappa):
        return _log_series(dim, kappa) - kappa
    order = dim / 2 - 1
    return math.lgamma(dim / 2) + order * math.log(2 / kappa) + _log_bessel(order, kappa)


def _is_small(dim: int, kappa: float) -> bool:
    """Whether κ is small for its dimension: there the power series is short, and the Bessel function
    may underflow."""
    return kappa * kappa < 40 * dim


def _log_series(dim: int, kappa: float) -> float:
    """log Σ_k (κ²/4)^k Γ(n/2) / (k! Γ(k + n/2)) = log E e^{κ cos}."""
    total, term, k = 0.0, 1.0, 0
    while term > 1e-17 * (1 + total):
        k += 1
        term *= (kappa**2 / 4) / (k * (k - 1 + dim / 2))
        total += term
    return math.log1p(total)


def _log_bessel(order: float, kappa: float) -> float:
    """log[e^{−κ} I_ν(κ)], by Debye's uniform expansion where scipy's function has no digits left
    (Olver et al., NIST Handbook of Mathematical Functions, 2010, section 10.41)."""
    from scipy.special import ive

    size = math.hypot(order, kappa)
    if size < 1000:
        return math.log(float(ive(order, kappa)))
    t2 = (order / size) ** 2
    first = (3 - 5 * t2) / 24
    second = (81 + t2 * (-462 + 385 * t2)) / 1152
    third = (30375 + t2 * (-369603 + t2 * (765765 - 425425 * t2))) / 414720
    rest = math.log1p((first + (second + third / size) / size) / size)
    exponent = order * (order / (size + kappa)) - order * math.asinh(order / kappa)
    return exponent - math.log(2 * math.pi * size) / 2 + rest
