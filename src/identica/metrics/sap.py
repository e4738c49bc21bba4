"""SAP: the lead, in predicting each factor, of its best code over the second best."""

from __future__ import annotations

from typing import Any

import numpy as np

from identica._validate import as_rng
from identica.metrics._factors import fitted_labels, shuffled_split, typed
from identica.metrics.mcc import correlation_matrix
from identica.metrics.standardise import standardised


def sap(
    z: Any, h: Any, *, factors: str = "auto", random_state: int | np.random.Generator = 0
) -> float:
    """Separated attribute predictability: a factor should be predictable from one code alone.

        SAP = (1/d) Σ_j (S_j(1) − S_j(2))

    with the two codes that predict factor j best. The score S of a code is its squared
    correlation with a continuous factor, or the held-out accuracy of a linear SVM (C = .01,
    balanced classes) for a discrete one, fitted on two thirds of the rows. Codes are standardised
    first, so that their scale does not matter.

    A perfect code scores 1 for continuous factors, but 1 − 1/K for K ≤ 3 equally frequent values,
    as any other code is right once in K; and much less for many ordered values, since
    one linear score per value cannot single out those in the middle.

    Reference: Kumar et al., Variational Inference of Disentangled Latent Concepts from Unlabeled
    Observations, ICLR 2018; settings of Locatello et al., ICML 2019 (10,000 rows to fit on,
    5,000 to score on; all factors discrete).

    Args:
        z: true factors, N×d, discrete or continuous.
        h: codes, N×k; a single code is compared with a constant one.
        factors: "discrete", "continuous" or "auto" (integers, booleans and columns whose values
            repeat ten times on average are discrete).
        random_state: seed of the split of the rows.

    >>> z = np.random.default_rng(0).normal(size=(2000, 2))
    >>> round(sap(z, z), 2), round(sap(z, np.c_[z, z]), 2)
    (1.0, 0.0)
    """
    from sklearn.svm import LinearSVC

    values, codes, discrete = typed(z, h, factors)
    if codes.shape[1] == 1:
        codes = np.c_[codes, np.zeros(len(codes))]
    order, train = shuffled_split(len(codes), as_rng("random_state", random_state))
    scores = correlation_matrix(values, codes) ** 2
    codes = standardised(codes)[order]
    for j in np.flatnonzero(discrete).tolist():
        labels = fitted_labels(values[:, j], order, train, j)
        for i, code in enumerate(codes.T[:, :, None]):
            # One code and an intercept: the primal problem is the quicker one, with one solution.
            svm = LinearSVC(C=0.01, class_weight="balanced", dual=False)
            svm.fit(code[:train], labels[:train])
            scores[j, i] = svm.score(code[train:], labels[train:])
    ordered = np.sort(scores, axis=1)
    return float((ordered[:, -1] - ordered[:, -2]).mean())
