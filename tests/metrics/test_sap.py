import numpy as np
import pytest
from sklearn.svm import LinearSVC

from identica.errors import InputError
from identica.metrics import sap


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_the_continuous_factors_themselves_are_perfect(rng):
    z = rng.normal(size=(5000, 3))
    assert sap(z, z) == pytest.approx(1, abs=0.002)
    assert sap(z, np.c_[z, z]) == pytest.approx(0)


@pytest.mark.parametrize("sigma", [0.5, 1.0])
def test_continuous_gaps_are_gaps_of_squared_correlation(rng, sigma):
    z = rng.normal(size=(20000, 2))
    noisy = z + sigma * rng.normal(size=z.shape)
    assert sap(z, np.c_[z, noisy]) == pytest.approx(1 - 1 / (1 + sigma**2), abs=0.01)
    assert sap(z, noisy) == pytest.approx(1 / (1 + sigma**2), abs=0.01)


def test_a_rotation_by_45_degrees_leaves_no_gap(rng):
    z = rng.normal(size=(20000, 2))
    assert sap(z, z @ [[1, 1], [-1, 1]]) < 0.02


@pytest.mark.parametrize("k", [2, 3])
def test_perfect_codes_of_few_values_beat_chance_by_all_the_rest(rng, k):
    """The best code is always right, the next one once in k."""
    z = rng.integers(0, k, size=(6000, 2))
    assert sap(z, z) == pytest.approx(1 - 1 / k, abs=0.03)
    assert sap(z, np.c_[z, -z]) == pytest.approx(0)
    assert sap(z, z[:, :1]) == pytest.approx((1 - 1 / k) / 2, abs=0.03)


def test_values_in_the_middle_cannot_be_singled_out(rng):
    z = rng.integers(0, 40, size=(6000, 2))
    assert sap(z, z) < 0.1


def test_independent_codes_have_no_gap(rng):
    z = np.column_stack([rng.integers(0, k, 3000) for k in (2, 3, 10)])
    assert sap(z, rng.normal(size=(3000, 5))) < 0.02


def test_noise_codes_are_not_rewarded(rng):
    z = rng.integers(0, 3, size=(2000, 2))
    h = z + 0.5 * rng.normal(size=z.shape)
    assert sap(z, np.c_[h, rng.normal(size=(2000, 6))]) <= sap(z, h) + 1e-12


def test_it_is_the_gap_of_the_classifiers_of_the_benchmark(rng):
    """The same rows, the solver of the benchmark (dual), codes of unit scale already."""
    z = np.column_stack([rng.integers(0, k, 900) for k in (2, 5)])
    h = rng.normal(size=(900, 3)) + z @ rng.normal(size=(2, 3))
    h = (h - h.mean(axis=0)) / h.std(axis=0)
    order = np.random.default_rng(7).permutation(900)
    train, test = order[:600], order[600:]
    scores = np.empty((2, 3))
    for j, i in np.ndindex(2, 3):
        svm = LinearSVC(C=0.01, class_weight="balanced", dual=True, random_state=0)
        svm.fit(h[train, i : i + 1], z[train, j])
        scores[j, i] = svm.score(h[test, i : i + 1], z[test, j])
    scores.sort(axis=1)
    expected = (scores[:, -1] - scores[:, -2]).mean()
    assert expected > 0.02
    assert sap(z, h, random_state=7) == pytest.approx(expected, abs=0.004)


def test_order_scale_and_sign_do_not_matter(rng):
    z = rng.integers(0, 3, size=(600, 2))
    h = z @ rng.normal(size=(2, 3)) + rng.normal(size=(600, 3))
    for other in (h[:, ::-1], -h, h * [1e-6, 1e6, 3], h + 100):
        assert sap(z, other) == pytest.approx(sap(z, h), abs=0.004)


def test_constant_codes_know_nothing(rng):
    z = rng.normal(size=(2000, 2))
    assert sap(z, np.full((2000, 3), 0.1)) == 0
    assert sap(z, np.c_[z, np.ones(2000)]) == pytest.approx(1, abs=0.005)
    labels = (z > 0).astype(np.uint8)
    assert sap(labels, np.ones((2000, 3))) == 0
    assert sap(labels, np.c_[labels, np.ones(2000)]) == pytest.approx(0.5, abs=0.05)


def test_the_same_seed_gives_the_same_score(rng):
    z = rng.integers(0, 3, size=(200, 2))
    h = z + rng.normal(size=z.shape)
    assert sap(z, h, random_state=3) == sap(z, h, random_state=np.random.default_rng(3))
    assert len({sap(z, h, random_state=seed) for seed in range(5)}) > 1


def test_bad_input_is_named(rng):
    z = np.zeros((30, 1), dtype=int)
    z[np.random.default_rng(0).permutation(30)[-1]] = 1  # the only 1 is not fitted on
    with pytest.raises(InputError, match="column 0 has a single value in the 20 rows fitted on"):
        sap(z, rng.normal(size=30))
    with pytest.raises(InputError, match="column 0 has a single value"):
        sap(np.zeros((30, 1)), rng.normal(size=30))
