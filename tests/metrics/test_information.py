import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import entropy as scipy_entropy
from sklearn.metrics import mutual_info_score
from sklearn.metrics.cluster import expected_mutual_information

from identica.errors import InputError
from identica.metrics._factors import typed
from identica.metrics._information import (
    binned,
    entropy,
    information,
    is_informative,
    mutual_information,
)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_scipy_and_scikit_learn_agree(rng):
    a = rng.integers(0, 7, 500) ** 2
    b = (a + rng.integers(0, 20, 500)) // 9
    assert entropy(a) == pytest.approx(scipy_entropy(np.unique(a, return_counts=True)[1]))
    assert mutual_information(a, b) == pytest.approx(mutual_info_score(a, b))
    assert mutual_information(a, a) == pytest.approx(entropy(a))


def test_bins_are_those_of_a_histogram(rng):
    column = rng.normal(size=1000)
    edges = np.histogram(column, 20)[1]
    assert_array_equal(binned(column, 20), np.digitize(column, edges[:-1]) - 1)


@pytest.mark.parametrize("scale", [0.1, 1 / 3, 7.0, 1e-9])
def test_values_on_an_edge_stay_there_at_any_scale(scale):
    levels = np.arange(61.0)  # every third level is an edge of the 20 bins
    assert_array_equal(binned(levels * scale, 20), np.minimum(np.arange(61) // 3, 19))


def test_few_values_are_never_merged():
    assert_array_equal(binned(np.array([0, 1e-3, 1.0, 1e6, 0]), 20), [0, 1, 2, 3, 0])


def test_a_constant_has_one_bin():
    assert_array_equal(binned(np.array([0.1, 0.1, 0.1 + 1e-17]), 20), 0)


@pytest.mark.parametrize("cards", [(2, 2), (3, 6, 40)])
@pytest.mark.parametrize("rows", [200, 3000])
def test_noise_is_recognised_as_noise(rng, rows, cards):
    z = np.column_stack([rng.integers(0, k, rows) for k in cards])
    noise = [rng.normal(size=(rows, 40)), rng.integers(0, 2, size=(rows, 40))]
    assert is_informative(information(z, np.hstack(noise), 20, "auto")).mean() <= 0.025


def test_a_weak_code_is_recognised_as_one(rng):
    """Correlation .3 is .047 nats, about as much as noise shows here by chance: 741 / 2N."""
    z = rng.integers(0, 40, size=(8000, 1))
    weak = 0.3 * (z - 19.5) / np.sqrt((40**2 - 1) / 12) + np.sqrt(1 - 0.3**2) * rng.normal(
        size=(8000, 1)
    )
    found = information(z, np.c_[weak, weak[::-1]], 20, "auto")
    assert is_informative(found).tolist() == [True, False]


def test_a_perfect_code_of_four_rows_is_no_noise():
    z = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    assert is_informative(information(z, z, 20, "auto")).all()


def types(z, factors="auto"):
    return typed(z, np.zeros(len(z)), factors)[2].tolist()


def test_integers_and_repeating_values_are_discrete(rng):
    labels = rng.integers(0, 200, size=(500, 2))
    for kind in (np.uint8, np.int8, np.int16, np.uint32, np.int64):
        assert types(labels.astype(kind)) == [True, True]
    assert types(labels < 100) == [True, True]
    assert types(torch.tensor(labels, dtype=torch.uint8)) == [True, True]
    assert types(pd.DataFrame(labels)) == [True, True]
    assert types(labels.tolist()) == [True, True]
    assert types(labels * 0.1) == [False, False]  # 200 floats in 500 rows: measurements
    assert types((labels // 4) * 0.1) == [True, True]  # 50 floats in 500 rows: labels
    assert types(np.c_[labels[:, 0] // 4, rng.normal(size=500)]) == [True, False]


def test_the_kind_can_be_said(rng):
    labels = rng.integers(0, 5, size=(100, 2))
    assert types(labels, "continuous") == [False, False]
    assert types(labels * 0.1, "discrete") == [True, True]


def test_labels_of_all_integer_types_are_the_same_labels(rng):
    """Values above 127 in uint8, and negative ones, must not wrap around."""
    z = rng.integers(0, 256, size=(2000, 1))
    expected = information(z, z, 20, "auto")
    for same in (z.astype(np.uint8), torch.tensor(z, dtype=torch.uint8), z - 128, -z):
        found = information(same, z, 20, "auto")
        assert_allclose(found.mutual, expected.mutual)
        assert_allclose(found.entropies, expected.entropies)


def test_bad_input_is_named(rng):
    z = rng.normal(size=(100, 2))
    with pytest.raises(InputError, match=r"column 1 has a single value"):
        types(np.c_[z, np.ones(100)][:, [0, 2]])
    with pytest.raises(InputError, match=r'100 distinct values.*factors="continuous"'):
        types(z, "discrete")
    with pytest.raises(InputError, match="factors must be one of"):
        types(z, "categorical")
    with pytest.raises(InputError, match="bins must be a whole number of at least 2"):
        information(z, z, 1, "auto")


@pytest.mark.parametrize("rows", [40, 300, 3000])
def test_chance_beside_its_formula(rng, rows):
    """Five standard deviations above the expectation, or half-way from it to the entropy of the factor."""
    z = rng.integers(0, 3, size=(rows, 1))
    h = np.stack(
        [np.where(rng.random(rows) < p, z[:, 0], rng.integers(0, 5, rows)) for p in SHARES], 1
    )
    found = information(z, h, 20, "auto")
    beats = []
    for k in range(len(SHARES)):
        table = np.zeros((3, 5))
        np.add.at(table, (z[:, 0], h[:, k]), 1)
        table = table[:, table.any(0)]
        free = 2 * (table.shape[1] - 1)
        chance = expected_mutual_information(table.astype(np.int64), rows)
        enough = min(chance + 5 * np.sqrt(free / 2) / rows, (chance + found.entropies[0]) / 2)
        beats.append(bool(found.mutual[0, k] > enough))
    assert is_informative(found).tolist() == beats
    assert len(set(beats)) == 2


SHARES = np.linspace(0, 0.9, 40)


def test_labels_may_be_half_as_many_as_rows(rng):
    for number, allowed in ((50, True), (51, False)):
        z = rng.permutation(np.arange(100) % number)[:, None]
        if allowed:
            assert types(z) == [True]
        else:
            with pytest.raises(InputError, match="51 distinct values"):
                types(z)
    assert types(np.array([[0], [1], [0]])) == [True]  # two labels are always few
    assert types(np.arange(100)[:, None] % 10 * 0.1) == [True]  # each ten times
    assert types(np.arange(99)[:, None] % 10 * 0.1) == [False]


@pytest.mark.parametrize("exponent", [398, 399, -402, -403])
def test_factors_of_any_size_keep_their_order(exponent):
    z = np.array([[1.0], [-3.0], [2.0], [0.5]]) * 2.0**exponent
    values, _, _ = typed(z, np.zeros(4), "continuous")
    unit = 1.0 if abs(exponent + 2) <= 400 else 2.0 ** (-exponent - 2)  # below 1
    assert_allclose(values, z * unit)
