"""Codes of observations by a fitted estimator."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from identica._tensors import takes_doubles
from identica.estimator import fit as fitting
from identica.estimator import inputs
from identica.estimator.loaders import DatasetPairs, opened
from identica.estimator.pairs import ArrayPairs, PairSampler
from identica.estimator.ring import bend, straightened
from identica.estimator.sequences import sequences
from identica.spaces import Sphere
from identica.training.devices import device_of

if TYPE_CHECKING:
    from identica.estimator import ContrastiveICA

MEASURED = 1 << 18  # rows at most from which the bend of a ring is taken


def transform(ica: ContrastiveICA, X: Any, groups: Any = None) -> Any:
    """Codes in the shape of X: N×n, trials × time × n or a list; NaN for rows that are left out.

    If pairs were drawn by time, with a window, each code is averaged with those of all rows whose windows
    overlap its own, that is, up to the nearest rows that may be its positives. Factors hardly change over
    that time, or a narrower window would have been chosen, but noise does. On a sphere, the means are
    scaled back to its radius. Before that, a ring is straightened.
    """
    X = opened(X)
    if isinstance(X, DatasetPairs):
        return np.concatenate([transform(ica, x) for x in X.anchors()])
    timed = ica.window_ > 1
    whole, groups, lengths = inputs.joined(ica, X, groups, reset=False, timed=timed)
    data = inputs.observations(ica, "X", whole, reset=False)
    model = ica.model_
    double = data.dtype != np.float32 and data.ndim == 2
    if double:
        model = copy.deepcopy(model)
        model = (model if takes_doubles(lambda t: t.to(device_of(model))) else model.cpu()).double()
    within = inputs.complete(ica, data, sequences(len(data), 1, groups))
    seen = ArrayPairs(data, within=within, window=ica.window_, counts=ica.counts_)
    found = _every(
        seen, lambda x: straightened(fitting.encode(model, x).cpu(), ica.ring_), within.size
    )
    if timed and ica.lag_ is not None:
        at_times = ArrayPairs(found, within=replace(within, order=None), window=2 * ica.window_ - 1)
        found = _every(at_times, model.space.project, within.size)
    codes = np.full((len(data), model.space.dim), np.nan, np.float64 if double else np.float32)
    codes[within.rows(np.arange(within.size))] = found
    if lengths is None:
        return codes
    parts = np.split(codes, np.cumsum(lengths)[:-1])
    return parts if isinstance(X, (list, tuple)) else np.stack(parts)


def ring(ica: ContrastiveICA, sample: PairSampler) -> NDArray[np.float64]:
    """The coefficients by which codes on a circle are straightened, see `bend`; a single 1 leaves codes as
    they are.

    Only noise bends a ring in this way, and there is little of it without a window. A potential has
    learnt the density of the codes as they are.
    """
    model = ica.model_
    circle = isinstance(model.space, Sphere) and model.space.dim == 2 and model.potential is None
    timed = isinstance(sample, ArrayPairs) and sample.labels is None and sample.window > 1
    if not (circle and timed):
        return np.ones(1)
    assert isinstance(sample, ArrayPairs)
    assert sample.within is not None
    within = replace(
        sample.within, ends=np.unique(np.minimum(sample.within.ends, MEASURED)), order=None
    )
    codes = _every(sample, lambda x: fitting.encode(model, x).cpu(), within.size)
    return bend(np.arctan2(codes[:, 1], codes[:, 0]).astype(float), within)


def _every(rows: ArrayPairs, make: Callable[[Tensor], Tensor], size: int) -> Any:
    """Apply a function to the rows at all positions, batch by batch."""
    parts = [
        make(rows.observed(np.arange(start, min(start + fitting.AT_ONCE, size)))).numpy()
        for start in range(0, size, fitting.AT_ONCE)
    ]
    return np.concatenate(parts)
