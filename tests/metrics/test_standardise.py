"""Columns of unit variance: what counts as constant, huge or far out, by exact arithmetic."""

from fractions import Fraction

import numpy as np
import pytest

from identica.metrics.standardise import (
    centre_and_scale,
    factors_and_codes,
    is_constant,
    standardised,
    unit_size,
)

RNG = np.random.default_rng(0)
EPS = 2.0**-52


@pytest.mark.parametrize(
    ("low", "high", "constant"),
    [
        (1.0, 1 + 8 * EPS, True),
        (1.0, 1 + 9 * EPS, False),
        (-1.0, -1 + 8 * EPS, True),
        (-1.0, -1 + 9 * EPS, False),
        (0.0, 0.0, True),
        (0.0, 1e-300, False),
        (2.0, 2 + 18 * EPS, False),
    ],
)
def test_a_column_that_varies_by_rounding_is_constant(low, high, constant):
    """By up to eight units in the last place of its largest value."""
    column = np.array([low, high, low, high])
    found = is_constant(np.c_[column, [0, 1, 2, 3]])
    assert found.tolist() == [constant, False]


@pytest.mark.parametrize("unit", [1.0, 2.0**-1000, 2.0**1000])
def test_mean_and_deviation_beside_fractions(unit):
    matrix = np.c_[RNG.integers(-50, 50, 31), np.full(31, 7)].astype(float)
    centre, scale = centre_and_scale(unit * matrix)
    exact = [Fraction(int(x)) for x in matrix[:, 0]]
    mean = sum(exact) / 31
    variance = sum((x - mean) ** 2 for x in exact) / 31
    assert centre == pytest.approx([unit * float(mean), unit * 7])
    assert scale[0] == pytest.approx(unit * float(variance) ** 0.5)
    assert scale[1] == np.inf
    found = standardised(unit * matrix)
    assert found[:, 0] == pytest.approx((matrix[:, 0] - float(mean)) / float(variance) ** 0.5)
    assert not found[:, 1].any()


def test_moments_may_be_those_of_some_rows():
    matrix = RNG.normal(size=(20, 2))
    found = standardised(matrix, slice(5, 12))
    part = matrix[5:12]
    assert found == pytest.approx((matrix - part.mean(0)) / part.std(0))


@pytest.mark.parametrize("axis", [None, 0])
def test_sizes_are_powers_of_two_just_above_the_largest_value(axis):
    matrix = np.array([[3.0, -0.75], [-4.0, 0.5]])
    unit, exponent = unit_size(matrix, axis)
    # 4 = 2^3/2, and .75 < 2^0
    assert np.ravel(exponent).tolist() == ([3] if axis is None else [3, 0])
    assert (unit * 2.0**exponent == matrix).all()
    assert 0.5 <= np.abs(unit).max() < 1


@pytest.mark.parametrize(("power", "moved"), [(960, False), (961, True)])
def test_huge_columns_are_scaled_down(power, moved):
    z = np.array([[-1.0], [0.5], [1.0], [0.25]])
    found, codes = factors_and_codes(2.0**power * z, z)
    assert (found == (2.0 ** (power - 64) if moved else 2.0**power) * z).all()
    assert (codes == z).all()


@pytest.mark.parametrize(("offset", "moved"), [(0.9e6, False), (1.1e6, True), (-1.1e6, True)])
def test_columns_that_lie_far_out_are_moved(offset, moved):
    """Beyond a million times their range: their first value becomes 0, exactly."""
    z = np.array([[0.5], [0.0], [1.0], [0.25]])
    other = np.array([[5.0], [0.0], [1.0], [2.0]])
    found, _ = factors_and_codes(np.c_[z + offset, other, np.full(4, 1e9)], z)
    shift = offset + 0.5 if moved else 0.0
    assert (found[:, 0] == z[:, 0] + offset - shift).all()
    assert (found[:, 1] == other[:, 0]).all()
    assert (found[:, 2] == 1e9).all()  # a constant stays as it is
