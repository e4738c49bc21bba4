"""Pairs from arrays: two arrays row by row, or rows of sequences some steps apart."""

from __future__ import annotations

import hashlib
import mmap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from identica._random import Device
from identica.errors import InputError
from identica.estimator.labels import Labels, Partners
from identica.estimator.ranges import Ranges, ends_of_stretches, whole
from identica.estimator.sequences import Indices, Sequences

Array = NDArray[Any]

AT_ONCE = 1 << 22  # bytes that are hashed at once
LOOKED_AT = 8192  # rows by which counts are told
STRETCHES = 1000  # of pairs given row by row, at whose ends some are held out
SHUFFLED = 1 << 16  # pairs up to which a batch is drawn without replacement


class Batch(NamedTuple):
    """A batch of pairs: observations x and x_pos, N×…"""

    x: Tensor
    x_pos: Tensor

    @property
    def observed(self) -> Tensor:
        """All observations, 2N×…, to be encoded at once."""
        return torch.cat([self.x, self.x_pos])

    def split(self, codes: Tensor) -> tuple[Tensor, Tensor]:
        """Codes of the anchors and of their positives, from those of all observations."""
        h, h_pos = codes.chunk(2)
        return h, h_pos

    def to(self, device: Device) -> Batch:
        """The same batch on a device."""
        return Batch(self.x.to(device), self.x_pos.to(device))


PairSampler = Callable[..., Batch]  # (size, generator=…) -> Batch


