import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_allclose
from scipy.stats import ortho_group
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score

from identica.errors import InputError
from identica.metrics import linear_r2, linear_r2_per_factor


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def z(rng):
    return rng.uniform(size=(2000, 4))


@pytest.mark.parametrize("in_sample", [False, True])
def test_affine_maps_of_the_factors_are_perfect(z, rng, in_sample):
    rotation = ortho_group.rvs(4, random_state=rng)
    for h in [z, z @ rotation, -z[:, ::-1], 1e6 * z - 3, z @ rng.normal(size=(4, 7))]:
        assert linear_r2(z, h, in_sample=in_sample) == pytest.approx(1)


def test_independent_codes_score_nothing_held_out_and_k_over_n_in_sample(rng):
    """Least squares with an intercept fits k of the N - 1 free directions of pure noise."""
    z, h = rng.normal(size=(2000, 50)), rng.normal(size=(2000, 20))
    assert linear_r2(z, h) < 0.001
    assert linear_r2(z, h, in_sample=True) == pytest.approx(20 / 1999, abs=0.001)


@pytest.mark.parametrize("sigma", [0.1, 0.5, 1.0, 2.0])
def test_noise_has_its_closed_form(rng, sigma):
    """Codes z + sigma * noise of unit-variance factors explain 1 / (1 + sigma^2)."""
    z = rng.normal(size=(40000, 3))
    h = z + sigma * rng.normal(size=z.shape)
    assert linear_r2(z, h) == pytest.approx(1 / (1 + sigma**2), abs=0.01)


@pytest.mark.parametrize("value", [0.0, 0.1, -1e8])
def test_constant_codes_score_zero(z, value):
    h = np.full((len(z), 3), value)
    assert linear_r2(z, h) == 0
    assert linear_r2(z, h, in_sample=True) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("in_sample", [False, True])
def test_scikit_learn_agrees(z, rng, in_sample):
    h = np.tanh(3 * z @ rng.normal(size=(4, 6))) + 0.1 * rng.normal(size=(len(z), 6))
    fit, score = (slice(None),) * 2 if in_sample else (slice(1000), slice(1000, None))
    predicted = LinearRegression().fit(h[fit], z[fit]).predict(h[score])
    expected = r2_score(z[score], predicted, multioutput="raw_values")
    assert (expected > 0.1).all()
    assert_allclose(linear_r2_per_factor(z, h, in_sample=in_sample), expected, rtol=1e-9)
    assert linear_r2(z, h, in_sample=in_sample) == pytest.approx(expected.mean())


def test_every_factor_counts_the_same_whatever_its_variance(z):
    """Codes know factor 0 only, whose variance dwarfs the others': a quarter, not nearly all."""
    scaled = z * [1000, 1, 1, 1]
    assert_allclose(linear_r2_per_factor(scaled, z[:, 0]), [1, 0, 0, 0], atol=0.01)
    assert linear_r2(scaled, z[:, 0], in_sample=True) == pytest.approx(0.25, abs=0.01)


def test_it_is_fitted_on_the_first_half_and_scored_on_the_second(z):
    h = np.where(np.arange(len(z))[:, None] < 1000, z, -z)
    assert linear_r2(z, h) == 0
    assert linear_r2(z, np.r_[np.zeros_like(z[:1000]), z[1000:]]) == 0


def test_collinear_and_constant_columns_change_nothing(z, rng):
    h = z[:, :2] @ rng.normal(size=(2, 3)) + 0.1 * rng.normal(size=(len(z), 3))
    more = np.c_[h, h[:, 0] + h[:, 1], h, np.full(len(z), 0.3)]
    assert linear_r2(z, more) == pytest.approx(linear_r2(z, h))


def test_scale_and_order_of_the_codes_do_not_matter(z, rng):
    h = np.tanh(z @ rng.normal(size=(4, 4)))
    for other in [h * [1e-30, 1, 1e30, -1], h[:, ::-1], h + 1e5]:
        assert linear_r2(z, other) == pytest.approx(linear_r2(z, h))


def test_numpy_torch_and_pandas_give_the_same(z, rng):
    h = z @ rng.normal(size=(4, 3))
    expected = linear_r2(z, h)
    assert 0.3 < expected < 1
    assert linear_r2(torch.tensor(z), torch.tensor(h, requires_grad=True)) == expected
    assert linear_r2(pd.DataFrame(z), pd.DataFrame(h)) == expected
    assert linear_r2(z.tolist(), h.tolist()) == expected


def test_float32_with_a_large_offset_keeps_its_precision(z):
    """At an offset of 1e4 float32 rounds to 2^-10, uniform noise of variance 2^-20 / 12."""
    h = (z + 1e4).astype(np.float32)
    lost = 2.0**-20 / 12 / (1 / 12)
    assert 1 - linear_r2(z, h) == pytest.approx(lost, rel=0.1)
    assert linear_r2(h, torch.tensor(h)) == pytest.approx(1, abs=1e-12)


def test_bad_input_is_named(z):
    constant = np.c_[z, np.ones(len(z))]
    with pytest.raises(InputError, match=r"z must vary.*column 4 is constant"):
        linear_r2(constant, z)
    ends_constant = np.where(np.arange(len(z))[:, None] < 1000, z, 0.5)
    with pytest.raises(InputError, match="second half"):
        linear_r2(ends_constant, z)
    assert linear_r2(ends_constant, ends_constant, in_sample=True) == pytest.approx(1)
    with pytest.raises(InputError, match="same number of rows"):
        linear_r2(z, z[:-1])
    with pytest.raises(InputError, match="h must be finite"):
        linear_r2(z, np.where(z > 0.99, np.nan, z))
