"""InfoMEC: modularity, explicitness and compactness, from normalised mutual information."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from identica._validate import as_rng
from identica.metrics._factors import discrete_columns, typed
from identica.metrics._information import BINS, Labels, counted, is_informative, labelled
from identica.metrics.linear_r2 import linear_r2
from identica.metrics.standardise import Matrix, standardised


class InfoMECResult(NamedTuple):
    """The three scores in [0, 1], the normalised information (d×k) and which codes are active."""

    modularity: float
    explicitness: float
    compactness: float
    information: Matrix
    active: NDArray[np.bool_]


def infomec(
    z: Any,
    h: Any,
    *,
    factors: str = "auto",
    codes: str = "auto",
    random_state: int | np.random.Generator = 0,
) -> InfoMECResult:
    """Is each code about one factor (M), each factor in one code (C), and readable linearly (E)?

        M = ((1/k') Σ_i max_j N_ji / Σ_j N_ji − 1/d) / (1 − 1/d),   N_ji = I(z_j; h_i) / H(z_j)
        E = (1/d) Σ_j (1 − min_f E[−log f(z_j | h)] / H(z_j))

    and C as M with the roles of factors and codes exchanged. Codes that carry no more information
    than noise would are left out. M and C further leave out continuous codes whose range is below
    a twentieth of the largest; k' codes are active then. Information is estimated from the 10
    nearest neighbours for a continuous code and from counts for a discrete one, with continuous
    factors cut into 20 equally wide bins. The model f is logistic regression in sample (discrete
    codes one-hot), or least squares for a continuous factor, where E is R².

    Reference: Hsu et al., Disentanglement via Latent Quantization, NeurIPS 2023, section 4;
    nearest neighbours: Ross, Mutual Information between Discrete and Continuous Data Sets, 2014.

    Args:
        z: true factors, N×d, discrete or continuous.
        h: codes, N×k, discrete or continuous.
        factors: "discrete", "continuous" or "auto" (integers, booleans and columns whose values
            repeat ten times on average are discrete).
        codes: the same for the codes.
        random_state: seed of the tiny noise that breaks ties between neighbours.

    >>> z = np.random.default_rng(0).integers(0, 4, size=(1000, 2))
    >>> merged = infomec(z, z @ [[1], [4]])
    >>> round(merged.modularity, 2), round(merged.explicitness, 2), round(merged.compactness, 2)
    (0.0, 1.0, 1.0)
    """
    from sklearn.feature_selection import mutual_info_classif

    values, matrix, discrete = typed(z, h, factors)
    is_label = discrete_columns("h", h, matrix, "codes", codes)
    shared = counted(labelled(values, discrete, BINS), labelled(matrix, is_label, BINS))
    labels, entropies = shared.factors, shared.entropies
    rng = as_rng("random_state", random_state)
    information = shared.mutual / entropies[:, None]
    explicitness = np.empty(len(entropies))
    informative = is_informative(shared)
    features = _features(matrix, shared.codes, is_label, informative)
    for j in range(len(entropies)):
        if not is_label.all():
            near = mutual_info_classif(
                standardised(matrix[:, ~is_label]),
                labels[:, j],
                discrete_features=False,
                n_neighbors=10,
                random_state=int(rng.integers(2**31)),
            )
            information[j, ~is_label] = near / entropies[j]
        if not informative.any():
            explicitness[j] = 0.0
        elif discrete[j]:
            explicitness[j] = 1 - _log_loss(features, labels[:, j]) / entropies[j]
        else:
            explicitness[j] = linear_r2(values[:, j], features, in_sample=True)

    ranges = np.ptp(matrix, axis=0)
    active = informative & (is_label | (ranges > ranges.max() / 20))
    return InfoMECResult(
        _concentration(information[:, active].T),
        float(np.clip(explicitness, 0.0, 1.0).mean()),
        _concentration(information[:, active]),
        information,
        active,
    )


def _features(
    matrix: Matrix, code_labels: Labels, is_label: NDArray[np.bool_], used: NDArray[np.bool_]
) -> Matrix:
    """The codes used, for a linear model: labels one-hot, the others standardised."""
    hot = [np.eye(labels.max() + 1)[labels] for labels in code_labels.T[is_label & used]]
    return np.column_stack([standardised(matrix[:, ~is_label & used]), *hot])


def _log_loss(features: Matrix, labels: Labels) -> float:
    """The least mean −log p(label) of logistic regression, in sample."""
    from scipy.special import log_softmax
    from sklearn.linear_model import LogisticRegression

    # Without any penalty the weights would grow forever where labels can be told apart.
    model = LogisticRegression(C=1e6, max_iter=1000).fit(features, labels)
    scores = model.decision_function(features)
    if scores.ndim == 1:  # of two labels only the odds of the second are given
        scores = np.column_stack([np.zeros_like(scores), scores])
    return float(-log_softmax(scores, axis=1)[np.arange(len(labels)), labels].mean())


def _concentration(information: Matrix) -> float:
    """Mean share of the largest entry in its row, scaled so that even shares give 0 and one 1."""
    rows, columns = information.shape
    if rows == 0 or columns == 0:
        return 0.0
    sums = information.sum(axis=1)
    even = np.full(rows, 1 / columns)
    share = np.divide(information.max(axis=1), sums, out=even, where=sums > 0)
    return float((share.mean() - 1 / columns) / (1 - 1 / columns)) if columns > 1 else 1.0
