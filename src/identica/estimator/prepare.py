"""Pairs made ready for training: some are held out, and windows and scales are chosen without training."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn

from identica._random import as_generator
from identica._validate import count, is_auto
from identica.errors import InputError
from identica.estimator.networks import Columns, Pixels, Principal
from identica.estimator.pairs import ArrayPairs, Batch, PairSampler, are_counts
from identica.estimator.predictable import Predictable, predictable

MEASURED = 8192  # rows from which means, variances and directions are taken
LOOKED_AT = 16_384  # pairs from which predictable directions are taken
HELD = 768  # held-out pairs by which training is judged on its way
FEWEST = 30  # held-out pairs below which nothing is held out: they could not decide anything
SHORT = 2000  # pairs below which an eighth is too little to hold out, and windows are not tried
WIDE, DIRECTIONS = 400, 200  # columns beyond which rows are projected, and on how many directions
WINDOWS = (1, 3, 5, 7, 11, 15, 21, 31)
LAGS = (1, 2, 4, 8, 16, 32)
NEARLY = 0.8  # of the best evidence: as good, and a wider window leaves less noise
IN_MEMORY = (
    1 << 31
)  # bytes of prepared observations that are kept; else they are prepared when drawn


@dataclass(frozen=True)
class Prepared:
    """Pairs as networks see them.

    Attributes:
        enter: what prepares observations, with its statistics measured.
        sample: draws pairs of prepared observations to train on.
        held: held-out pairs, prepared.
        look: their predictable directions; None for images as they are.
        pairs: number of pairs to train on; infinite where they are drawn by a function.
    """

    enter: Columns | Pixels
    sample: PairSampler
    held: Batch
    look: Predictable | None
    pairs: float


def hold_out(sample: PairSampler) -> tuple[PairSampler, PairSampler]:
    """Pairs to train on, and held-out ones.

    Where pairs are drawn by a function, any are held out; where there are too few of them, all are both.
    """
    if not isinstance(sample, ArrayPairs):
        return sample, sample
    parts = 8 if len(sample) >= SHORT else 4
    if len(sample) < parts * FEWEST:
        return sample, sample
    return sample.split(parts, blocks=4)


def row_columns(sample: PairSampler, shape: tuple[int, ...]) -> Columns:
    """What scales the columns of rows, or projects very wide ones and images."""
    columns = math.prod(shape)
    if columns <= WIDE:
        return Columns(columns)
    rows = len(sample) if isinstance(sample, ArrayPairs) else MEASURED
    return Principal(columns, min(DIRECTIONS, max(20, rows // 40), rows, columns))


def prepare(
    sample: PairSampler, enter: Columns | Pixels, *, seed: int, look: bool = True
) -> Prepared:
    """Hold pairs out, measure `enter` by the others, and prepare all."""
    kept, held = hold_out(sample)
    pairs = len(kept) if isinstance(kept, ArrayPairs) else math.inf
    generator = as_generator(seed)
    measured = 3000 if isinstance(enter, Principal) else MEASURED
    enter.measure(kept(measured, generator=generator).x)
    kept, held = _prepared([kept, held], enter)
    some = kept(LOOKED_AT, generator=generator) if look else None
    return Prepared(
        enter,
        kept,
        held(HELD, generator=generator),
        None if some is None else predictable(*some),
        pairs,
    )


def _prepared(parts: Sequence[PairSampler], enter: Columns | Pixels) -> list[PairSampler]:
    """Samplers of prepared pairs: all in memory where they fit, else prepared as they are drawn."""
    whole = parts[0]
    if isinstance(whole, ArrayPairs) and isinstance(enter, Columns):
        width = enter.directions.shape[-1] or math.prod(whole.x.shape[1:])
        if not whole.lazy and len(whole.x) * width * 4 <= IN_MEMORY:
            ready = _in_memory(whole, enter)
            return [replace(ready, numbers=part.numbers) for part in parts]  # type: ignore[attr-defined]
    return [_on_demand(part, enter) for part in parts]


def _on_demand(sample: PairSampler, enter: nn.Module) -> PairSampler:
    @torch.no_grad()
    def draw(size: int, *, generator: torch.Generator) -> Batch:
        x, x_pos = sample(size, generator=generator)
        return Batch(enter(x), enter(x_pos))

    return draw


@torch.no_grad()
def _in_memory(sample: ArrayPairs, enter: nn.Module) -> ArrayPairs:
    def every(read: Any, rows: int) -> Any:
        parts = [
            enter(read(np.arange(first, min(first + MEASURED, rows))))
            for first in range(0, rows, MEASURED)
        ]
        return torch.cat(parts).numpy()

    if sample.within is None:
        rows = len(sample.x)
        x, x_pos = sample.x, sample.x if sample.x_pos is None else sample.x_pos
        both = (every(partial(sample.rows, "X", data), rows) for data in (x, x_pos))
        return ArrayPairs(*both)
    within = replace(sample.within, order=None)
    ready = every(sample.observed, within.size)
    return replace(sample, x=ready, within=within, window=1, counts=False)


# --- windows and lags -----------------------------------------------------------------------------


class View(NamedTuple):
    """How pairs of rows are seen.

    Attributes:
        lag: steps between the nearest rows of a pair; None for pairs that are given.
        window: rows around each, in time, that are averaged.
        counts: rows are counts, of which the square roots are taken.
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
    """Pairs as they are best seen, how, and the held-out bits of what was tried.

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
