"""Ranges against sets of numbers."""

import numpy as np
import pytest

from identica.estimator.ranges import Ranges, ends_of_stretches, whole


def numbers(ranges):
    return ranges.at(np.arange(len(ranges))).tolist()


def some(seed, *, overlap=False):
    rng = np.random.default_rng(seed)
    cuts = np.sort(rng.choice(60, size=2 * rng.integers(1, 6), replace=False))
    found = Ranges(cuts[::2], cuts[1::2])
    return found.wider(3) if overlap else found


@pytest.mark.parametrize("seed", range(20))
def test_parts_of_ranges_are_those_of_sets(seed):
    one, other = some(seed), some(seed + 100, overlap=True)
    mine = [k for a, b in zip(one.first, one.end, strict=True) for k in range(a, b)]
    theirs = {k for a, b in zip(other.first, other.end, strict=True) for k in range(a, b)}
    assert numbers(one) == mine
    assert len(one) == len(mine)
    assert numbers(one.without(other)) == [k for k in mine if k not in theirs]
    assert other.hold(np.arange(-5, 70)).tolist() == [k in theirs for k in range(-5, 70)]
    places = some(seed + 200)
    chosen = [k for k in numbers(places) if k < len(mine)]
    assert numbers(one.places(places)) == [mine[k] for k in chosen]


@pytest.mark.parametrize("size", [1, 4, 5, 23, 40, 997])
@pytest.mark.parametrize(("parts", "stretches"), [(5, 10), (8, 4), (4, 1), (5, 1000)])
def test_ends_of_stretches(size, parts, stretches):
    stretch = max(parts, size // stretches)
    expected = [k for k in range(size) if k % stretch >= stretch - max(1, stretch // parts)]
    assert numbers(ends_of_stretches(size, parts, stretches)) == expected


def test_nothing_and_everything():
    assert numbers(whole(4)) == [0, 1, 2, 3]
    nothing = whole(4).without(whole(9))
    assert len(nothing) == 0
    assert numbers(whole(4).without(nothing)) == [0, 1, 2, 3]
