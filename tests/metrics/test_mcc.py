import itertools

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_allclose
from scipy.stats import ortho_group, spearmanr

from identica.errors import InputError
from identica.metrics import correlation_matrix, match, mcc


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def z(rng):
    return rng.uniform(size=(2000, 4))


def whitened(rng, n, d):
    """Samples whose covariance is the identity exactly."""
    x = rng.normal(size=(n, d))
    return np.linalg.qr(x - x.mean(axis=0))[0]


@pytest.mark.parametrize("method", ["pearson", "spearman"])
def test_permuted_flipped_scaled_codes_are_perfect(z, method):
    h = z[:, [2, 0, 3, 1]] * [1, -1e-9, 1e9, -2] + 7
    assert mcc(z, h, method) == pytest.approx(1)


def test_spearman_sees_through_monotonic_maps_and_pearson_does_not(z):
    h = np.exp(8 * z[:, ::-1])
    assert mcc(z, h, "spearman") == pytest.approx(1)
    assert mcc(z, h) < 0.9


def test_spearman_averages_ties(rng):
    """Argsort would order tied values by their row; here the rows are sorted, the worst case."""
    z = np.sort(rng.integers(0, 3, size=(200, 1)), axis=0)
    h = rng.integers(0, 4, size=(200, 1))
    expected = spearmanr(z[:, 0], h[:, 0]).statistic
    assert correlation_matrix(z, h, "spearman")[0, 0] == pytest.approx(expected)
    assert mcc(z, -z, "spearman") == pytest.approx(1)


def test_scipy_and_numpy_agree_on_every_correlation(z, rng):
    h = np.tanh(z @ rng.normal(size=(4, 3)) + rng.normal(size=(len(z), 3)))
    assert_allclose(correlation_matrix(z, h), np.corrcoef(z.T, h.T)[:4, 4:], atol=1e-12)
    expected = spearmanr(z, h).statistic[:4, 4:]
    assert_allclose(correlation_matrix(z, h, "spearman"), expected, atol=1e-12)


@pytest.mark.parametrize(("d", "k"), [(4, 4), (3, 5), (5, 3)])
def test_the_assignment_is_the_best_of_all(rng, d, k):
    """All assignments tried one by one; a factor without a code counts 0."""
    z = rng.normal(size=(50, d))
    h = z @ rng.normal(size=(d, k)) + rng.normal(size=(50, k))
    table = np.abs(np.corrcoef(z.T, h.T)[:d, d:])
    padded = np.c_[table, np.zeros((d, d))]
    best = max(
        padded[range(d), list(columns)].sum() / d
        for columns in itertools.permutations(range(k + d), d)
    )
    assert mcc(z, h) == pytest.approx(best)


def test_noise_codes_beside_the_right_ones_neither_help_nor_hurt(z, rng):
    h = z + 0.3 * rng.normal(size=z.shape)
    assert mcc(z, np.c_[rng.normal(size=(len(z), 6)), h]) == pytest.approx(mcc(z, h))


def test_missing_codes_count_zero(z):
    assert mcc(z, z[:, [3]]) == pytest.approx(1 / 4)


@pytest.mark.parametrize(("d", "expected"), [(2, 0.905), (5, 0.726), (10, 0.595), (20, 0.471)])
def test_random_rotations_have_their_known_score(rng, d, expected):
    z = whitened(rng, 100, d)
    rotations = ortho_group.rvs(d, size=400, random_state=rng)
    assert np.mean([mcc(z, z @ q) for q in rotations]) == pytest.approx(expected, abs=0.012)


def test_independent_codes_have_their_known_score(rng):
    scores = [mcc(*rng.normal(size=(2, 4096, 10))) for _ in range(40)]
    assert np.mean(scores) == pytest.approx(0.027, abs=0.0015)


def test_constant_columns_correlate_with_nothing(z):
    h = z.copy()
    h[:, 1] = 0.1
    assert mcc(z, h) == pytest.approx(3 / 4, abs=0.02)
    assert mcc(z, np.full_like(z, 0.1)) == 0
    assert mcc(np.full_like(z, 0.1), z, "spearman") == 0


def test_match_says_which_code_and_which_sign(z):
    columns, correlations = match(z, np.c_[-z[:, 2], np.zeros(len(z)), z[:, 0]])
    assert columns[[0, 2]].tolist() == [2, 0]
    assert_allclose(correlations[[0, 2]], [1, -1])
    assert sorted(columns[[1, 3]]) == [-1, 1]
    assert_allclose(correlations[[1, 3]], 0)


@pytest.mark.parametrize("method", ["pearson", "spearman"])
def test_numpy_torch_and_pandas_give_the_same(z, rng, method):
    h = z @ rng.normal(size=(4, 3))
    expected = mcc(z, h, method)
    assert mcc(torch.tensor(z), torch.tensor(h, requires_grad=True), method) == expected
    assert mcc(pd.DataFrame(z), pd.DataFrame(h), method) == expected


def test_float32_with_a_large_offset_keeps_its_precision(z):
    h = (z + 1e4).astype(np.float32)
    assert 1 - mcc(z, h) == pytest.approx(0.5 * 2.0**-20, rel=0.1)
    assert mcc(h, torch.tensor(h)) == pytest.approx(1, abs=1e-12)


def test_bad_input_is_named(z):
    with pytest.raises(InputError, match="did you mean 'spearman'"):
        mcc(z, z, "spearmen")
    with pytest.raises(InputError, match="same number of rows"):
        mcc(z, z[:-1])
