from math import log

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.stats import norm
from sklearn.feature_selection import mutual_info_classif
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from identica.errors import InputError
from identica.metrics import infomec, linear_r2


def grid(*cards, copies=20):
    table = np.stack(np.meshgrid(*map(np.arange, cards), indexing="ij"), axis=-1)
    return np.repeat(table.reshape(-1, len(cards)), copies, axis=0)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_the_factors_themselves_are_perfect():
    z = grid(3, 4, 2)
    result = infomec(z, -3 * z[:, [2, 0, 1]] + 7)
    assert result[:3] == pytest.approx((1, 1, 1), abs=1e-3)
    assert_allclose(result.information, np.eye(3)[:, [2, 0, 1]], atol=1e-12)


def test_continuous_factors_and_codes_can_be_perfect(rng):
    z = rng.uniform(size=(3000, 2))
    result = infomec(z, -z)
    assert result.explicitness == pytest.approx(1)
    assert min(result.modularity, result.compactness) > 0.95


def test_duplicated_codes_are_modular_and_less_compact():
    """Two of four codes share each factor: (1/2 - 1/4) / (1 - 1/4)."""
    z = grid(3, 4)
    result = infomec(z, np.c_[z, z])
    assert result[:3] == pytest.approx((1, 1, 1 / 3), abs=1e-3)


def test_merged_codes_are_compact_and_less_modular():
    """One code knows 2 of 3 factors fully: (1/2 - 1/3) / (1 - 1/3) = 1/4, the other one."""
    z = grid(3, 3, 3)
    result = infomec(z, np.c_[z[:, 0] + 3 * z[:, 1], z[:, 2]])
    assert result[:3] == pytest.approx(((1 / 4 + 1) / 2, 1, 1), abs=1e-3)


def test_explicitness_by_hand():
    """The sum of two fair bits knows half a bit of each, and one-hot a linear model reads it."""
    z = grid(2, 2)
    result = infomec(z, z.sum(axis=1))
    assert result.explicitness == pytest.approx(1 / 2, abs=1e-3)
    assert_allclose(result.information, 1 / 2)


def test_what_is_not_linear_is_not_explicit(rng):
    """A circle knows its angle, but half of it must be told apart by more than a line."""
    angle = rng.uniform(0, 2 * np.pi, 3000)
    quarter = (angle // (np.pi / 2)).astype(int)
    circle = np.c_[np.cos(angle), np.sin(angle)]
    crossed = quarter % 2  # opposite quarters: no line separates them
    assert infomec(quarter, circle).explicitness > 0.9
    assert infomec(crossed, circle).explicitness < 0.05
    assert infomec(crossed, circle).information.sum() > 0.0


def test_the_information_of_a_continuous_code_has_its_closed_form(rng):
    """A fair sign in normal noise: I = H(mixture) - H(noise), by integration."""
    sigma = 0.8
    z = rng.integers(0, 2, size=(6000, 1))
    h = 2 * z - 1 + sigma * rng.normal(size=(6000, 1))

    def mixture(x):
        p = (norm.pdf(x, -1, sigma) + norm.pdf(x, 1, sigma)) / 2
        return -p * np.log(p)

    expected = quad(mixture, -8, 8)[0] - norm.entropy(scale=sigma)
    assert infomec(z, h).information[0, 0] == pytest.approx(expected / log(2), abs=0.02)


def test_continuous_factors_are_as_explicit_as_they_are_linear(rng):
    z = rng.normal(size=(2000, 2))
    h = np.tanh(z @ rng.normal(size=(2, 3)))
    expected = linear_r2(z, h, in_sample=True)
    assert infomec(z, h).explicitness == pytest.approx(expected)
    assert expected < 0.99


def test_a_rotation_by_45_degrees_is_neither_modular_nor_compact(rng):
    z = rng.normal(size=(3000, 2))
    result = infomec(z, z @ [[1, 1], [-1, 1]])
    assert result[:3] == pytest.approx((0, 1, 0), abs=0.1)


def test_codes_of_small_range_are_inactive(rng):
    z = rng.integers(0, 4, size=(1500, 2))
    h = z + 0.05 * rng.normal(size=z.shape)
    whisper = np.c_[h, 0.01 * (h[:, 0] + h[:, 1])]
    result = infomec(z, whisper)
    assert result.active.tolist() == [True, True, False]
    assert result[:3] == pytest.approx(infomec(z, h)[:3], abs=0.01)
    assert infomec(z, whisper * [1, 1, 100]).modularity < result.modularity - 0.05


def test_noise_and_constant_codes_score_nothing_and_change_nothing(rng):
    z = rng.integers(0, 4, size=(1500, 2))
    noise = rng.normal(size=(1500, 5))
    assert infomec(z, noise)[:3] == (0, 0, 0)
    assert infomec(z, np.full((1500, 2), 0.1))[:3] == (0, 0, 0)
    h = z @ rng.normal(size=(2, 2)) + 0.5 * rng.normal(size=z.shape)
    padded = infomec(z, np.c_[h, noise, np.ones(1500)])
    assert padded.active.tolist() == [True] * 2 + [False] * 6
    assert padded[:3] == pytest.approx(infomec(z, h)[:3])


def test_order_scale_and_sign_do_not_matter(rng):
    z = rng.integers(0, 4, size=(800, 2))
    h = z @ rng.normal(size=(2, 3)) + 0.5 * rng.normal(size=(800, 3))
    expected = infomec(z, h)[:3]
    for other in (h[:, ::-1], -h, 1e-6 * h, h + 100):
        assert infomec(z, other)[:3] == pytest.approx(expected, abs=1e-3)


def test_bad_input_is_named(rng):
    z = rng.integers(0, 4, size=(100, 2))
    with pytest.raises(InputError, match=r'h has 100 distinct values.*codes="continuous"'):
        infomec(z, rng.normal(size=(100, 2)), codes="discrete")
    with pytest.raises(InputError, match="column 0 has a single value"):
        infomec(0 * z, z)


def test_neighbours_and_regressions_are_those_of_scikit_learn(rng):
    z = rng.integers(0, 3, size=(300, 2))
    h = z @ rng.normal(size=(2, 2)) + 0.7 * rng.normal(size=(300, 2))
    found = infomec(z, h, random_state=5)
    seeds = np.random.default_rng(5)
    y = (h - h.mean(0)) / h.std(0)
    explicit = []
    for j in range(2):
        share = np.bincount(z[:, j]) / 300
        most = -(share * np.log(share)).sum()
        near = mutual_info_classif(
            y, z[:, j], n_neighbors=10, random_state=int(seeds.integers(2**31))
        )
        assert_allclose(found.information[j], near / most)
        model = LogisticRegression(C=1e6, max_iter=1000).fit(y, z[:, j])
        explicit.append(1 - log_loss(z[:, j], model.predict_proba(y)) / most)
    assert found.explicitness == pytest.approx(np.mean(explicit))


@pytest.mark.parametrize(("share", "active"), [(0.049, False), (0.051, True)])
def test_a_twentieth_of_the_largest_range_is_active(rng, share, active):
    z = rng.uniform(size=(500, 2))
    h = z / np.ptp(z, axis=0) * [1, share]
    assert infomec(z, h).active.tolist() == [True, active]
