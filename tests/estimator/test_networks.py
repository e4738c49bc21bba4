import numpy as np
import pytest
import torch

from identica import InputError
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
