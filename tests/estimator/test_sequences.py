import numpy as np
import pandas as pd
import pytest

from identica import InputError
from identica.estimator.sequences import check_pairs, sequences

GROUPS = ["aaaaabbbbcddd", "ababbacabacabb", "baaaabbb", "a" * 9]


def rows_by_group(groups):
    return [
        [i for i, other in enumerate(groups) if other == label] for label in sorted(set(groups))
    ]


@pytest.mark.parametrize("lag", [1, 2, 4])
@pytest.mark.parametrize("groups", GROUPS)
def test_every_pair_is_found_once(groups, lag):
    found = sequences(len(groups), lag, list(groups))
    first, second = found.at(np.arange(found.pairs), np.full(found.pairs, lag))
    expected = [
        pair for rows in rows_by_group(groups) for pair in zip(rows, rows[lag:], strict=False)
    ]
    pairs = zip(found.rows(first).tolist(), found.rows(second).tolist(), strict=True)
    assert sorted(pairs) == sorted(expected)


@pytest.mark.parametrize("width", [1, 2, 3, 4, 7, 20])
@pytest.mark.parametrize("groups", GROUPS)
def test_neighbours_are_those_of_the_same_sequence(groups, width):
    found = sequences(len(groups), 1, list(groups))
    where, inside = found.around(np.arange(len(groups)), width)
    assert where.shape == inside.shape == (len(groups), width)
    assert 0 <= where.min() <= where.max() < len(groups)
    for position, row in enumerate(found.rows(np.arange(len(groups)))):
        [rows] = [rows for rows in rows_by_group(groups) if row in rows]
        place = rows.index(row)
        reach = range(place - (width - 1) // 2, place + width // 2 + 1)
        expected = [rows[k] for k in reach if 0 <= k < len(rows)]
        assert found.rows(where[position][inside[position]]).tolist() == expected


def test_pairs_further_apart_are_of_the_same_sequences():
    groups = list("ababbacabacabb")
    far, other = sequences(14, (1, 2), groups).apart(2), sequences(14, (3, 4), groups)
    assert (far.low, far.high, far.pairs) == (other.low, other.high, other.pairs)
    assert np.array_equal(far.order, other.order)


def test_a_lag_longer_than_a_group_leaves_that_group_out():
    found = sequences(10, 3, list("aaabbbbbbb"))
    check_pairs(found, 3)
    first, second = found.at(np.arange(found.pairs), np.full(found.pairs, 3))
    assert first.tolist() == [3, 4, 5, 6]
    assert second.tolist() == [6, 7, 8, 9]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((10, 0), "lag must be a whole number of at least 1"),
        ((10, (3, 1)), "lag must be a whole number or"),
        ((10, 1.5), "lag must be a whole number"),
        ((10, 1, [0] * 9), "groups must have one entry for each of 10 rows"),
        (
            (10, (1, 10**30)),
            "lag must be a whole number of at least 1 and at most 9223372036854775807",
        ),
        ((4, 1, [0.0, 0.0, np.nan, np.nan]), "label every row, but row 2"),
        ((4, 1, np.array([0, 0, "NaT", "NaT"], "M8[s]")), "label every row, but row 2"),
        ((4, 1, ["a", "a", None, None]), "label every row, but row 2"),
        ((4, 1, np.array(["a", "a", np.nan, np.nan], object)), "label every row, but row 2"),
        ((4, 1, pd.Series([1, 1, 2, None], dtype="Int64")), "label every row, but row 3"),
    ],
)
def test_sequences_that_cannot_be(arguments, message):
    with pytest.raises(InputError, match=message):
        sequences(*arguments)


@pytest.mark.parametrize(
    ("rows", "lag", "groups", "message"),
    [
        (10, 9, None, "at least 2 pairs of rows 9 apart"),
        (4, 1, [0, 1, 2, 3], "at least 2 pairs"),
        (10, 10**12, None, "lag must be smaller than the number of rows, 10"),
        (10, (1, 10), None, "lag must be smaller than the number of rows, 10"),
        (20, 5, np.repeat(range(5), 4), r"at least 2 pairs .*n_samples=20 in 5 sequences"),
    ],
)
def test_sequences_without_pairs(rows, lag, groups, message):
    with pytest.raises(InputError, match=message):
        check_pairs(sequences(rows, lag, groups), lag)


def test_labels_may_be_any_objects():
    labels = np.array(["b", "a", "b", "a", 7, 7], object)
    assert sequences(6, 1, labels).pairs == 3


def test_rows_that_are_in_order_need_no_list_of_them():
    found = sequences(6, 2, list("bbbaac"))
    assert found.order is None
    assert (found.low, found.high, found.ends.tolist(), found.pairs) == (2, 2, [3, 5, 6], 1)
    mixed = sequences(6, (1, 2), list("ababab"))
    assert mixed.order.tolist() == [0, 2, 4, 1, 3, 5]
    assert (mixed.ends.tolist(), mixed.size) == ([3, 6], 6)
    assert sequences(4, [1, 2]).high == 2
    with pytest.raises(InputError, match=r"\(low, high\)"):
        sequences(4, (1, 2, 3))


@pytest.mark.parametrize("groups", [None, list("aaaaabbbbb"), list("ababababab")])
@pytest.mark.parametrize("gone", [[], [0], [9], [4, 5], [0, 1, 2, 3, 4], range(10)])
def test_sequences_end_at_rows_that_are_left_out(groups, gone):
    missing = np.isin(np.arange(10), gone)
    found = sequences(10, 1, groups).without(missing)
    parts = [[]]
    for group in sorted(set(groups or "a")):
        for row in [k for k in range(10) if groups is None or groups[k] == group]:
            if missing[row]:
                parts.append([])
            else:
                parts[-1].append(row)
        parts.append([])
    parts = [part for part in parts if part]
    rows = found.rows(np.arange(found.size)).tolist()
    assert [part.tolist() for part in np.split(rows, found.ends)[:-1] if len(part)] == parts


def test_lags_reach_up_to_the_last_row():
    check_pairs(sequences(10, (1, 9)), (1, 9))
    check_pairs(sequences(10, 8), 8)  # two pairs
    with pytest.raises(InputError, match="at least 2 pairs"):
        check_pairs(sequences(2, 1), 1)
    with pytest.raises(InputError, match="at least 2 pairs"):
        check_pairs(sequences(1, 1), 1)
