"""MIG: the lead, in information about each factor, of its best code over the second best."""

from __future__ import annotations

from typing import Any

import numpy as np

from identica.metrics._information import BINS, information


def mig(z: Any, h: Any, *, bins: int = BINS, factors: str = "auto") -> float:
    """Mutual information gap: each factor should be known to one code and to no other.

        MIG = (1/d) Σ_j (I(z_j; h_{(1)}) − I(z_j; h_{(2)})) / H(z_j)

    with the two codes (1) and (2) that know most about factor j. A duplicated code scores 0. One code
    that holds two factors is not penalised: see `modularity`. A factor of more than `bins` equally
    frequent values cannot reach 1, but log(bins)/H. With a single code, the second information is 0.

    Reference: Chen et al., Isolating Sources of Disentanglement in Variational Autoencoders,
    NeurIPS 2018; settings of Locatello et al., Challenging Common Assumptions in the
    Unsupervised Learning of Disentangled Representations, ICML 2019 (histograms, 10,000 rows).

    Args:
        z: true factors, N×d, discrete or continuous.
        h: codes, N×k.
        bins: equally wide bins for each code and each continuous factor.
        factors: "discrete", "continuous" or "auto" (integers, booleans and columns whose values
            repeat ten times on average are discrete).

    >>> z = np.random.default_rng(0).integers(0, 4, size=(2000, 2))
    >>> round(mig(z, z), 2), round(mig(z, np.c_[z, z]), 2)
    (1.0, 0.0)
    """
    shared = information(z, h, bins, factors)
    ordered = np.sort(np.c_[shared.mutual, np.zeros(len(shared.mutual))], axis=1)
    return float(((ordered[:, -1] - ordered[:, -2]) / shared.entropies).mean())
