from dataclasses import replace

import numpy as np
import pytest
import torch

from identica import InputError
from identica.estimator import pairs as module
from identica.estimator.labels import as_labels
from identica.estimator.pairs import ArrayPairs, are_counts, finite, incomplete, rows_of
from identica.estimator.sequences import sequences
from identica.estimator.windows import View


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


# --- windows ----------------------------------------------------------------------------------------


def sections(groups):
    """Rows of each group, in order of time."""
    return [
        [i for i, other in enumerate(groups) if other == label] for label in sorted(set(groups))
    ]


def window_of(rows, place, width):
    """The rows of a window around a place among those of its sequence."""
    reach = range(place - (width - 1) // 2, place + width // 2 + 1)
    return [rows[k] for k in reach if 0 <= k < len(rows)]


@pytest.mark.parametrize("width", [2, 3, 4, 7])
@pytest.mark.parametrize("groups", ["a" * 30, "a" * 12 + "b" * 9 + "c" * 3, "abc" * 11])
def test_a_window_is_the_mean_of_its_rows(groups, width):
    x = np.random.default_rng(0).normal(size=(len(groups), 2))
    pairs = View(1, width).of(ArrayPairs(x, within=sequences(len(groups), 1, list(groups))))
    parts = sections(groups)
    expected = {
        tuple(np.r_[x[window_of(rows, a, width)].mean(0), x[window_of(rows, b, width)].mean(0)])
        for rows in parts
        for a, b in ((a, a + width) for a in range(len(rows) - width))
    }
    found = torch.cat(pairs(1000, generator=generator()), dim=1).numpy()
    assert len(found) == len(expected) == len(pairs)
    assert np.allclose(sorted(map(tuple, found)), sorted(expected), atol=1e-12)
    # and each row, in the order of the sequences
    seen = pairs.observed(np.arange(len(groups))).numpy()
    each = [x[window_of(rows, k, width)].mean(0) for rows in parts for k in range(len(rows))]
    assert np.allclose(seen, each, atol=1e-12)


@pytest.mark.parametrize("lag", [1, 3, (1, 4)])
@pytest.mark.parametrize("width", [1, 2, 3, 6, 7])
@pytest.mark.parametrize("groups", ["a" * 30, "a" * 14 + "b" * 16, "ab" * 14])
def test_windows_of_a_pair_share_no_row(groups, width, lag):
    n = len(groups)
    within = sequences(n, lag, list(groups))
    pairs = View(lag, width).of(ArrayPairs(np.zeros((n, 1)), within=within)).within
    low, high = lag if isinstance(lag, tuple) else (lag, lag)
    nearest = set()
    for steps in range(pairs.low, pairs.high + 1):
        first, second = pairs.at(np.arange(pairs.pairs), np.full(pairs.pairs, steps))
        for a, b in zip(first, second, strict=True):
            ends = [pairs.around(np.array([at]), width) for at in (a, b)]
            left, right = (set(where[inside].tolist()) for where, inside in ends)
            assert left & right == set()
            nearest.add(min(right) - max(left))
    assert min(nearest) == low
    assert max(nearest) <= high


def test_windows_of_whole_numbers_and_of_images():
    x = np.arange(20)[:, None]
    pairs = ArrayPairs(x, within=sequences(20), window=4)
    assert pairs.observed(np.array([5])).item() == pytest.approx(np.mean([4, 5, 6, 7]))
    images = np.arange(20, dtype=np.uint8)[:, None, None] * np.ones((1, 3, 3), np.uint8)
    seen = ArrayPairs(images, within=sequences(20), window=3).observed(np.array([0, 9]))
    assert seen.shape == (2, 3, 3)
    assert seen[:, 0, 0].tolist() == [0.5, 9.0]


# --- counts -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "answer"),
    [
        (np.array([[0, 3], [1, 2]]), True),
        (np.array([[0.0, 3.0], [1.0, 2.0]]), True),
        (np.array([[0, 3], [1, 2]], np.uint8), True),
        (np.array([[0, -3], [1, 2]]), False),
        (np.array([[0.5, 3.0], [1.0, 2.0]]), False),
        (np.array([[0, 1], [1, 1]]), False),  # yes and no
        (np.array([[0, 300], [1, 2]]), False),  # measurements, such as of a 16-bit sensor
        (np.array([[np.nan, 3.0], [1.0, 2.0]]), True),  # of rows that are left out
        (np.full((2, 3), np.nan), False),
        (np.full((2, 3, 3), 7, np.uint8), False),  # pictures
    ],
)
def test_counts_are_small_whole_numbers(data, answer):
    assert are_counts(data) == answer


