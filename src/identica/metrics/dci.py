"""DCI: disentanglement, completeness and informativeness, from the importances of trees."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from os import cpu_count
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from identica._validate import as_rng
from identica.metrics._factors import fitted_labels, shuffled_split, typed
from identica.metrics._information import BINS, information, is_informative
from identica.metrics.standardise import Matrix


class DCIResult(NamedTuple):
    """The three scores in [0, 1], informativeness in sample, and the importances (k×d)."""

    disentanglement: float
    completeness: float
    informativeness: float
    informativeness_train: float
    importance: Matrix


def dci(
    z: Any, h: Any, *, factors: str = "auto", random_state: int | np.random.Generator = 0
) -> DCIResult:
    """Is each code important for one factor, each factor predicted by one code, and how well?

        D = Σ_i ρ_i (1 − H_d(R_{i·})),   C = (1/d) Σ_j (1 − H_k(R_{·j}))

    where R_ij is the importance of code i in gradient-boosted trees that predict factor j
    (the decrease of squared error at its splits; each column sums to 1), H is the entropy of a row
    or column scaled to sum 1, in base d or k, and ρ_i is the share of code i in all
    importance, so codes that predict nothing do not count. C leaves out codes that carry no more
    information than noise would. Informativeness is the mean held-out accuracy (discrete factors)
    or R² (continuous ones, 0 if negative) on a third of the rows. If every code is there twice, the
    two share their importance: D stays and C is 1 − log_k 2.

    Reference: Eastwood & Williams, A Framework for the Quantitative Evaluation of Disentangled
    Representations, ICLR 2018; settings of Locatello et al., ICML 2019 (100 rounds of trees of
    depth 3, 10,000 rows to fit on and 5,000 to score on).

    Args:
        z: true factors, N×d, discrete or continuous.
        h: codes, N×k.
        factors: "discrete", "continuous" or "auto" (integers, booleans and columns whose values
            repeat ten times on average are discrete).
        random_state: seed of the split of the rows, and of ties between equally good splits.

    >>> z = np.random.default_rng(0).integers(0, 4, size=(300, 2))
    >>> scores = dci(z, np.c_[z, z[:, 0]])
    >>> round(scores.disentanglement, 2), round(scores.completeness, 1), scores.informativeness
    (1.0, 0.7, 1.0)
    """
    values, codes, discrete = typed(z, h, factors)
    rng = as_rng("random_state", random_state)
    order, train = shuffled_split(len(codes), rng)
    codes = codes[order]
    targets = [
        fitted_labels(column, order, train, j) if labels else column[order]
        for j, (column, labels) in enumerate(zip(values.T, discrete, strict=True))
    ]
    with ThreadPoolExecutor(cpu_count()) as pool:  # the trees are compiled and leave the lock
        rngs = rng.spawn(len(targets))
        fits = pool.map(partial(_fit, codes, train=train), targets, discrete, rngs)
        importances, fitted, held_out = zip(*fits, strict=True)
    importance = np.column_stack(importances)
    # Otherwise every code of noise would raise the base k of C, and with it the score.
    informative = is_informative(information(z, h, BINS, factors))
    return DCIResult(
        _concentration(importance),
        _concentration(_shares(importance[informative].T)),
        float(np.mean(held_out)),
        float(np.mean(fitted)),
        importance,
    )


def _fit(
    codes: Matrix, target: NDArray[Any], labels: bool, rng: np.random.Generator, *, train: int
) -> tuple[Matrix, float, float]:
    """Importances of the codes, and the score on the rows fitted on and on the others."""
    from identica.metrics._boosting import boosted_classes, boosted_values

    boost, score = (boosted_classes, _accuracy) if labels else (boosted_values, _r2)
    importance, predicted = boost(codes, target, train, rng)
    held_out = score(target[train:], predicted[train:])
    return importance, score(target[:train], predicted[:train]), held_out


def _concentration(importance: Matrix) -> float:
    """Mean of 1 − normalised entropy of the rows, weighted by their sums; 0 if all is 0."""
    share = _shares(importance)
    log = np.log(share, out=np.zeros_like(share), where=share > 0)
    # With a single column there is nothing to confuse: its entropy is 0 in any base.
    entropy = -(share * log).sum(axis=1) / np.log(max(2, importance.shape[1]))
    weight = importance.sum(axis=1)
    return float(((1 - entropy) * weight).sum() / (weight.sum() or 1.0))


def _shares(importance: Matrix) -> Matrix:
    """Rows scaled to sum 1; rows of zeros stay."""
    sums = importance.sum(axis=1, keepdims=True)
    return np.divide(importance, sums, out=np.zeros_like(importance), where=sums > 0)


def _accuracy(true: NDArray[Any], predicted: NDArray[Any]) -> float:
    return float((true == predicted).mean())


def _r2(true: Matrix, predicted: Matrix) -> float:
    spread = float(((true - true.mean()) ** 2).sum())
    return max(0.0, 1 - float(((true - predicted) ** 2).sum()) / spread) if spread else 0.0
