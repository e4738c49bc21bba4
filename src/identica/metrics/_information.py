"""Entropy and mutual information in nats, from counts of labels and of values cut into bins."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from identica._validate import count
from identica.metrics._factors import labels_of, typed
from identica.metrics.standardise import Matrix, is_constant

Labels = NDArray[np.intp]

BINS = 20  # what the benchmark cuts codes into


class Information(NamedTuple):
    """Mutual information of factors and codes (d×k), entropy of the factors (d), labels of both."""

    mutual: Matrix
    entropies: Matrix
    factors: Labels
    codes: Labels


def information(z: Any, h: Any, bins: int, factors: str) -> Information:
    """Mutual information of every factor with every code, the codes cut into bins.

    Continuous factors are cut into the same number of bins; discrete ones are taken as they are.
    """
    count("bins", bins, at_least=2)
    values, codes, discrete = typed(z, h, factors)
    neither = np.zeros(codes.shape[1], dtype=bool)
    return counted(labelled(values, discrete, bins), labelled(codes, neither, bins))


def counted(factors: Labels, codes: Labels) -> Information:
    """The information of labels of factors (N×d) and codes (N×k)."""
    mutual = [[mutual_information(a, b) for b in codes.T] for a in factors.T]
    return Information(np.array(mutual), np.array([entropy(a) for a in factors.T]), factors, codes)


def labelled(matrix: Matrix, is_label: NDArray[np.bool_], bins: int) -> Labels:
    """Columns of labels as they are, the others cut into bins."""
    columns = zip(matrix.T, is_label, strict=True)
    return np.column_stack([labels_of(c) if label else binned(c, bins) for c, label in columns])


def binned(column: Matrix, bins: int) -> Labels:
    """The number of the bin, of `bins` equally wide ones between the extremes, of each value.

    Distinct values are never merged where there are no more of them than bins.
    """
    if is_constant(column[:, None]).all():
        return np.zeros(len(column), dtype=np.intp)
    distinct, labels = np.unique(column, return_inverse=True)
    if len(distinct) <= bins:
        return labels
    low, high = column.min(), column.max()
    place = (column - low) / (high - low) * bins
    # A value on an edge belongs above it, also where rounding leaves it just below.
    return np.minimum(np.floor(place + 1e-9), bins - 1).astype(np.intp)


def entropy(labels: Labels) -> float:
    """−Σ p log p of the shares p of the labels.

    >>> round(entropy(np.array([0, 1, 2, 3])), 6)  # log 4
    1.386294
    """
    counts = np.bincount(labels)
    share = counts[counts > 0] / len(labels)
    return float(-(share * np.log(share)).sum())


def mutual_information(a: Labels, b: Labels) -> float:
    """I(a; b) = H(a) + H(b) − H(a, b).

    >>> a = np.array([0, 0, 1, 1])
    >>> round(mutual_information(a, 1 - a), 6)  # log 2
    0.693147
    """
    joint = a * (int(b.max()) + 1) + b
    return max(0.0, entropy(a) + entropy(b) - entropy(joint))


def is_informative(found: Information) -> NDArray[np.bool_]:
    """Which codes carry more information about some factor than independent noise would by chance.

    Counts of independent columns show some information too: its exact expectation E given how
    often each label occurs is known (Vinh et al., JMLR 2010), and its standard deviation is about
    sqrt(r/2)/N for r = (K−1)(B−1) free cells (2N·I is nearly χ² with r degrees of freedom).
    Five of those above E, or half-way from E to all of the factor's entropy, is more than noise.
    """
    likeliest = np.argsort(-found.mutual / found.entropies[:, None], axis=0)
    return np.array(
        [any(_beats_chance(found, j, k) for j in js) for k, js in enumerate(likeliest.T)]
    )


def _beats_chance(found: Information, factor: int, code: int) -> bool:
    from sklearn.metrics.cluster import contingency_matrix, expected_mutual_information

    rows = len(found.factors)
    table = contingency_matrix(found.factors[:, factor], found.codes[:, code])
    chance = expected_mutual_information(table, rows)
    spread = np.sqrt(np.prod(np.subtract(table.shape, 1)) / 2) / rows
    enough = min(chance + 5 * spread, (chance + found.entropies[factor]) / 2)
    return bool(found.mutual[factor, code] > enough)
