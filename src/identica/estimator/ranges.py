"""Subsets of the integers as ranges, which hold the numbers of training and held-out pairs compactly."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Ranges:
    """Integers in ascending order: those from each `first` up to, but not including, its `end`.

    >>> Ranges(np.array([0, 10]), np.array([2, 13])).at(np.arange(5))
    array([ 0,  1, 10, 11, 12])
    """

    first: Indices
    end: Indices

    @cached_property
    def _until(self) -> Indices:
        """Number of integers up to the end of each range."""
        return np.cumsum(self.end - self.first)

    def __len__(self) -> int:
        return int(self._until[-1]) if len(self._until) else 0

    def at(self, places: Indices) -> Indices:
        """The numbers at the given places, counted from 0."""
        which = np.searchsorted(self._until, places, side="right")
        return self.end[which] - (self._until[which] - places)

    def places(self, other: Ranges) -> Ranges:
        """The numbers at all places that another `Ranges` contains."""
        cuts = np.unique(np.r_[0, self._until, other.first, other.end])
        first, end = cuts[:-1], cuts[1:]
        inside = other.hold(first) & (first < len(self))
        start = self.at(first[inside])
        return Ranges(start, start + (end - first)[inside])

    def without(self, other: Ranges) -> Ranges:
        """The numbers that lie in no range of another `Ranges`, whose ranges may overlap."""
        cuts = np.unique(np.r_[self.first, self.end, other.first, other.end])
        first, end = cuts[:-1], cuts[1:]
        inside = self.hold(first) & ~other.hold(first)
        return Ranges(first[inside], end[inside])

    def wider(self, by: int) -> Ranges:
        """The ranges extended by this much on both sides."""
        return Ranges(self.first - by, self.end + by)

    def hold(self, numbers: Indices) -> NDArray[np.bool_]:
        """Whether each number lies in a range."""
        begun = np.searchsorted(self.first, numbers, side="right")
        return begun > np.searchsorted(self.end, numbers, side="right")


def whole(size: int) -> Ranges:
    """All numbers from 0 up to a size."""
    return Ranges(np.array([0]), np.array([size]))


def ends_of_stretches(size: int, parts: int, stretches: int) -> Ranges:
    """One in `parts` of the numbers below `size`: those at the ends of about `stretches` equal stretches.

    >>> ends_of_stretches(20, 5, 2).first.tolist()
    [8, 18]
    """
    stretch = max(parts, size // stretches)
    end = np.arange(stretch, size + stretch, stretch)
    first, end = end - max(1, stretch // parts), np.minimum(end, size)
    return Ranges(first[first < end], end[first < end])