def test_square_roots_are_taken_before_the_mean():
    x = np.random.default_rng(0).poisson(4.0, size=(30, 2))
    pairs = ArrayPairs(x, within=sequences(30), window=3, counts=True)
    expected = np.sqrt(x[9:12]).mean(0)
    assert np.allclose(pairs.observed(np.array([10]))[0], expected, atol=1e-12)
    both = ArrayPairs(x, x[::-1], counts=True)(30, generator=generator())
    assert np.allclose(sorted(both.x_pos[:, 0]), np.sqrt(sorted(x[:, 0])))
    with pytest.raises(InputError, match=r"X must hold counts, as in fit, but some .* negative"):
        ArrayPairs(x - 1, within=sequences(30), counts=True)(30, generator=generator())


# --- held-out pairs ---------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [10, 47, 1000])
def test_given_pairs_are_each_on_one_side(n):
    x = np.arange(n)[:, None]
    sides = [set(p(n, generator=generator()).x.ravel().tolist()) for p in ArrayPairs(x, x).split()]
    assert sides[0] & sides[1] == set()
    assert sides[0] | sides[1] == set(range(n))
    assert len(sides[1]) == pytest.approx(n / 5, abs=1)


def rows_read(pairs):
    """All rows that the pairs of a part can read."""
    read, numbers = set(), pairs.numbers.at(np.arange(len(pairs)))
    for steps in range(pairs.within.low, pairs.within.high + 1):
        for positions in pairs.within.at(numbers, np.full(len(numbers), steps)):
            where, inside = pairs.within.around(positions, pairs.window)
            read |= set(pairs.within.rows(where[inside]).tolist())
    return read


@pytest.mark.parametrize("width", [1, 4, 7])
@pytest.mark.parametrize("lag", [1, (2, 5)])
@pytest.mark.parametrize(
    "groups", [[0] * 1000, np.repeat([0, 1, 2], [300, 40, 660]), np.arange(1000) % 7]
)
def test_no_row_of_a_sequence_is_on_both_sides(groups, lag, width):
    x = np.arange(1000)[:, None]
    pairs = View(lag, width).of(ArrayPairs(x, within=sequences(1000, lag, groups)))
    for kept, held in (pairs.split(), pairs.split(8, blocks=4), pairs.split()[0].split()):
        assert rows_read(kept) & rows_read(held) == set()
        assert len(kept) > len(pairs) / 3
        assert len(held) >= len(pairs) / 10


def test_what_is_held_out_of_a_sequence_is_in_blocks():
    pairs = ArrayPairs(np.arange(1001)[:, None], within=sequences(1001))
    rows = np.sort(pairs.split()[1](1001, generator=generator()).x.ravel().numpy())
    assert (np.diff(rows) > 1).sum() == 9  # ten blocks of 20


def test_few_pairs_that_reach_far_are_split_all_the_same():
    """Each pair shares a row with a held-out one, as the lag is as long as half of the sequence."""
    pairs = ArrayPairs(np.arange(20)[:, None], within=sequences(20, 10))
    kept, held = pairs.split()
    assert len(held) == 2
    numbers = [part.numbers.at(np.arange(len(part))) for part in (kept, held)]
    assert sorted(np.concatenate(numbers)) == list(range(10))


def test_rows_become_tensors_that_networks_take():
    assert rows_of("X", np.ones((2, 3), np.uint16), np.array([1])).dtype == torch.float64
    assert rows_of("X", np.ones((2, 3), np.float32), np.array([1])).dtype == torch.float32
    assert rows_of("X", np.ones((2, 8, 8), bool), np.array([1])).dtype == torch.uint8
    assert rows_of("X", np.ones((2, 8, 8), np.int16), np.array([1])).dtype == torch.float32
    with pytest.raises(InputError, match="X must be finite"):
        rows_of("X", np.array([[1.0], [np.nan]]), np.arange(2))


@pytest.mark.parametrize(
    "values", [np.ones((4, 2), complex), np.ones((4, 2), "M8[s]"), np.ones((4, 2), "m8[s]")]
)
def test_dates_and_complex_numbers_are_not_observations(values):
    with pytest.raises(InputError, match="X must hold real numbers, got"):
        rows_of("X", values, np.arange(2))


@pytest.mark.parametrize("at_once", [1, 40, 1 << 22])  # bytes, of which a row has 16
def test_rows_with_nan_are_incomplete(monkeypatch, at_once):
    monkeypatch.setattr(module, "AT_ONCE", at_once)
    x = np.arange(14.0).reshape(7, 2)
    x[[1, 6], [0, 1]] = np.nan
    x[3] = np.inf  # infinite, and there
    assert incomplete(x).tolist() == [False, True, False, False, False, False, True]
    assert incomplete(x[:, :, None].astype(np.float32)).tolist() == incomplete(x).tolist()
    assert not incomplete(np.ones((3, 2), int)).any()


