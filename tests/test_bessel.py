"""Means of directions against mpmath, from small concentrations to huge ones."""

import math

import mpmath
import pytest

from identica._bessel import log_mean_exp_gap, mean_cosine

CASES = [
    (n, kappa)
    for n in (2, 3, 10, 101, 1000)
    for kappa in (1e-10, 1e-3, 0.5, 8.9, 9.0, 63.0, 201.0, 700.0, 1001.0, 1e4, 1e6)
]


@pytest.mark.parametrize(("n", "kappa"), CASES)
def test_means_agree_with_mpmath(n, kappa):
    with mpmath.workdps(60):
        order, k = mpmath.mpf(n) / 2 - 1, mpmath.mpf(kappa)
        bessel = mpmath.besseli(order, k)
        log_mean = mpmath.log(mpmath.gamma(order + 1) * (2 / k) ** order * bessel)
        cosine = mpmath.besseli(order + 1, k) / bessel
        gap = log_mean - k
    assert mean_cosine(n, kappa) == pytest.approx(float(cosine), rel=1e-11)
    assert log_mean_exp_gap(n, kappa) == pytest.approx(float(gap), rel=1e-11, abs=1e-11)


@pytest.mark.parametrize("n", [2, 3, 10, 1000])
@pytest.mark.parametrize("kappa", [1e16, 1e100, 1e300])
def test_huge_concentrations_have_the_law_of_a_normal(n, kappa):
    # as κ → ∞, I_ν(κ) e^{−κ} → 1/√(2πκ), up to terms of order n²/κ
    expected = math.lgamma(n / 2) + (n / 2 - 1) * math.log(2 / kappa)
    expected -= math.log(2 * math.pi * kappa) / 2
    assert log_mean_exp_gap(n, kappa) == pytest.approx(expected, rel=1e-10)
    assert mean_cosine(n, kappa) == pytest.approx(1, abs=1e-12)


def test_no_concentration():
    assert log_mean_exp_gap(5, 0.0) == 0
    assert mean_cosine(5, 0.0) == 0
