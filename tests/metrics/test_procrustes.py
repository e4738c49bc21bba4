import numpy as np
import pandas as pd
import pytest
import scipy.linalg
import scipy.spatial
import torch
from numpy.testing import assert_allclose
from scipy.stats import ortho_group

from identica.errors import InputError
from identica.metrics import procrustes


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def z(rng):
    return rng.normal(size=(500, 4)) * [1, 2, 3, 4]


def test_rotations_with_scale_and_shift_are_perfect_and_found(z, rng):
    rotation = ortho_group.rvs(4, random_state=rng)
    result = procrustes(z, 0.1 * z @ rotation + 3)
    assert result.error == pytest.approx(0, abs=1e-12)
    assert result.scale == pytest.approx(10)
    assert_allclose(result.rotation, rotation.T, atol=1e-12)


def test_permuted_and_flipped_codes_are_perfect(z):
    assert procrustes(z, -z[:, [1, 3, 0, 2]]).error == pytest.approx(0, abs=1e-12)


def test_an_uneven_scaling_has_its_closed_form(rng):
    """White factors with one of two axes scaled by a: 1 - (1 + a)^2 / (2 (1 + a^2))."""
    x = rng.normal(size=(300, 2))
    z = np.linalg.qr(x - x.mean(axis=0))[0]
    for a in [0.0, 0.5, 3.0]:
        expected = 1 - (1 + a) ** 2 / (2 * (1 + a**2))
        assert procrustes(z, z * [1, a]).error == pytest.approx(expected, abs=1e-12)


def test_independent_and_constant_codes_are_as_bad_as_none(z, rng):
    assert procrustes(z, rng.normal(size=z.shape)).error > 0.95
    error, rotation, scale = procrustes(z, np.full((500, 4), 0.1))
    assert (error, scale) == (1, 0)
    assert_allclose(rotation @ rotation.T, np.eye(4), atol=1e-12)


def test_scipy_agrees(z, rng):
    h = np.tanh(z @ rng.normal(size=(4, 4))) + 0.2 * rng.normal(size=z.shape)
    error, rotation, scale = procrustes(z, h)
    assert error == pytest.approx(scipy.spatial.procrustes(z, h)[2])
    centred_z, centred_h = z - z.mean(axis=0), h - h.mean(axis=0)
    expected, size = scipy.linalg.orthogonal_procrustes(centred_h, centred_z)
    assert_allclose(rotation, expected, atol=1e-9)
    assert scale == pytest.approx(size / (centred_h**2).sum())
    residual = centred_z - scale * centred_h @ rotation
    assert error == pytest.approx((residual**2).sum() / (centred_z**2).sum())


@pytest.mark.parametrize("k", [2, 6])
def test_other_widths_are_padded_with_zeros(z, rng, k):
    h = z @ rng.normal(size=(4, k)) + rng.normal(size=(500, k))
    error, rotation, _ = procrustes(z, h)
    wide = max(4, k)
    padded_z = np.c_[z, np.zeros((500, wide - 4))]
    padded_h = np.c_[h, np.zeros((500, wide - k))]
    assert error == pytest.approx(scipy.spatial.procrustes(padded_z, padded_h)[2])
    assert error == pytest.approx(procrustes(h, z).error)
    assert rotation.shape == (k, 4)


def test_numpy_torch_and_pandas_give_the_same(z, rng):
    h = z @ rng.normal(size=(4, 4))
    expected = procrustes(z, h).error
    assert 0.1 < expected < 0.9
    assert procrustes(torch.tensor(z), torch.tensor(h, requires_grad=True)).error == expected
    assert procrustes(pd.DataFrame(z), pd.DataFrame(h)).error == expected


def test_float32_with_a_large_offset_keeps_its_precision(z):
    h = (z + 1e4).astype(np.float32)
    assert procrustes(z, h).error == pytest.approx(4 * 2.0**-20 / 12 / 30, rel=0.1)


def test_bad_input_is_named(z):
    with pytest.raises(InputError, match="z must vary"):
        procrustes(np.ones((500, 2)), z)
    with pytest.raises(InputError, match="same number of rows"):
        procrustes(z, z[:-1])
