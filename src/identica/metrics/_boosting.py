"""Gradient-boosted trees that give importances and held-out predictions fast enough for DCI.

scikit-learn's `GradientBoostingClassifier` has the importances but sorts every code at every node,
minutes for factors of 40 values; its fast histogram version has none. These are the trees
of the former, with its defaults and the same splits, but every code is sorted once for all trees.

A fit is the importance of each code (they sum to 1, or to 0 if none helps) and a prediction of every row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from identica.metrics.standardise import Matrix

Fit = tuple[Matrix, NDArray[Any]]
ROUNDS, DEPTH, RATE = 100, 3, 0.1  # the defaults of scikit-learn and so of the benchmark


def boosted_classes(
    codes: Matrix, labels: NDArray[np.intp], train: int, rng: np.random.Generator
) -> Fit:
    """Fit labels on the first `train` rows by the log loss; predict the label of every row."""
    from scipy.special import expit, softmax

    present, label = np.unique(labels[:train], return_inverse=True)
    target = np.eye(len(present))[label].T
    prior = np.log(target.mean(axis=1))
    if len(present) == 2:  # one tree per round, for the odds of the second label
        start, rate = prior[1:] - prior[:1], RATE
        importance, raw = _boost(codes, target[1:], start, rate, expit, rng)
        return importance, present[(raw[0] > 0).astype(np.intp)]
    rate = RATE * (len(present) - 1) / len(present)
    importance, raw = _boost(codes, target, prior, rate, lambda raw: softmax(raw, axis=0), rng)
    return importance, present[raw.argmax(axis=0)]


def boosted_values(codes: Matrix, values: Matrix, train: int, rng: np.random.Generator) -> Fit:
    """Fit real values on the first `train` rows by squared error; predict every row."""
    mean, scale = values[:train].mean(), values[:train].std() or 1.0
    target = (values[None, :train] - mean) / scale  # what is pure up to rounding has a scale
    importance, raw = _boost(codes, target, np.zeros(1), RATE, None, rng)
    return importance, mean + scale * raw[0]


def _boost(
    codes: Matrix,
    target: Matrix,
    start: Matrix,
    rate: float,
    probability: Callable[[Matrix], Matrix] | None,
    rng: np.random.Generator,
) -> tuple[Matrix, Matrix]:
    """Importances, and what the trees add up to for each output and row.

    Each round grows a tree per output on the residuals, target (outputs×train) − prediction, and
    takes a damped Newton step in each leaf. Without a probability the loss is squared error.
    """
    train = target.shape[1]
    columns = np.ascontiguousarray(codes.T)
    order = np.argsort(columns[:, :train], axis=1).astype(np.int32)
    ordered = np.take_along_axis(columns, order, axis=1)
    raw = np.repeat(start[:, None], len(codes), axis=1)
    importance = np.zeros(len(columns))
    every_code = np.tile(np.arange(len(columns)), (DEPTH, 1))
    for _ in range(ROUNDS):
        predicted = probability(raw[:, :train]) if probability else raw[:, :train]
        residual = target - predicted
        curvature = predicted * (1 - predicted) if probability else np.ones_like(residual)
        for output in range(len(target)):
            # Of equally good splits the first is taken, so the order of the codes is random.
            turns = rng.permuted(every_code, axis=1)
            leaf = _grow(columns, order, ordered, residual[output], importance, turns)
            _step(leaf, residual[output], curvature[output], rate, raw[output])
    return importance / (importance.sum() or 1.0), raw


@numba.njit(cache=True, nogil=True)
def _grow(columns, order, ordered, residual, importance, turns):  # type: ignore[no-untyped-def]
    """The leaf, of one tree grown on the residuals, of every row; adds its gains to importance."""
    train = len(residual)
    node = np.zeros(columns.shape[1], dtype=np.uint8)
    for level in range(DEPTH):
        nodes = 2**level
        total, n = np.zeros(nodes), np.zeros(nodes)
        for i in range(train):
            total[node[i]] += residual[i]
            n[node[i]] += 1
        best = 1e-14 * n  # a node that gains less is pure up to rounding
        split_code = np.zeros(nodes, dtype=np.int64)
        split_at = np.full(nodes, np.inf)  # no split: all its rows go left
        for f in turns[level]:
            left, n_left, last = np.zeros(nodes), np.zeros(nodes), np.empty(nodes)
            for place in range(train):
                row, value = order[f, place], ordered[f, place]
                v = node[row]
                if n_left[v] > 0 and value > last[v]:
                    # The squared error falls by S_l²/n_l + S_r²/n_r − S²/n = gap² / (n_l n_r n).
                    gap = left[v] * n[v] - total[v] * n_left[v]
                    size = n_left[v] * (n[v] - n_left[v]) * n[v]
                    if gap * gap > best[v] * size * (1 + 1e-10):
                        best[v] = gap * gap / size
                        middle = last[v] + (value - last[v]) / 2
                        split_code[v], split_at[v] = f, middle if middle < value else last[v]
                left[v] += residual[row]
                n_left[v] += 1
                last[v] = value
        for v in range(nodes):
            if split_at[v] < np.inf:
                importance[split_code[v]] += best[v]
        for i in range(len(node)):
            v = node[i]
            node[i] = 2 * v + (columns[split_code[v], i] > split_at[v])
    return node


@numba.njit(cache=True, nogil=True)
def _step(leaf, residual, curvature, rate, raw):  # type: ignore[no-untyped-def]
    """Add to raw the Newton step of each row's leaf, damped by the rate."""
    top, bottom = np.zeros(2**DEPTH), np.zeros(2**DEPTH)
    for i in range(len(residual)):
        top[leaf[i]] += residual[i]
        bottom[leaf[i]] += curvature[i]
    for v in range(2**DEPTH):
        top[v] = rate * top[v] / bottom[v] if bottom[v] > 1e-150 else 0.0
    for i in range(len(leaf)):
        raw[i] += top[leaf[i]]
