"""Preparation of pairs for training: some are held out, and columns are scaled."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import nn

from identica._random import as_generator
from identica.estimator.networks import Columns, Pixels, Principal
from identica.estimator.pairs import ArrayPairs, Batch, PairSampler
from identica.estimator.predictable import Predictable, predictable

MEASURED = 8192  # rows from which means, variances and directions are taken
LOOKED_AT = 16_384  # pairs from which predictable directions are taken
HELD = 768  # held-out pairs on which training is monitored
FEWEST = 30  # held-out pairs below which nothing is held out: they could not decide anything
SHORT = 2000  # pairs below which an eighth is too little to hold out, and windows are not tried
WIDE, DIRECTIONS = 400, 200  # columns beyond which rows are projected, and on how many directions
IN_MEMORY = (
    1 << 31
)  # bytes of prepared observations that are kept; else they are prepared when drawn


@dataclass(frozen=True)
class Prepared:
    """Pairs as networks see them.

    Attributes:
        enter: the module that prepares observations, with its statistics measured.
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

    Pairs drawn by a function are unlimited, so any can be held out. Too few pairs are all in both.
    """
    if not isinstance(sample, ArrayPairs):
        return sample, sample
    parts = 8 if len(sample) >= SHORT else 4
    if len(sample) < parts * FEWEST:
        return sample, sample
    return sample.split(parts, blocks=4)


def row_columns(sample: PairSampler, shape: tuple[int, ...]) -> Columns:
    """The module that scales the columns of rows, or projects images and very wide rows."""
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
    """Samplers of prepared pairs: all in memory if they fit, otherwise prepared as they are drawn."""
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
