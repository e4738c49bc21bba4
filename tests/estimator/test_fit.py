import math

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar
from scipy.stats import norm

from identica import (
    Box,
    ContrastiveModel,
    Euclidean,
    InfoNCE,
    InputError,
    Laplace,
    Normal,
    Sphere,
    Training,
    VonMisesFisher,
)
from identica.estimator.fit import Fit, calibrate, log_likelihood, recipe
from identica.estimator.inputs import Whiten, make_encoder


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


def test_weak_directions_are_blown_up_a_hundredfold_at_most():
    """Two columns that are nearly alike: their difference is far below a hundredth of their sum."""
    x, noise = torch.randn(
        2, 5000, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(0)
    )
    pair = torch.cat([x, x + 1e-4 * noise], dim=1)
    whiten = Whiten(2)
    whiten.measure(pair)
    weak, strong = (float(s) for s in whiten(pair).std(0))
    assert strong == pytest.approx(1, abs=1e-3)
    # the difference has a standard deviation of 1e-4/√2 and the sum of √2; the floor is at √2/100
    assert weak == pytest.approx(1e-4 / 2**0.5 / (2**0.5 / 100), rel=0.05)
    plain = Whiten(2)
    plain.measure(torch.cat([x, x + 0.1 * noise], dim=1))  # above the floor
    assert torch.allclose(
        plain(torch.cat([x, x + 0.1 * noise], dim=1)).std(0), torch.ones(2), atol=1e-3
    )


@pytest.mark.parametrize(("scale", "offset"), [(1e-300, 0.0), (1.0, 1e13), (1e300, -1e301)])
def test_units_and_offsets_do_not_matter(scale, offset):
    x = torch.randn(1000, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    x[:, 1] += x[:, 0]
    here, there = Whiten(4), Whiten(4)
    here.measure(x)
    there.measure(scale * x + offset)
    # numbers around 1e13 are 2⁻⁹ apart, and are off by half of that
    assert torch.allclose(here(x), there(scale * x + offset), atol=0.01)


def test_what_float64_cannot_tell_apart_is_named():
    rows = torch.rand(10, 3, dtype=torch.float64)
    for constant in (torch.zeros(10, 3), rows + 1e17, (rows + 1e15).float()):
        with pytest.raises(InputError, match="X must vary"):
            Whiten(3).measure(constant)
    with pytest.raises(InputError, match="X must span less than"):
        Whiten(3).measure(torch.tensor([[1.5e308] * 3, [-1.5e308] * 3], dtype=torch.float64))


def test_wide_rows_are_scaled_column_by_column():
    x = torch.randn(50, 1200, generator=torch.Generator().manual_seed(0)) * 3 + 1
    whiten = Whiten(1200)
    whiten.measure(x)
    assert np.allclose(whiten(x).std(0, correction=0), 1, atol=1e-4)
    assert sum(b.numel() for b in whiten.buffers()) == 2 * 1200


@pytest.mark.parametrize("shape", [(5,), (64, 64), (3, 64, 64), (64, 64, 1)])
def test_encoders_for_rows_and_images(shape):
    encoder = make_encoder(shape, 3, seed=0)
    encoder.measure(torch.rand(4, *shape, generator=torch.Generator().manual_seed(0)))
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


def test_the_precision_is_in_units_of_the_temperature():
    """The similarity of codes scaled by the loss, over the temperature, is −Σ λ_k |a_k − b_k|^p; the
    temperature that training began with has no part in it."""
    log = [0.3, -1.2, 2.0]
    for family, tau in ((Laplace(0.5), 3.0), (Normal(2.0), 0.2)):
        loss = InfoNCE(family, tau, learn_precision=3)
        loss.log_precision.data.copy_(torch.tensor(log))
        model = ContrastiveModel(Euclidean(3), family, torch.nn.Identity())
        fit = Fit(model, loss, temperature=0.7, history=[])
        a, b = torch.randn(2, 5, 3, generator=torch.Generator().manual_seed(0))
        power = {1.0: 1 / 0.5, 2.0: 1 / (2 * 2.0**2)}[family.p]  # of the density
        known = [math.exp(x) * power / 0.7 for x in log]
        assert fit.precision.tolist() == pytest.approx(known, rel=1e-5)
        expected = -(fit.precision * (a - b).abs() ** family.p).sum(-1)
        found = family.similarity(loss.scaled(a), loss.scaled(b)) / fit.temperature
        assert torch.allclose(found, expected, rtol=1e-4)


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
