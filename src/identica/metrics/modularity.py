"""Modularity: each code should know about one factor only."""

from __future__ import annotations

from typing import Any

from identica.metrics._information import BINS, information, is_informative


def modularity(z: Any, h: Any, *, bins: int = BINS, factors: str = "auto") -> float:
    """Mean, over the codes, of how exclusively a code informs about its best factor.

        (1/k) Σ_i (1 − Σ_{j≠j_i} I(z_j; h_i)² / ((d − 1) I(z_{j_i}; h_i)²)),   j_i = argmax_j I(z_j; h_i)

    A duplicated code is as modular as one; a code that holds two factors equally loses 1/(d−1).
    A code that carries no more information than noise would counts 0. (Estimates from finite data show
    some information where there is none, and more for a factor with many values: by the formula
    alone, noise scores .68 with the factors of dSprites, so noisy codes would be rewarded.)

    Reference: Ridgeway & Mozer, Learning Deep Disentangled Embeddings with the F-Statistic Loss,
    NeurIPS 2018; settings of Locatello et al., ICML 2019 (20 bins, 10,000 rows).

    Args:
        z: true factors, N×d, discrete or continuous.
        h: codes, N×k.
        bins: equally wide bins for each code and each continuous factor.
        factors: "discrete", "continuous" or "auto" (integers, booleans and columns whose values
            repeat ten times on average are discrete).

    >>> import numpy as np
    >>> z = np.random.default_rng(0).integers(0, 4, size=(2000, 2))
    >>> round(modularity(z, z), 2), round(modularity(z, z @ [[1], [4]]), 2)
    (1.0, 0.0)
    """
    shared = information(z, h, bins, factors)
    squares = shared.mutual[:, is_informative(shared)] ** 2
    best = squares.max(axis=0)
    others = (squares.sum(axis=0) - best) / max(1, len(squares) - 1)
    return float((1 - others / best).sum() / shared.mutual.shape[1])
