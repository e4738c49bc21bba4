import math

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar
from scipy.stats import norm

from identica import Box, Euclidean, InputError, Laplace, Normal, Sphere, Training, VonMisesFisher
from identica.fitting import Whiten, calibrate, log_likelihood, make_encoder, recipe


def test_whitened_rows_have_no_covariance_whatever_their_units():
    rng = np.random.default_rng(0)
    mixing = rng.normal(size=(4, 4)) * [1e-6, 1.0, 1e5, 1.0]
    x = torch.from_numpy(rng.normal(size=(5000, 4)) @ mixing + [1e4, 0.0, 1.0, -5.0])
    whiten = Whiten(4)
    whiten.measure(x)
    assert np.allclose(np.cov(whiten(x).T), np.eye(4), atol=1e-3)


def test_constant_and_repeated_columns_stay_finite():
    x = torch.randn(100, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    x = torch.cat([x, x, torch.full_like(x, 7.0)], dim=1)
    whiten = Whiten(3)
    whiten.measure(x)
    codes = whiten(x)
    assert torch.isfinite(codes).all()
    assert codes.abs().max() < 10


def test_wide_rows_are_scaled_column_by_column():
    x = torch.randn(50, 1200, generator=torch.Generator().manual_seed(0)) * 3 + 1
    whiten = Whiten(1200)
    whiten.measure(x)
    assert np.allclose(whiten(x).std(0, correction=0), 1, atol=1e-4)
    assert sum(b.numel() for b in whiten.buffers()) == 2 * 1200


@pytest.mark.parametrize("shape", [(5,), (64, 64), (3, 64, 64), (64, 64, 1)])
def test_encoders_for_rows_and_images(shape):
    encoder = make_encoder(shape, 3, seed=0)
    encoder.measure(torch.zeros(4, *shape))
    assert encoder(torch.zeros(4, *shape)).shape == (4, 3)


def test_bytes_are_told_from_masks():
    images = torch.full((2, 64, 64), 255, dtype=torch.uint8)
    encoder = make_encoder((64, 64), 3, seed=0)
    encoder.measure(images)
    ones = encoder(images)
    encoder.measure(images // 255)
    assert torch.equal(ones, encoder(images // 255))


def test_other_shapes_need_a_network():
    with pytest.raises(InputError, match="network must be given for observations of shape"):
        make_encoder((32, 32), 3, seed=0)


def test_the_likelihood_is_that_of_a_choice_among_the_batch():
    rng = np.random.default_rng(0)
    h = rng.normal(size=(300, 2))
    h_pos = h + 0.5 * rng.normal(size=h.shape)
    found = log_likelihood(Normal(1.0), torch.from_numpy(h), torch.from_numpy(h_pos), 0.25)
    density = norm.pdf(h[:, None], h_pos[None], 0.5).prod(-1)
    assert np.allclose(found, np.log(density.diagonal() / density.mean(1)))


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


@pytest.mark.parametrize("scale", [0.1, 10.0])
@pytest.mark.parametrize("space", [Box(2), Euclidean(2), Sphere(2, radius=3.0)])
def test_the_scale_of_the_family_does_not_matter(space, scale):
    """Of a conditional the form alone counts: the loss before training is the same."""
    h = torch.randn(20, 2, generator=torch.Generator().manual_seed(0))
    losses = []
    for family in (Normal(1.0), Normal(scale)):
        head, loss = recipe(space, family, Training(batch=20))
        losses.append(loss(head(h), head(h + 0.1)).item())
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
