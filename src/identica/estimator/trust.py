"""Whether codes can be trusted: a warning where they cannot, and the true factors where they are known."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch

from identica._validate import as_matrix
from identica.errors import InputError, TrustWarning
from identica.estimator import fit as fitting
from identica.estimator.pairs import ArrayPairs
from identica.process import Labelled

FEWEST = 20  # independent pairs below which codes cannot be trusted
LEAST_BITS = 0.05  # held-out evidence below which they cannot; rows in random order reach 0.01


def warn_of(independent_pairs: float, bits: float, n: int) -> None:
    """Warn where n codes cannot be trusted: from too few pairs, or without evidence."""
    found = None
    if independent_pairs < FEWEST:
        found = (
            f"X holds pairs worth about {independent_pairs:.0f} independent ones, too few to recover "
            f"{n} factors: do not trust the codes, and record for longer"
        )
    elif bits < LEAST_BITS:
        found = (
            f"held-out pairs are told from others no better than by chance ({bits:.3f} bits): do not "
            "trust the codes"
        )
    if found is not None:
        warnings.warn(found, TrustWarning, stacklevel=3)


def some_labelled(pairs: ArrayPairs, z: Any) -> Labelled:
    """Some of the observations that make pairs, as these have them, with their true factors z (a row for
    each row of X), in a random order."""
    factors = as_matrix("Z", z, rows=4)
    total = len(pairs.x)
    if len(factors) != total:
        raise InputError(f"Z must have a row for each of {total} rows of X, got {len(factors)}")
    size = total if pairs.within is None else pairs.within.size
    some = np.random.default_rng(0).permutation(size)[: fitting.JUDGED]
    if pairs.within is None:
        rows, x = some, pairs.rows("X", pairs.x, some)
    else:
        rows, x = pairs.within.rows(some), pairs.observed(some)
    return Labelled(torch.from_numpy(factors[rows]), x)
