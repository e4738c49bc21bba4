import math

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar
from scipy.stats import norm

from identica import Box, Laplace, Normal, Sphere, VonMisesFisher
from identica.metrics.evidence import bits, calibrate, log_likelihood


def test_the_likelihood_is_that_of_a_choice_among_the_batch():
    rng = np.random.default_rng(0)
    h = rng.normal(size=(300, 2))
    h_pos = h + 0.5 * rng.normal(size=h.shape)
    found = log_likelihood(Normal(1.0), torch.from_numpy(h), torch.from_numpy(h_pos), 0.25)
    density = norm.pdf(h[:, None], h_pos[None], 0.5).prod(-1)
    assert np.allclose(found, np.log(density.diagonal() / density.mean(1)))


def test_a_bias_is_a_weight_of_each_positive():
    rng = np.random.default_rng(0)
    h = torch.from_numpy(rng.normal(size=(300, 2)))
    h_pos, weight = h + 0.5 * torch.from_numpy(rng.normal(size=(300, 2))), rng.uniform(1, 9, 300)
    bias = torch.from_numpy(np.log(weight))
    found = log_likelihood(Normal(1.0), h, h_pos, 0.25, bias)
    density = weight * norm.pdf(h[:, None], h_pos[None], 0.5).prod(-1)
    expected = np.log(density.diagonal() / density.mean(1))
    assert np.allclose(found, expected)
    temperatures = [0.05, 0.25, 1.0]
    assert bits(Normal(1.0), h, h_pos, temperatures, bias) == pytest.approx(
        max(float(log_likelihood(Normal(1.0), h, h_pos, t, bias).mean()) for t in temperatures)
        / math.log(2)
    )


def test_calibration_takes_a_bias_into_account():
    """Normal factors: with −log of their density as the bias, the best temperature is the true one."""
    generator = torch.Generator().manual_seed(0)
    z = torch.randn(2048, 2, generator=generator)
    z_pos = z + torch.randn(2048, 2, generator=generator)
    bias = z_pos.square().sum(1) / 4
    assert calibrate(Normal(1.0), z, z_pos, bias) == pytest.approx(1, rel=0.12)
    assert calibrate(Normal(1.0), z, z_pos) != pytest.approx(1, rel=0.2)


def test_the_likelihood_of_knowing_nothing_and_everything():
    h = torch.arange(100.0)[:, None]
    nothing = log_likelihood(Laplace(1.0), torch.zeros_like(h), torch.zeros_like(h), 1.0)
    assert torch.allclose(nothing, torch.zeros(100), atol=1e-5)
    everything = log_likelihood(Laplace(1.0), h, h, 0.01)
    assert torch.allclose(everything, torch.full((100,), math.log(100)))


@pytest.mark.parametrize("scale", [0.02, 0.3])
@pytest.mark.parametrize(
    ("family", "space"),
    [(Laplace, Box(3)), (Normal, Box(3)), (lambda s: VonMisesFisher(1 / s), Sphere(3))],
)
def test_calibration_finds_the_scale_of_the_truth(family, space, scale):
    """Codes that are the factors themselves: the best temperature turns the unit family into the true
    one."""
    z = space.sample(2048, generator=0)
    z_pos = family(scale).sample(space, z, generator=1)
    expected = family(1.0).precision / family(scale).precision
    assert calibrate(family(1.0), z, z_pos) == pytest.approx(expected, rel=0.12)


def test_calibration_is_the_best_by_another_search():
    generator = torch.Generator().manual_seed(0)
    h = torch.randn(200, 2, generator=generator)
    h_pos = h + 0.1 * torch.randn(200, 2, generator=generator)

    def loss(log_tau):
        return -float(log_likelihood(Normal(1.0), h, h_pos, math.exp(log_tau)).mean())

    brent = minimize_scalar(loss, bracket=(-6, -2))
    assert math.log(calibrate(Normal(1.0), h, h_pos)) == pytest.approx(brent.x, abs=0.02)
