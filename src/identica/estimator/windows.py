"""Windows over time and lags between pairs, chosen by held-out evidence without training."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from identica._random import as_generator
from identica._validate import count, is_auto
from identica.errors import InputError
from identica.estimator.networks import Columns, Principal
from identica.estimator.pairs import ArrayPairs, PairSampler, are_counts
from identica.estimator.predictable import Predictable, predictable
from identica.estimator.prepare import LOOKED_AT, SHORT, hold_out, row_columns

WINDOWS = (1, 3, 5, 7, 11, 15, 21, 31)
LAGS = (1, 2, 4, 8, 16, 32)
NEARLY = 0.8  # of the best evidence: as good, and a wider window leaves less noise


class View(NamedTuple):
    """How pairs of rows are seen.

    Attributes:
        lag: steps between the nearest rows of a pair; None for pairs that are given.
        window: rows around each, in time, that are averaged.
        counts: rows are counts, whose square roots are taken.
    """

    lag: Any
    window: int = 1
    counts: bool = False

    def of(self, sample: PairSampler) -> PairSampler:
        """Pairs with this lag, seen so, and so far apart that their windows do not overlap."""
        if not isinstance(sample, ArrayPairs):
            return sample
        sample = replace(sample, counts=self.counts)
        if self.window == 1:
            return sample
        if sample.within is None:
            raise InputError("window needs rows in order of time, so X_pos must not be given")
        within, labels = sample.within.apart(self.window - 1), sample.labels
        if within.pairs < 2:
            raise InputError(
                f"window must leave at least 2 pairs of rows {within.low} apart within a sequence, got "
                f"{self.window} for sequences of up to {int(np.diff(within.ends, prepend=0).max())} rows"
            )
        if labels is not None:
            labels = replace(labels, apart=self.window)
        return replace(sample, window=self.window, within=within, labels=labels)


def choose_view(
    sample: PairSampler, shape: tuple[int, ...], lag: Any, window: Any, *, seed: int
) -> tuple[PairSampler, View, dict[str, dict[int, float]]]:
    """The pairs in the selected view, the view, and the held-out bits of all candidates.

    Args:
        sample: draws pairs of rows that are `lag` apart, or 1 where it is "auto".
        lag, window: as they are given, or "auto".
    """
    choices: dict[str, dict[int, float]] = {}
    if not isinstance(sample, ArrayPairs):
        if not is_auto(window) and count("window", window) > 1:
            raise InputError("window needs rows in order of time, so X must not draw pairs")
        return sample, View(lag), choices
    sides = [side for side in (sample.x, sample.x_pos) if side is not None]
    view = View(lag, 1, all(map(are_counts, sides)))
    sample = replace(sample, counts=view.counts)
    if is_auto(lag):
        assert sample.within is not None
        found = choose_lag(sample, shape, seed=seed)
        choices |= {"lag": found} if found else {}
        view = view._replace(lag=shortest(found))
        sample = replace(sample, within=sample.within.apart(view.lag - 1))
    if not is_auto(window):
        view = view._replace(window=count("window", window))
    elif sample.within is not None and len(sample) >= SHORT:
        choices["window"] = choose_window(sample, view, shape, seed=seed)
        view = view._replace(window=widest(choices["window"]))
    return view.of(sample), view, choices


def choose_window(
    sample: ArrayPairs, view: View, shape: tuple[int, ...], *, seed: int
) -> dict[int, float]:
    """Evidence for each window that is tried: bits of held-out pairs by their predictable directions.

    A window leaves less noise, and sets the members of a pair further apart, in which time factors change.
    Bits of different windows are those of different pairs; they say where change outweighs noise.
    """
    found: dict[int, float] = {}
    assert sample.within is not None
    for width in WINDOWS:
        if sample.within.apart(width - 1).pairs < max(SHORT // 2, 20 * width):
            break
        pairs = view._replace(window=width).of(sample)
        assert isinstance(pairs, ArrayPairs)
        found[width] = _bits(*_look(pairs, shape, seed), pairs, seed)
        if found[width] < 0.7 * max(found.values()):
            break
    return found


def widest(evidence: dict[int, float]) -> int:
    """The widest window whose evidence is nearly the best.

    >>> widest({1: 2.0, 3: 3.0, 5: 2.5, 7: 1.0})
    5
    """
    top = max(evidence.values())
    return max(width for width, bits in evidence.items() if bits >= NEARLY * top)


def _look(pairs: ArrayPairs, shape: tuple[int, ...], seed: int) -> tuple[Columns, Predictable]:
    """Directions of the pairs to train on, behind what scales observations."""
    enter, (kept, _) = row_columns(pairs, shape), hold_out(pairs)
    some = kept(LOOKED_AT, generator=as_generator(seed))
    enter.measure(some.x[:3000] if isinstance(enter, Principal) else some.x)
    return enter, predictable(*map(enter, some))


def _bits(enter: Columns, found: Predictable, pairs: ArrayPairs, seed: int) -> float:
    """Their evidence on the pairs that are held out."""
    _, held = hold_out(pairs)
    return found.bits(*map(enter, held(4096, generator=as_generator(seed))))


def choose_lag(sample: ArrayPairs, shape: tuple[int, ...], *, seed: int) -> dict[int, float]:
    """Evidence for each lag that is tried, from directions that are predictable at it.

    Bits at different lags are those of different pairs, so each lag's directions are judged at all of the
    lags: the mean of their bits on held-out pairs. A longer lag finds better ones where noise is correlated
    over some rows, or where factors hardly change from one row to the next.
    """
    assert sample.within is not None
    apart = {lag: replace(sample, within=sample.within.apart(lag - 1)) for lag in LAGS}
    apart = {lag: pairs for lag, pairs in apart.items() if lag == 1 or len(pairs) >= SHORT}
    if len(apart) == 1:
        return {}
    looks = {lag: _look(pairs, shape, seed) for lag, pairs in apart.items()}
    return {
        lag: float(np.mean([_bits(enter, found, pairs, seed) for pairs in apart.values()]))
        for lag, (enter, found) in looks.items()
    }


def shortest(evidence: dict[int, float], nearly: float = 0.97) -> int:
    """The smallest value whose evidence is nearly the best; 1 without evidence.

    >>> shortest({1: 2.0, 2: 2.95, 4: 3.0, 8: 1.0})
    2
    """
    top = max(evidence.values(), default=0.0)
    return min((value for value, bits in evidence.items() if bits >= nearly * top), default=1)