@dataclass(frozen=True)
class ArrayPairs:
    """A sampler of pairs from arrays, which may be memory-mapped: rows are read as they are needed.

    Attributes:
        x: observations, N×….
        x_pos: their positives row by row, or None for pairs within x.
        within: which rows of x make pairs, where x_pos is None.
        window: each observation is the mean of so many neighbours in time, cut at the ends of its
            sequence. The pairs of `within` are that much further apart, so that two windows never overlap.
        counts: observations are counts, and their square roots are taken: noise is then alike for all.
        labels: positives are drawn by these; None for by time alone. Pairs are then as many as rows.
        both: with labels, half of the positives are drawn by time all the same.
        numbers: the pairs that are drawn from, among all; None for every one.

    >>> from identica.estimator.sequences import sequences
    >>> pairs = ArrayPairs(np.arange(6.0)[:, None], within=sequences(6, lag=2))
    >>> batch = pairs(3, generator=torch.Generator().manual_seed(0))
    >>> (batch.x_pos - batch.x).ravel()
    tensor([2., 2., 2.], dtype=torch.float64)
    """

    x: Array
    x_pos: Array | None = None
    within: Sequences | None = None
    window: int = 1
    counts: bool = False
    labels: Labels | None = None
    both: bool = False
    numbers: Ranges | None = None

    @property
    def lazy(self) -> bool:
        """Whether observations are read when they are drawn, as they may not fit into memory."""
        return isinstance(self.x, np.memmap) or isinstance(self.x_pos, np.memmap)

    @property
    def total(self) -> int:
        """Number of pairs, of every part."""
        if self.within is None:
            return len(self.x)
        by_row = self.labels is not None and not self.both
        return self.within.size if by_row else self.within.pairs

    def __len__(self) -> int:
        return self.total if self.numbers is None else len(self.numbers)

    def __call__(self, size: int, *, generator: torch.Generator) -> Batch:
        """At most `size` pairs drawn at random."""
        first, second = self._draw(size, generator)
        if self.within is not None:
            return Batch(self.observed(first), self.observed(second))
        other = self.x if self.x_pos is None else self.x_pos
        return Batch(self.rows("X", self.x, first), self.rows("X_pos", other, second))

    def times(self, size: int, *, generator: torch.Generator) -> tuple[Indices, Indices] | None:
        """When the members of the pairs that a call draws were observed; None if nobody knows."""
        return None if self.within is None else self._draw(size, generator)

    def _draw(self, size: int, generator: torch.Generator) -> tuple[Indices, Indices]:
        """Rows of pairs, or their positions in sequences."""
        among, device = self._drawn, generator.device
        if (n := len(among)) <= SHUFFLED:
            drawn = torch.randperm(n, generator=generator, device=device)[:size].cpu().numpy()
        else:
            drawn = torch.randint(n, (size,), generator=generator, device=device).cpu().numpy()
        first = second = among.at(drawn) if isinstance(among, Ranges) else among[drawn]
        if self.within is not None and (self.labels is None or self.both):
            low, high = self.within.low, self.within.high + 1
            steps = torch.randint(low, high, first.shape, generator=generator, device=device)
            first, second = self.within.at(first, steps.cpu().numpy())
        if self.labels is not None:
            chance = torch.rand(2, len(first), generator=generator, device=device)
            by_label, which = chance.cpu().double().numpy()
            partners = self._partners(first, by_label)
            by_time = (which < 0.5) | (partners == first)  # a class of one has no partner
            second = np.where(by_time, second, partners) if self.both else partners
        return first, second

    @property
    def _part(self) -> Ranges:
        return whole(self.total) if self.numbers is None else self.numbers

    @cached_property
    def _drawn(self) -> Indices | Ranges:
        """The numbers of pairs that are drawn from."""
        by_label = self.labels is not None and not self.both
        return self._partners.paired() if by_label else self._part

    @cached_property
    def _partners(self) -> Partners:
        assert self.labels is not None
        assert self.within is not None
        among = self._part.at(np.arange(len(self._part)))
        if self.both:  # numbers of pairs are not those of rows
            among = np.unique(self.within.at(among, np.full(len(among), self.within.low))[0])
        return Partners(self.labels, among)

    def observed(self, positions: Indices) -> Tensor:
        """The observations at some positions of the sequences (`Sequences`), as a tensor."""
        assert self.within is not None
        if self.window == 1:
            return self.rows("X", self.x, self.within.rows(positions))
        where, inside = self.within.around(positions, self.window)
        rows = self.rows("X", self.x, self.within.rows(where.ravel()))
        rows = rows.reshape(*where.shape, *self.x.shape[1:])
        if not rows.is_floating_point():
            rows = rows.float()
        share = torch.from_numpy(inside / inside.sum(1, keepdims=True)).to(rows.dtype)
        return torch.einsum("nw,nw...->n...", share, rows)

    def rows(self, name: str, data: Array, index: Indices) -> Tensor:
        rows = rows_of(name, data, index)
        if not self.counts:
            return rows
        if (rows < 0).any():
            raise InputError(f"{name} must hold counts, as in fit, but some entries are negative")
        return rows.sqrt()

    def split(self, parts: int = 5, blocks: int = 10) -> tuple[ArrayPairs, ArrayPairs]:
        """All pairs but one in `parts`, and the others, held out.

        In sequences they are held out in up to `blocks` blocks of time, and pairs that share a row with
        them are left out of both, unless that leaves less than half of them. Of pairs that were given row
        by row, they are every `parts`-th, or the ends of a thousand stretches.
        """
        mine = self._part
        if self.within is None:
            held = mine.places(ends_of_stretches(len(mine), parts, STRETCHES))
            return replace(self, numbers=mine.without(held)), replace(self, numbers=held)
        # as far as the rows of a pair and their windows reach; rows are no nearer than numbers of pairs
        far = self.within.high + self.window
        for some in (blocks, 1):
            held = mine.places(ends_of_stretches(len(mine), parts, some))
            kept = mine.without(held.wider(far))
            if 2 * len(kept) >= len(mine):
                return replace(self, numbers=kept), replace(self, numbers=held)
        return replace(self, numbers=mine.without(held)), replace(self, numbers=held)

    def fingerprint(self) -> str:
        """A hash of everything that pairs are drawn from, read some rows at a time."""
        found = hashlib.sha256(f"{self.window} {self.counts} {self.both}".encode())
        arrays = [self.x, self.x_pos]
        if self.numbers is not None:
            arrays += [self.numbers.first, self.numbers.end]
        if self.labels is not None:
            arrays += [self.labels.classes, self.labels.places]
        if self.within is not None:
            found.update(f"{self.within.low} to {self.within.high}".encode())
            arrays += [self.within.ends, self.within.order]
        for array in arrays:
            if array is None:
                continue
            found.update(f"{array.dtype} {array.shape}".encode())
            rows = max(1, AT_ONCE // max(1, array[:1].nbytes))
            for start in range(0, len(array), rows):
                index = np.arange(start, min(start + rows, len(array)))
                found.update(np.ascontiguousarray(_read(array, index)).data)
        return found.hexdigest()


def are_counts(data: Array) -> bool:
    """Whether rows N×d hold counts, by some of them: whole numbers from 0 to 255, more than 0 and 1.

    >>> are_counts(np.array([[0, 3], [1, 2]])), are_counts(np.array([[0, -3]]))
    (True, False)
    """
    if data.ndim != 2 or data.dtype.kind not in "uif":
        return False
    some = _read(data, np.arange(0, len(data), max(1, len(data) // LOOKED_AT)))
    some = some[~np.isnan(some)]  # of rows that are left out
    if some.size == 0:
        return False
    found = some.min() >= 0 and 1 < some.max() < 256 and (some == np.round(some)).all()
    return bool(found and (isinstance(data, np.memmap) or not (data < 0).any()))


def incomplete(data: Array) -> NDArray[np.bool_]:
    """Which rows hold NaN, read some at a time."""
    missing = np.zeros(len(data), bool)
    if data.dtype.kind == "f":
        step = max(1, AT_ONCE // max(1, data[:1].nbytes))
        for start in range(0, len(data), step):
            some = np.arange(start, min(start + step, len(data)))
            missing[some] = np.isnan(_read(data, some).reshape(len(some), -1)).any(axis=1)
    return missing


def rows_of(name: str, data: Array, index: Indices) -> Tensor:
    """Some rows as a tensor that torch can work with: floats stay, vectors of whole numbers become
    float64, pictures of bytes stay bytes."""
    if data.dtype.kind not in "buif":
        raise InputError(f"{name} must hold real numbers, got {data.dtype}")
    rows = _read(data, index)
    if rows.ndim > 2 and rows.dtype in (np.bool_, np.uint8):
        return torch.from_numpy(rows.astype(np.uint8))
    if rows.dtype not in (np.float32, np.float64):
        rows = rows.astype(np.float32 if rows.ndim > 2 else np.float64)
    finite(name, rows, index)
    return torch.from_numpy(rows)


def finite(
    name: str,
    data: Array,
    index: Indices | None = None,
    columns: Sequence[str] | None = None,
) -> None:
    """Raise if an entry is NaN or infinite, and say where; `index` has the numbers of rows."""
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(data.sum()):  # much faster than entry by entry, and rarely wrong
            return
    good = np.isfinite(data.reshape(len(data), -1))
    if good.all():
        return
    row, column = np.argwhere(~good)[0]
    number = row if index is None else index[row]
    where = f"row {number}" + (f", column {column}" if data.ndim == 2 else "")
    where += " (from 0)" if columns is None else f" (from 0), {columns[column]!r}"
    advice = "" if np.isinf(data).any() else '; missing="drop" leaves such rows out'
    raise InputError(
        f"{name} must be finite, but {(~good).any(1).sum()} rows hold NaN or infinity, such as "
        f"{where}{advice}"
    )


def _read(data: Array, index: Indices) -> Array:
    mapped = getattr(data, "_mmap", None)
    if mapped is None or data.mode != "r" or not hasattr(mmap, "MADV_DONTNEED"):  # type: ignore[attr-defined]
        return np.array(data[index])
    # what was read from a map, and its surroundings, count as our memory until handed back
    rows = np.empty((len(index), *data.shape[1:]), data.dtype)
    for start in range(0, len(index), 256):
        some = slice(start, start + 256)
        rows[some] = data[index[some]]
        mapped.madvise(mmap.MADV_DONTNEED)
    return rows