def test_the_first_entry_that_is_not_finite_is_named():
    x = np.arange(12.0).reshape(4, 3)
    finite("X", x)
    finite("X", np.full((2, 2), 1e308))  # whose sum is not
    x[1, 2] = x[2, 0] = np.nan
    with pytest.raises(InputError, match=r'2 rows .* row 1, column 2 \(from 0\); missing="drop"'):
        finite("X", x)
    with pytest.raises(InputError, match=r"row 8, column 2 \(from 0\), 'c';"):
        finite("X", x, np.array([7, 8, 9, 3]), list("abc"))
    x[3, 1] = -np.inf
    with pytest.raises(
        InputError, match=r"3 rows hold NaN or infinity, such as row 1, column 2 \(from 0\)$"
    ):
        finite("X", x)
    with pytest.raises(InputError, match=r"such as row 1 \(from 0\);"):
        finite("X", np.where(np.arange(8).reshape(2, 2, 2) == 5, np.nan, 1.0))


@pytest.mark.parametrize("size", [1, 30, 99, 100, 500])
def test_few_pairs_are_drawn_without_replacement(monkeypatch, size):
    pairs = ArrayPairs(np.arange(101)[:, None], within=sequences(101, 1))
    drawn = pairs(size, generator=generator()).x.ravel().tolist()
    assert len(drawn) == len(set(drawn)) == min(size, 100)
    monkeypatch.setattr(module, "SHUFFLED", 99)
    again = pairs(size, generator=generator()).x.ravel().tolist()
    assert len(again) == size
    assert size < 99 or len(set(again)) < size


def test_half_of_the_positives_are_drawn_by_time_and_half_by_label():
    labels = as_labels(np.arange(4000) % 7, 4000)
    pairs = ArrayPairs(np.arange(4000)[:, None], within=sequences(4000), labels=labels, both=True)
    x, x_pos = (side.ravel() for side in pairs(3999, generator=generator()))
    steps = x_pos - x
    by_time, by_label = steps == 1, steps % 7 == 0
    assert (by_time | by_label).all()
    assert by_time.float().mean() == pytest.approx(0.5, abs=5 * 0.5 / 4000**0.5)
    alone = ArrayPairs(np.arange(4000)[:, None], within=sequences(4000), labels=labels)
    x, x_pos = alone(4000, generator=generator())
    assert ((x_pos - x) % 7 == 0).all()
    assert (len(alone), len(pairs)) == (4000, 3999)


@pytest.mark.parametrize(
    "change", ["x", "x_pos", "window", "counts", "both", "labels", "lag", "part"]
)
def test_a_fingerprint_is_that_of_data_and_settings(change):
    x = np.arange(40.0).reshape(20, 2)
    labels = as_labels(np.arange(20) % 2, 20)
    pairs = ArrayPairs(x, within=sequences(20), labels=labels)
    given = ArrayPairs(x, x + 1)
    other = {
        "x": replace(pairs, x=np.where(x == 39, 0, x)),
        "x_pos": replace(given, x_pos=np.where(x == 39, 0, x + 1)),
        "window": replace(pairs, window=3),
        "counts": replace(pairs, counts=True),
        "both": replace(pairs, both=True),
        "labels": replace(pairs, labels=as_labels(np.arange(20) % 5, 20)),
        "lag": replace(pairs, within=sequences(20, (1, 2))),
        "part": pairs.split()[0],
    }[change]
    same = given if change == "x_pos" else pairs
    assert replace(same).fingerprint() == same.fingerprint() != other.fingerprint()


@pytest.mark.parametrize("answer", [True, False])
def test_counts_are_from_0_to_255_and_more_than_yes_and_no(answer):
    for most, least in ((255, 0), (2, 0), (2, 2)) if answer else ((256, 0), (1, 0), (2, -1)):
        assert are_counts(np.array([[most, least], [most, most]], float)) == answer
        assert are_counts(np.array([[most, least], [most, most]])) == answer


@pytest.mark.parametrize("at_once", [1, 48, 1 << 22])  # bytes, of which a row has 16
def test_a_fingerprint_is_that_of_every_row(monkeypatch, at_once):
    monkeypatch.setattr(module, "AT_ONCE", at_once)
    x = np.arange(14.0).reshape(7, 2)
    known = ArrayPairs(x, x).fingerprint()
    for row in range(7):
        other = np.where(np.arange(7)[:, None] == row, -1, x)
        assert ArrayPairs(other, x).fingerprint() != known
        assert ArrayPairs(x, other).fingerprint() != known
