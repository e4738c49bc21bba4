from math import log

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import entropy
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor

from identica.errors import InputError
from identica.metrics import dci
from identica.metrics._boosting import boosted_classes, boosted_values


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_the_factors_themselves_are_perfect(rng):
    z = np.column_stack([rng.integers(0, k, 600) for k in (2, 3, 5)])
    result = dci(z, -3.0 * z[:, [2, 0, 1]] + 7)
    assert result[:4] == pytest.approx((1, 1, 1, 1))
    assert_allclose(result.importance, np.eye(3)[[2, 0, 1]], atol=1e-9)
    z = rng.uniform(size=(900, 2))
    result = dci(z, z)
    assert min(result[:4]) > 0.98


def test_duplicated_codes_stay_disentangled_and_are_less_complete(rng):
    """Either copy serves a split equally well, so each gets half: C = 1 - log 2 / log 4."""
    z = rng.integers(0, 6, size=(500, 2))
    result = dci(z, np.c_[z, z])
    assert result.disentanglement == pytest.approx(1)
    assert result.completeness == pytest.approx(1 - log(2) / log(4), abs=0.01)
    assert_allclose(result.importance, 0.5 * np.r_[np.eye(2), np.eye(2)], atol=0.1)


def test_merged_codes_stay_complete_and_are_less_disentangled(rng):
    """A code for 2 of 3 factors is worth 1 - log 2 / log 3 and has two thirds of the weight."""
    z = rng.integers(0, 3, size=(900, 3))
    result = dci(z, np.c_[z[:, 0] + 3 * z[:, 1], z[:, 2]])
    assert result.disentanglement == pytest.approx(2 / 3 * (1 - log(2) / log(3)) + 1 / 3, abs=0.01)
    assert result.completeness == pytest.approx(1, abs=0.01)
    assert result.informativeness == 1


def test_a_rotation_by_45_degrees_is_neither(rng):
    z = rng.normal(size=(4000, 2))
    result = dci(z, z @ [[1, 1], [-1, 1]])
    assert result.disentanglement < 0.02
    assert result.completeness < 0.02
    assert result.informativeness > 0.9


def test_independent_codes_score_nothing_and_predict_by_chance(rng):
    z = rng.integers(0, 4, size=(1500, 3))
    result = dci(z, rng.normal(size=(1500, 4)))
    assert result.disentanglement < 0.02
    assert result.completeness == 0
    assert result.informativeness == pytest.approx(1 / 4, abs=0.05)


def test_constant_codes_score_nothing_and_predict_the_commonest(rng):
    z = rng.choice(3, p=[0.6, 0.2, 0.2], size=(900, 2))
    result = dci(z, np.full((900, 2), 0.1))
    assert result[:2] == (0, 0)
    assert result.informativeness == pytest.approx(0.6, abs=0.05)
    assert (result.importance == 0).all()
    assert dci(rng.normal(size=(300, 2)), np.ones(300))[:3] == (0, 0, 0)


def test_noise_codes_are_not_rewarded(rng):
    """By the formula alone, log 2 in the base 10 instead of 2 would make C .7 instead of 0."""
    z = rng.normal(size=(1500, 2))
    h = z @ [[1, 1], [-1, 1]]
    noisy = np.c_[h, rng.normal(size=(1500, 8))]
    clean, padded = dci(z, h), dci(z, noisy)
    assert padded.completeness == pytest.approx(clean.completeness, abs=0.02)
    assert padded.disentanglement <= clean.disentanglement + 0.02
    assert padded.informativeness <= clean.informativeness


def test_scores_follow_from_the_importances(rng):
    z = rng.integers(0, 3, size=(600, 3))
    h = z @ rng.normal(size=(3, 4)) + 0.3 * rng.normal(size=(600, 4))
    result = dci(z, h)
    r = result.importance
    assert_allclose(r.sum(axis=0), 1)
    weights = r.sum(axis=1) / r.sum()
    assert result.disentanglement == pytest.approx(weights @ (1 - entropy(r.T, base=3)))
    assert result.completeness == pytest.approx((1 - entropy(r, base=4)).mean())
    assert 0.02 < result.disentanglement < 0.9


