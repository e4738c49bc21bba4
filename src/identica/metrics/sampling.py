"""Samplers for the interventional metrics: codes of samples that share the value of one factor."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from identica._validate import as_floats, function
from identica.errors import InputError
from identica.metrics._factors import labels_of, typed
from identica.metrics.standardise import Matrix

Sampler = Callable[[int, int, int, np.random.Generator], Any]
"""`sampler(factor, groups, size, rng)` gives codes, groups×size×k.

Each group is `size` codes of samples that share one value of that factor, drawn independently for
each group, while all their other factors vary freely.
"""

_CODES_AT_ONCE = 4096


def sampler_from(z: Any, h: Any, *, factors: str = "auto") -> Sampler:
    """A sampler that draws from a table of codes and their discrete factors, with replacement.

    Values occur as often as in the table, which should hold many rows of each.

    Args:
        z: true factors, N×d, all discrete.
        h: codes, N×k.
        factors: "discrete" or "auto", as elsewhere.

    >>> z = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    >>> sampler = sampler_from(z, 10 * z)
    >>> codes = sampler(1, 5, 3, np.random.default_rng(0))
    >>> codes.shape, bool((codes[:, :, 1] == codes[:, :1, 1]).all())
    ((5, 3, 2), True)
    """
    values, codes, discrete = typed(z, h, factors)
    if not discrete.all():
        raise InputError(
            "z must be discrete to find samples that share a value: column "
            f"{int(discrete.argmin())} is continuous (round it, or write a sampler of your own)"
        )
    labels = [labels_of(column) for column in values.T]
    sorted_rows = [np.argsort(label, kind="stable") for label in labels]
    counts = [np.bincount(label) for label in labels]

    def sample(factor: int, groups: int, size: int, rng: np.random.Generator) -> Matrix:
        value = labels[factor][rng.integers(len(codes), size=groups)]
        many = counts[factor][value][:, None]
        first = (np.cumsum(counts[factor]) - counts[factor])[value][:, None]
        return codes[sorted_rows[factor][first + rng.integers(many, size=(groups, size))]]

    return sample


def batches(
    sampler: Sampler, factors: NDArray[np.intp], groups: int, size: int, rng: np.random.Generator
) -> Iterator[tuple[NDArray[np.intp], Matrix]]:
    """For each entry of `factors` its `groups` groups of `size` codes, a few entries at a time.

    Gives the places of these entries and their codes, entries×groups×size×k.
    """
    function("sampler", sampler)
    step = max(1, _CODES_AT_ONCE // (groups * size))
    for factor in np.unique(factors):
        places = np.flatnonzero(factors == factor)
        for start in range(0, len(places), step):
            chunk = places[start : start + step]
            codes = _drawn(sampler, int(factor), len(chunk) * groups, size, rng)
            yield chunk, codes.reshape(len(chunk), groups, size, -1)


def _drawn(
    sampler: Sampler, factor: int, groups: int, size: int, rng: np.random.Generator
) -> Matrix:
    codes = as_floats("sampler", sampler(factor, groups, size, rng))
    if codes.ndim != 3 or codes.shape[:2] != (groups, size):
        raise InputError(
            f"sampler must give codes of shape groups×size×k, here {groups}×{size}×k, "
            f"got {codes.shape}"
        )
    if not np.isfinite(codes).all():
        raise InputError(f"sampler must give finite codes, got NaN or infinity for factor {factor}")
    return codes
