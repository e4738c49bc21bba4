"""Agreement of several fitted codes of the same samples, where the true factors are unknown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from identica._validate import as_matrix, instance, one_of
from identica.errors import InputError
from identica.metrics.linear_r2 import linear_r2_per_factor
from identica.metrics.mcc import mcc
from identica.metrics.procrustes import procrustes
from identica.metrics.standardise import Matrix, is_constant


def agreement(codes: Sequence[Any], up_to: str = "affine") -> float:
    """Mean agreement of all pairs of codes, up to the maps that the theory leaves open.

        2 / (m(m − 1)) · Σ_{a<b} (s(h_a, h_b) + s(h_b, h_a)) / 2

    with s the held-out `linear_r2` (affine), 1 − the `procrustes` error (orthogonal) or `mcc`
    (permutation). Codes fitted from different seeds that recovered the factors agree (1); agreement
    alone does not prove recovery, since they may share a mistake. Columns that do not vary
    are left out, and a code without any other agrees with nothing (0).

    Reference: Khemakhem et al., ICE-BeeM: Identifiable Conditional Energy-Based Deep Models,
    NeurIPS 2020, section 5 (MCC across seeds).

    Args:
        codes: at least two codes of the same samples in the same order, each N×k.
        up_to: "affine", "orthogonal" or "permutation".

    >>> rng = np.random.default_rng(0)
    >>> h = rng.normal(size=(500, 3))
    >>> round(agreement([h, 2 * h[:, ::-1], 1 - h], up_to="permutation"), 6)
    1.0
    """
    one_of("up_to", up_to, _SCORES)
    instance("codes", codes, (Sequence, np.ndarray), "a list of codes")
    matrices = [as_matrix(f"codes[{i}]", code, rows=4) for i, code in enumerate(codes)]
    if len(matrices) < 2:
        raise InputError(f"codes must hold at least 2 codes to compare, got {len(matrices)}")
    if len({len(code) for code in matrices}) > 1:
        rows = ", ".join(str(len(code)) for code in matrices)
        raise InputError(f"codes must have the same number of rows each, got {rows}")
    live = [code[:, ~is_constant(code)] for code in matrices]
    return float(np.mean([_symmetric(_SCORES[up_to], a, b) for a, b in combinations(live, 2)]))


def _symmetric(score: Callable[[Matrix, Matrix], float], a: Matrix, b: Matrix) -> float:
    return (score(a, b) + score(b, a)) / 2 if a.size and b.size else 0.0


def _affine(target: Matrix, source: Matrix) -> float:
    """Held-out R² over the columns of the target that vary where it is scored."""
    varies = ~is_constant(target[len(target) // 2 :])
    return float(linear_r2_per_factor(target[:, varies], source).mean()) if varies.any() else 0.0


def _orthogonal(target: Matrix, source: Matrix) -> float:
    return 1 - procrustes(target, source).error


_SCORES: dict[str, Callable[[Matrix, Matrix], float]] = {
    "affine": _affine,
    "orthogonal": _orthogonal,
    "permutation": mcc,
}