@pytest.mark.parametrize("classes", [2, 4])
def test_the_trees_are_those_of_scikit_learn(rng, classes):
    """Up to equally good splits, where scikit-learn chooses at random too."""
    codes = rng.normal(size=(700, 3))
    score = codes @ [1, 0.5, 0] + 0.3 * rng.normal(size=700)
    labels = np.searchsorted(np.quantile(score, np.arange(1, classes) / classes), score)
    importance, predicted = boosted_classes(codes, labels, 500, rng)
    model = GradientBoostingClassifier(random_state=0).fit(codes[:500], labels[:500])
    assert_allclose(importance, model.feature_importances_, atol=0.004)
    assert (predicted == model.predict(codes)).mean() > 0.98


def test_the_regression_trees_are_those_of_scikit_learn(rng):
    codes = rng.normal(size=(700, 3))
    values = np.sin(codes @ [2, 1, 0]) + 0.1 * rng.normal(size=700)
    importance, predicted = boosted_values(codes, values, 500, rng)
    model = GradientBoostingRegressor(random_state=0).fit(codes[:500], values[:500])
    assert_allclose(importance, model.feature_importances_, atol=0.004)
    assert np.abs(predicted - model.predict(codes)).mean() < 0.01


def test_thresholds_lie_in_the_middle_between_codes(rng):
    """Between the codes 0 and 1 of the fitted rows, held-out ones follow the nearer of the two."""
    codes = np.r_[np.tile([0.0, 1.0], 20), 0.01, 0.49, 0.51, 0.99][:, None]
    for predicted in (
        boosted_values(codes, np.r_[np.tile([3.0, 7.0], 20), np.zeros(4)], 40, rng)[1],
        boosted_classes(codes, np.r_[np.tile([3, 7], 20), np.zeros(4, int)], 40, rng)[1],
    ):
        # 100 rounds at a rate of 0.1 leave 0.9^100 of a deviation from the mean
        assert predicted[40:] == pytest.approx([3, 3, 7, 7], abs=1e-3)


def test_labels_that_are_not_fitted_on_do_not_break_anything(rng):
    codes = rng.normal(size=(90, 2))
    labels = np.repeat([4, 7, 9], 30)
    _, predicted = boosted_classes(codes, labels, 60, rng)
    assert set(predicted) == {4, 7}


def test_mixed_factors_are_each_treated_as_what_they_are(rng):
    z = np.c_[rng.integers(0, 2, 900), rng.normal(size=900)]
    result = dci(z, z)
    assert result.informativeness == pytest.approx(1, abs=0.01)
    assert result.disentanglement > 0.95


def test_order_scale_and_sign_do_not_matter(rng):
    z = rng.integers(0, 3, size=(600, 2))
    h = z @ rng.normal(size=(2, 3)) + 0.5 * rng.normal(size=(600, 3))
    expected = dci(z, h)[:4]
    assert dci(z, h * [1e-6, 1e6, 3] + 1)[:4] == pytest.approx(expected, abs=0.01)
    for other in (h[:, ::-1], -h):
        assert dci(z, other)[:4] == pytest.approx(expected, abs=0.03)


def test_the_scale_of_the_factors_does_not_matter(rng):
    z = rng.normal(size=(300, 2))
    h = z + 0.3 * rng.normal(size=z.shape)
    expected = dci(z, h)[:4]
    assert 0.1 < expected[0] < 0.99
    assert dci(1e-9 * z + 3, h)[:4] == pytest.approx(expected, abs=0.01)


def test_the_same_seed_gives_the_same_scores(rng):
    z = rng.integers(0, 3, size=(200, 2))
    h = z + rng.normal(size=z.shape)
    first = dci(z, h, random_state=3)
    again = dci(z, h, random_state=np.random.default_rng(3))
    assert first[:4] == again[:4]
    assert (first.importance == again.importance).all()
    assert dci(z, h, random_state=4)[:4] != first[:4]


def test_bad_input_is_named(rng):
    with pytest.raises(InputError, match="column 0 has a single value"):
        dci(np.zeros((30, 1)), rng.normal(size=30))
    with pytest.raises(InputError, match="same number of rows"):
        dci(np.arange(30) % 2, rng.normal(size=29))
