"""How far a fitted model can be trusted: warnings, and what its diagnosis is made of."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from identica._random import as_generator
from identica._validate import as_matrix, count
from identica.errors import InputError, TrustWarning
from identica.estimator.fit import Fit, compared, encode
from identica.estimator.pairs import ArrayPairs, Batch, PairSampler
from identica.process import Labelled

if TYPE_CHECKING:
    from identica.diagnosis import Codes, Diagnosis

JUDGED = 4096  # pairs by which models are judged
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


def diagnose(
    fit: Fit,
    sample: PairSampler,
    refit: Callable[[PairSampler, int], Fit],
    *,
    restarts: int = 2,
    labelled: Labelled | None = None,
    random_state: int = 0,
) -> Diagnosis:
    """Judge a fitted model: refit it to four fifths of the pairs, and judge all fits on the others.

    Args:
        fit: the model in question.
        sample: draws pairs; from arrays (`ArrayPairs`) a fifth of them is held out.
        refit: fits a model of the same kind to the pairs of a sampler, from a seed.
        restarts: number of models in all.
        labelled: observations with their true factors, where these are known.
    """
    from identica import diagnosis
    from identica.diagnosis.truth import truth

    count("restarts", restarts, at_least=2)
    kept, held, times = sample, sample, None
    if isinstance(sample, ArrayPairs):
        kept, held = sample.split()
        times = held.times(JUDGED, generator=as_generator(random_state))
        if len(held) < diagnosis.FEWEST:
            least, total = 5 * diagnosis.FEWEST, len(sample)
            raise InputError(f"X must hold at least {least} pairs to be judged, got {total}")
    fits = [fit, *(refit(kept, random_state + i) for i in range(1, restarts))]
    pairs = held(JUDGED, generator=as_generator(random_state))
    seen = kept(len(pairs.x), generator=as_generator(random_state + 1))
    return diagnosis.diagnose(
        [_codes(each, pairs, seen) for each in fits],
        fit.model.space,
        fit.model.conditional,
        observations=pairs if pairs.x.ndim == 2 else None,
        times=times,
        learn_precision=fit.loss.learn_precision is not None,
        potential=fit.model.potential is not None,
        truth=None if labelled is None else truth(labelled.z, encode(fit.model, labelled.x)),
        random_state=random_state,
    )


@torch.no_grad()
def _codes(fit: Fit, pairs: Batch, seen: Batch) -> Codes:
    """Codes and evidence of pairs by a fitted model, with its evidence for those of its training."""
    from identica.diagnosis import codes_from

    h, h_pos = (encode(fit.model, x) for x in pairs)
    one, other, bias = compared(fit.model, fit.loss, pairs)
    return codes_from(
        h,
        h_pos,
        fit.loss.conditional,
        scaled=(one, other),
        temperature=fit.temperature,
        bias=bias,
        seen=float(fit.log_likelihood(seen).mean()) / math.log(2),
    )


def some_labelled(pairs: ArrayPairs, z: Any) -> Labelled:
    """Some of the observations that make pairs, as these have them, with their true factors z (a row for
    each row of X), in a random order."""
    factors = as_matrix("Z", z, rows=4)
    total = len(pairs.x)
    if len(factors) != total:
        raise InputError(f"Z must have a row for each of {total} rows of X, got {len(factors)}")
    some = np.random.default_rng(0).permutation(total)[:JUDGED]
    if pairs.within is None:
        rows, x = some, pairs.rows("X", pairs.x, some)
    else:
        rows, x = pairs.within.rows(some), pairs.observed(some)
    return Labelled(torch.from_numpy(factors[rows]), x)
