"""Comparison of the codes with known true factors, by every metric."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from identica import metrics
from identica._validate import as_matrix, same_rows
from identica.errors import InputError
from identica.theory import isometry

Matrix = NDArray[np.float64]

VALUES = 10  # levels of discretised factors, for metrics of samples that share a value


@dataclass(frozen=True)
class Truth:
    """Comparison of codes with the true factors.

    Attributes:
        r2, correlations: R² of each factor given all codes, and its correlation with the matched code.
        columns: the code matched to each factor, -1 if there is none.
        procrustes, isometry: distance of the codes from a rotation of the factors (0: a rotation).
        matrix: correlations of all factors and codes, d×n.
        scores: every metric of `identica.metrics`, by name, in [0, 1].
    """

    r2: Matrix
    correlations: Matrix
    columns: list[int]
    procrustes: float
    isometry: float
    matrix: Matrix
    scores: dict[str, float]

    @property
    def mean_r2(self) -> float:
        return float(self.r2.mean())

    @property
    def mcc(self) -> float:
        return float(np.abs(self.correlations).mean())


def truth(z: Any, h: Any) -> Truth:
    """Compare codes h (N×n) with the true factors z (N×d)."""
    z, h = as_matrix("Z", z, rows=4), as_matrix("h", h, rows=4)
    same_rows(Z=z, h=h)
    columns, correlations = metrics.match(z, h)
    return Truth(
        metrics.linear_r2_per_factor(z, h),
        correlations,
        columns.tolist(),
        metrics.procrustes(z, h).error,
        isometry(z, h),
        metrics.correlation_matrix(z, h),
        every_metric(z, h),
    )


def every_metric(z: Matrix, h: Matrix) -> dict[str, float]:
    """All scores of codes h (N×n) for factors z (N×d), without those that need more rows or factors.

    >>> z = np.random.default_rng(0).uniform(size=(500, 2))
    >>> scores = every_metric(z, z[:, ::-1])
    >>> len(scores), round(scores["MCC"], 6), round(scores["SAP"], 1)
    (14, 1.0, 1.0)
    """
    d = z.shape[1]
    # far fewer points than usual, but as many as a table of this size supports
    sizes: dict[str, Any] = {"train": 2000, "test": 1000}
    results: dict[str, float] = {}

    def shared() -> metrics.Sampler:
        return metrics.sampler_from(_rounded(z), h, factors="discrete")

    every: list[Callable[[], dict[str, float]]] = [
        lambda: {"R²": metrics.linear_r2(z, h)},
        lambda: {"MCC": metrics.mcc(z, h)},
        lambda: {"MCC of ranks": metrics.mcc(z, h, "spearman")},
        lambda: _parts("DCI", metrics.dci(z, h), "disentanglement completeness informativeness"),
        lambda: _parts("InfoMEC", metrics.infomec(z, h), "modularity explicitness compactness"),
        lambda: {"MIG": metrics.mig(z, h)},
        lambda: {"SAP": metrics.sap(z, h)},
        lambda: {"modularity": metrics.modularity(z, h)},
        lambda: {"BetaVAE": metrics.beta_vae(shared(), d, **sizes)},
        lambda: {"FactorVAE": metrics.factor_vae(shared(), h, d, **sizes)},
    ]
    for scores in every:
        with suppress(InputError):
            results.update(scores())
    return {name: float(value) for name, value in results.items()}


def _parts(name: str, result: Any, parts: str) -> dict[str, float]:
    return {f"{name} {part}": getattr(result, part) for part in parts.split()}


def _rounded(z: Matrix) -> NDArray[np.int64]:
    """Discretise factors to at most ten values each, about equally frequent."""
    levels = np.quantile(z, np.arange(1, VALUES) / VALUES, axis=0)
    places = [
        np.unique(column, return_inverse=True)[1]
        if len(np.unique(column)) <= VALUES
        else np.searchsorted(level, column, side="right")
        for column, level in zip(z.T, levels.T, strict=True)
    ]
    return np.stack(places, 1).astype(np.int64)
