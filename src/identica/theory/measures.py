"""The limit of Theorem 1, and what fitted codes look like: isometry, and distance from uniform."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from identica._bessel import log_mean_exp_gap, mean_cosine
from identica._validate import as_matrix, as_rng, count, instance, nonnegative, same_rows
from identica.errors import InputError
from identica.metrics.standardise import unit_size
from identica.spaces import Space, Sphere

PAIRS = 20_000  # whose distances are compared


# --- Theorem 1: the limit of many negatives ---------------------------------------------------------


def vmf_cross_entropy(
    dim: int, kappa: float, kappa_model: float | None = None, *, radius: float = 1.0
) -> float:
    """E H(p(·|z), q(·|z)) of von Mises–Fisher conditionals with concentrations κ and κ_model on S^{n−1}.

        H = log|Z| + log E e^{κ_model cos} − κ_model·A_n(κ)

    with A_n the mean cosine. For equal concentrations this is the entropy of p(·|z), the value
    that L − log M + log|Z| approaches at the best encoder (Theorem 1).

    >>> limit = vmf_cross_entropy(10, 10.0) - Sphere(10).log_volume + math.log(6144)
    >>> round(limit, 4)
    6.2388
    """
    count("dim", dim, at_least=2)
    nonnegative("kappa", kappa)
    model = kappa if kappa_model is None else nonnegative("kappa_model", kappa_model)
    volume = Sphere(dim, radius).log_volume
    return volume + log_mean_exp_gap(dim, model) + model * _mean_gap(dim, kappa)


def _mean_gap(dim: int, kappa: float) -> float:
    """E[1 − cos∠(z, μ)] = 1 − A_n(κ), which keeps its digits however large κ is."""
    if kappa <= 100 * dim:
        return 1 - mean_cosine(dim, kappa)
    # A' = 1 − A² − (n − 1) A/κ (Mardia & Jupp, 2000) gives the coefficients of A = Σ_k a_k κ^−k
    a = [1.0]
    for k in range(1, 12):
        products = sum(a[i] * a[k - i] for i in range(1, k))
        a.append(((k - dim) * a[k - 1] - products) / 2)
    total = 0.0
    for coefficient in reversed(a[1:]):
        total = (total + coefficient) / kappa
    return -total


# --- what a fitted h = f∘g looks like ---------------------------------------------------------------


def isometry(z: Any, h: Any, *, random_state: int = 0) -> float:
    """How far a fitted map is from preserving distances: the relative spread of ‖h−h'‖/‖z−z'‖.

    The root mean square deviation of that ratio from its best constant, over random pairs, divided
    by the constant: 0 for a rotation with a scale, and growing with every stretch or bend.

    Args:
        z: true factors, N×n.
        h: codes, N×k.

    >>> z = np.random.default_rng(0).normal(size=(100, 3))
    >>> isometry(z, -2 * z) < 1e-12, isometry(z, z * [1, 1, 3]) > 0.2
    (True, True)
    """
    z, h = as_matrix("z", z), as_matrix("h", h)
    same_rows(z=z, h=h)
    z, h = unit_size(z)[0], unit_size(h)[0]
    i, j = as_rng("random_state", random_state).integers(len(z), size=(2, PAIRS))
    true, coded = np.linalg.norm(z[i] - z[j], axis=1), np.linalg.norm(h[i] - h[j], axis=1)
    apart = true > 1e-9 * true.max()
    if not apart.any():
        raise InputError("z must vary: all its rows are equal")
    ratio = coded[apart] / true[apart]
    mean = ratio.mean()
    return float(ratio.std() / mean) if mean > 0 else math.inf


def distance_from_uniform(h: Any, space: Space, *, random_state: int = 0) -> float:
    """How far codes are from uniform on the space: the energy distance, relative to its size.

        D² = 2E‖h − u‖ − E‖h − h'‖ − E‖u − u'‖,  u uniform;  the result is D²/2E‖h − u‖

    which is 0 for a uniform pushforward (up to sampling error, about 1/N) and at most 1
    (Székely & Rizzo, "Energy statistics", 2013).

    >>> from identica import Box
    >>> distance_from_uniform(Box(2).sample(1000, generator=0), Box(2)) < 0.01
    True
    """
    from scipy.spatial.distance import cdist

    instance("space", space, Space, "a space such as Sphere(3)")
    codes = as_matrix("h", h)[:5000]
    if codes.shape[1] != space.dim:
        raise InputError(f"h must have {space.dim} columns for {space}, got {codes.shape[1]}")
    uniform = space.sample(len(codes), generator=random_state, dtype=torch.float64).numpy()
    # in one unit, so that no square overflows
    codes, uniform = np.split(unit_size(np.concatenate([codes, uniform]))[0], 2)
    unbiased = len(codes) / (len(codes) - 1)  # the mean over different points
    across = cdist(codes, uniform).mean()
    within = (cdist(codes, codes).mean() + cdist(uniform, uniform).mean()) * unbiased
    return float(max(0.0, (2 * across - within) / (2 * across)))
