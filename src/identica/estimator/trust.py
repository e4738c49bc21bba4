"""Warnings about codes that cannot be trusted, and observations with known factors for a diagnosis."""

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

FEWEST = 20  # independent pairs needed to trust the codes
LEAST_BITS = 0.05  # held-out evidence needed to trust them; rows in random order reach 0.01


def warn_of(independent_pairs: float, bits: float, n: int) -> None:
    """Warn if n codes cannot be trusted, for lack of independent pairs or of held-out evidence."""
    message = None
    if independent_pairs < FEWEST:
        message = (
            f"X holds pairs worth about {independent_pairs:.0f} independent ones, too few to recover "
            f"{n} factors: do not trust the codes, and record for longer"
        )
    elif bits < LEAST_BITS:
        message = (
            f"held-out pairs are distinguished from random ones no better than by chance ({bits:.3f} "
            "bits): do not trust the codes"
        )
    if message is not None:
        warnings.warn(message, TrustWarning, stacklevel=3)


def sample_labelled(pairs: ArrayPairs, z: Any) -> Labelled:
    """A random sample of the observations, preprocessed as in `pairs`, with their true factors.

    `z` has a row for each row of X.
    """
    factors = as_matrix("Z", z, rows=4)
    total = len(pairs.x)
    if len(factors) != total:
        raise InputError(f"Z must have a row for each of {total} rows of X, got {len(factors)}")
    size = total if pairs.within is None else pairs.within.size
    index = np.random.default_rng(0).permutation(size)[: fitting.JUDGED]
    if pairs.within is None:
        rows, x = index, pairs.rows("X", pairs.x, index)
    else:
        rows, x = pairs.within.rows(index), pairs.observed(index)
    return Labelled(torch.from_numpy(factors[rows]), x)
