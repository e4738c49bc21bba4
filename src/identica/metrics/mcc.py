"""MCC: mean correlation of the true factors with the codes matched to them one to one."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from identica._validate import one_of
from identica.metrics.standardise import Matrix, factors_and_codes, standardised


class Match(NamedTuple):
    """For each true factor the column of its code (−1: none left) and their signed correlation."""

    columns: NDArray[np.intp]
    correlations: Matrix


def mcc(z: Any, h: Any, method: str = "pearson") -> float:
    """Mean absolute correlation under the best one-to-one assignment of codes to factors.

        MCC = (1/d) max_π Σ_j |corr(z_j, h_{π(j)})|

    It is 1 exactly when h is a permutation of z with sign flips and scaling (for Spearman: with
    any monotonic map per coordinate). The mean is over the true factors: further codes are ignored,
    and with fewer codes than factors (k < d) a factor left without a code counts 0.
    A constant column has correlation 0.

    Reference: Hyvärinen & Morioka, Unsupervised Feature Extraction by Time-Contrastive Learning
    and Nonlinear ICA, NeurIPS 2016; Kuhn-Munkres assignment by `scipy.optimize`.

    Args:
        z: true factors, N×d.
        h: codes, N×k.
        method: "pearson", or "spearman" (correlation of the ranks, ties averaged).

    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(size=(1000, 3))
    >>> round(mcc(z, -2 * z[:, [2, 0, 1]]), 6)
    1.0
    """
    return float(np.abs(match(z, h, method).correlations).mean())


def match(z: Any, h: Any, method: str = "pearson") -> Match:
    """The assignment behind `mcc`: a code for each true factor, and how the two correlate.

    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(size=(1000, 3))
    >>> columns, correlations = match(z, np.c_[-z[:, 1], z[:, 0]])
    >>> columns, correlations.round(6)
    (array([ 1,  0, -1]), array([ 1., -1.,  0.]))
    """
    from scipy.optimize import linear_sum_assignment

    correlation = correlation_matrix(z, h, method)
    rows, chosen = linear_sum_assignment(np.abs(correlation), maximize=True)
    columns = np.full(len(correlation), -1, dtype=np.intp)
    columns[rows] = chosen
    matched = correlation[np.arange(len(columns)), columns]
    return Match(columns, np.where(columns < 0, 0.0, matched))


def correlation_matrix(z: Any, h: Any, method: str = "pearson") -> Matrix:
    """Correlation of every factor with every code, d×k; 0 where either is constant.

    >>> z = [[0, 0], [0, 1], [1, 0], [1, 1]]
    >>> correlation_matrix(z, [[0, 3], [0, 2], [-1, 3], [-1, 2]])
    array([[-1.,  0.], [ 0., -1.]])
    """
    one_of("method", method, ["pearson", "spearman"])
    z, h = factors_and_codes(z, h)
    if method == "spearman":
        from scipy.stats import rankdata

        z, h = rankdata(z, axis=0), rankdata(h, axis=0)
    product = standardised(z).T @ standardised(h) / len(z)
    return np.clip(product, -1.0, 1.0)
