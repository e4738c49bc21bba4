"""How positives vary around codes that are made directly, so that the truth is known."""

import math

import numpy as np
import pytest
from scipy import stats

from helpers.codes import N, pairs, rotation
from identica import Box, Euclidean, Laplace, Normal, Sphere, VonMisesFisher
from identica.diagnosis.conditional import (
    concentration,
    fit_differences,
    generalized_normal,
    inner_differences,
    misfit,
    position_dependence,
)
from identica.diagnosis.sequence import Order


@pytest.mark.parametrize("shape", [1.0, 2.0, 3.0])
def test_shape_and_scale_lie_in_their_intervals(shape):
    shapes = scales = 0
    for seed in range(20):
        fit = generalized_normal(stats.gennorm(shape, scale=0.05).rvs(1500, random_state=seed))
        shapes += fit.shape_interval[0] < shape < fit.shape_interval[1]
        scales += fit.scale_interval[0] < 0.05 < fit.scale_interval[1]
    assert shapes >= 16
    assert scales >= 16
    assert fit.family == {1: "laplace", 2: "normal", 3: "gennorm3"}[shape]


def test_the_fit_is_the_maximum_of_the_likelihood():
    d = stats.gennorm(1.6, scale=3.0).rvs(1000, random_state=0)
    fit = generalized_normal(d)
    shape, _, scale = stats.gennorm.fit(d, floc=0)
    assert fit.shape == pytest.approx(shape, rel=0.01)
    assert fit.scale == pytest.approx(scale, rel=0.01)


def test_walls_do_not_bend_the_fitted_shape():
    z, z_pos = pairs(Box(2), Laplace(0.1), 8000)
    fits = fit_differences(inner_differences(z, z_pos, Box(2)))
    for fit in fits:
        # a wall is still felt a little by the wide tails of a Laplace distribution
        assert fit.shape == pytest.approx(1.0, abs=0.12)
    everywhere = pairs(Box(2), Normal(1.0), 8000)
    assert fit_differences(inner_differences(*everywhere, Box(2))) == [None, None]


@pytest.mark.parametrize("kappa", [1.0, 10.0, 300.0])
def test_concentration_of_von_mises_fisher(kappa):
    z, z_pos = pairs(Sphere(4, radius=2.0), VonMisesFisher(kappa), 20_000)
    assert concentration(z, z_pos) == pytest.approx(kappa, rel=0.05)


def test_concentration_of_unrelated_and_equal_pairs():
    z = Sphere(3).sample(100, generator=0).numpy()
    assert concentration(z, -z) == 0
    assert concentration(z, z) >= 1e5


@pytest.mark.parametrize("shape", [1.0, 2.0])
def test_misfit_is_the_distance_of_distribution_functions(shape):
    d = stats.laplace(scale=2.0).rvs(4000, random_state=0)
    scale = {1: np.abs(d).mean(), 2: np.sqrt(2 * np.mean(d**2))}[shape]
    expected = stats.kstest(d, stats.gennorm(shape, scale=scale).cdf).statistic
    assert misfit([d], shape) == pytest.approx(expected)
    assert (misfit([d], shape) < 0.03) == (shape == 1)


LINEAR_SPACES = [
    (Box(3), Laplace(0.05)),
    (Box(3), Normal(0.4)),  # walls are felt everywhere
    (Sphere(3), VonMisesFisher(10.0)),
    (Sphere(4), VonMisesFisher(1.0)),
]


@pytest.mark.parametrize(("space", "conditional"), LINEAR_SPACES)
def test_the_same_law_everywhere_has_no_bend(space, conditional):
    z, z_pos = pairs(space, conditional)
    fit = (
        concentration(z, z_pos)
        if isinstance(space, Sphere)
        else fit_differences(inner_differences(z, z_pos, space))
    )
    assert position_dependence(z, z_pos, space, fit, Order(np.arange(len(z)), 0)) < 0.15


def test_a_rotation_or_a_stretch_is_no_bend():
    z = np.random.default_rng(0).normal(size=(N, 3))
    z_pos = z + 0.1 * np.random.default_rng(1).normal(size=z.shape)
    h, h_pos = (part @ rotation(3) * [1, 5, 0.2] for part in (z, z_pos))
    fit = fit_differences(inner_differences(h, h_pos, Euclidean(3)))
    assert position_dependence(h, h_pos, Euclidean(3), fit, Order(np.arange(len(h)), 0)) < 0.1


@pytest.mark.parametrize("unit", [1.0, 1e-12, 1e9])
def test_a_bend_is_measured_by_its_slope(unit):
    """h = e^{az} spreads as e^{az}, whose logarithm has the standard deviation a/√12."""
    z = np.random.default_rng(0).uniform(size=(20_000, 1))
    z_pos = z + 0.01 * np.random.default_rng(1).normal(size=z.shape)
    h, h_pos = unit * np.exp(0.8 * z), unit * np.exp(0.8 * z_pos)
    fit = fit_differences(inner_differences(h, h_pos, Euclidean(1)))
    bend = position_dependence(h, h_pos, Euclidean(1), fit, Order(np.arange(len(h)), 0))
    assert bend == pytest.approx(0.8 / math.sqrt(12), rel=0.15)


def test_a_bend_across_codes_is_seen():
    z = np.random.default_rng(0).uniform(-1, 1, size=(N, 2))
    z_pos = z + 0.03 * np.random.default_rng(1).normal(size=z.shape)
    h, h_pos = (np.c_[part[:, 0] + part[:, 1] ** 2, part[:, 1]] for part in (z, z_pos))
    fit = fit_differences(inner_differences(h, h_pos, Euclidean(2)))
    assert position_dependence(h, h_pos, Euclidean(2), fit, Order(np.arange(len(h)), 0)) > 0.4
