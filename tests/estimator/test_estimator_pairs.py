import numpy as np
import pytest
import torch

from identica import InputError
from identica.estimator.pairs import ArrayPairs, checked, rows_of, sequences


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def brute_force(groups, low, high):
    """Every pair of rows of one group that are low to high places apart among the rows of the group,
    or that end at its last row."""
    pairs = set()
    for label in set(groups):
        rows = [i for i, other in enumerate(groups) if other == label]
        for place, i in enumerate(rows):
            for step in range(low, high + 1):
                if place + low < len(rows):
                    pairs.add((i, rows[min(place + step, len(rows) - 1)]))
    return pairs


@pytest.mark.parametrize("lag", [1, 2, (1, 3), (2, 5)])
@pytest.mark.parametrize("groups", ["aaaaabbbbcddd", "ababbacabacabb", "baaaabbb", "a" * 9])
def test_pairs_are_those_of_brute_force(groups, lag):
    low, high = lag if isinstance(lag, tuple) else (lag, lag)
    found = ArrayPairs(
        np.arange(len(groups))[:, None], within=sequences(len(groups), lag, list(groups))
    )
    drawn = set()
    for seed in range(200):
        x, x_pos = found(100, generator=generator(seed))
        drawn |= set(zip(x.ravel().tolist(), x_pos.ravel().tolist(), strict=True))
    assert drawn == brute_force(groups, low, high)


def test_anchors_of_long_and_short_sequences_are_equally_likely():
    groups = np.repeat([0, 1, 2, 3], [50_000, 3, 1, 30_000])
    pairs = ArrayPairs(np.arange(len(groups))[:, None], within=sequences(len(groups), 1, groups))
    assert len(pairs) == 49_999 + 2 + 29_999
    x = pairs(20_000, generator=generator()).x.numpy()
    assert (x < 50_000).mean() == pytest.approx(5 / 8, abs=0.02)


def test_lags_of_a_range_are_equally_likely():
    pairs = ArrayPairs(np.arange(100_000)[:, None], within=sequences(100_000, (2, 4)))
    x, x_pos = pairs(30_000, generator=generator())
    steps, counts = np.unique((x_pos - x).numpy(), return_counts=True)
    assert steps.tolist() == [2, 3, 4]
    assert np.allclose(counts / 30_000, 1 / 3, atol=0.02)


@pytest.mark.parametrize("n", [10, 47, 1000])
def test_a_split_leaves_every_pair_to_one_side_alone(n):
    x = np.arange(n)[:, None]
    for pairs in (ArrayPairs(x, x), ArrayPairs(x, within=sequences(n))):
        sides = [set(p(n, generator=generator()).x.ravel().tolist()) for p in pairs.split()]
        assert sides[0] & sides[1] == set()
        assert sides[0] | sides[1] == set(pairs(n, generator=generator()).x.ravel().tolist())
        assert len(sides[1]) == pytest.approx(len(pairs) / 5, abs=len(pairs) / 20 + 1)


def test_what_is_held_out_of_a_sequence_is_in_blocks():
    pairs = ArrayPairs(np.arange(1001)[:, None], within=sequences(1001))
    rows = np.sort(pairs.split()[1](1001, generator=generator()).x.ravel().numpy())
    assert (np.diff(rows) > 1).sum() == 9  # ten blocks of 20


def test_rows_become_tensors_that_networks_take():
    assert rows_of("X", np.ones((2, 3), np.uint16), np.array([1])).dtype == torch.float64
    assert rows_of("X", np.ones((2, 3), np.float32), np.array([1])).dtype == torch.float32
    assert rows_of("X", np.ones((2, 8, 8), bool), np.array([1])).dtype == torch.uint8
    assert rows_of("X", np.ones((2, 8, 8), np.int16), np.array([1])).dtype == torch.float32
    with pytest.raises(InputError, match="X must be finite"):
        rows_of("X", np.array([[1.0], [np.nan]]), np.arange(2))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((10, 0), "lag must be a whole number of at least 1"),
        ((10, (3, 1)), "lag must be a whole number or"),
        ((10, 1.5), "lag must be a whole number"),
        ((10, 1, [0] * 9), "groups must have one entry for each of 10 rows"),
        ((10, 9), "at least 2 pairs of rows 9 apart"),
        ((4, 1, [0, 1, 2, 3]), "at least 2 pairs"),
        ((10, 10**12), "lag must be smaller than the number of rows, 10"),
        ((10, (1, 10**30)), "lag must be a whole number"),
        ((4, 1, [0.0, 0.0, np.nan, np.nan]), "label every row, but row 2"),
        ((4, 1, np.array([0, 0, "NaT", "NaT"], "M8[s]")), "label every row, but row 2"),
        ((4, 1, ["a", "a", None, None]), "label every row, but row 2"),
        ((4, 1, np.array(["a", "a", np.nan, np.nan], object)), "label every row, but row 2"),
    ],
)
def test_sequences_that_cannot_be(arguments, message):
    with pytest.raises(InputError, match=message):
        sequences(*arguments)


def test_missing_labels_of_pandas_are_refused():
    import pandas as pd

    with pytest.raises(InputError, match="label every row, but row 3"):
        sequences(4, 1, pd.Series([1, 1, 2, None], dtype="Int64"))


def test_labels_may_be_any_objects():
    labels = np.array(["b", "a", "b", "a", 7, 7], object)
    assert sequences(6, 1, labels).pairs == 3


@pytest.mark.parametrize(
    "values", [np.ones((4, 2), complex), np.ones((4, 2), "M8[s]"), np.ones((4, 2), "m8[s]")]
)
def test_dates_and_complex_numbers_are_not_observations(values):
    with pytest.raises(InputError, match="X must hold real numbers, got"):
        rows_of("X", values, np.arange(2))


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        (torch.zeros(3, 2), "pair"),
        ((torch.zeros(3, 2), torch.zeros(3, 1)), "same shape"),
        ((torch.zeros(3), torch.zeros(3)), "same shape"),
    ],
)
def test_samplers_that_return_something_else(batch, message):
    with pytest.raises(InputError, match=message):
        checked(lambda size, generator: batch)(3, generator=generator())
