"""Samplers of pairs from arrays: corresponding rows of two arrays, or rows of a sequence at a lag."""

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

AT_ONCE = 1 << 22  # bytes read in one chunk
LOOKED_AT = 8192  # rows examined to detect counts
STRETCHES = 1000  # number of held-out blocks among pairs that were given row by row
SHUFFLED = 1 << 16  # number of pairs up to which a batch is drawn without replacement


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
        """Move the batch to a device."""
        return Batch(self.x.to(device), self.x_pos.to(device))


PairSampler = Callable[..., Batch]  # (size, generator=…) -> Batch


@dataclass(frozen=True)
class ArrayPairs:
    """A sampler of pairs from arrays, which may be memory-mapped: rows are read when they are drawn.

    Attributes:
        x: observations, N×….
        x_pos: the positive of each row, or None for pairs within x.
        within: the sequences that pairs are drawn from, if x_pos is None.
        window: each observation is the mean of this many consecutive rows, truncated at the ends of its
            sequence. Lags in `within` are longer by as much, so that the windows of a pair never overlap.
        counts: take square roots, which equalises the noise of counts.
        labels: draw positives by these labels; None to draw them by time. There is then one pair per row.
        both: with labels, draw half of the positives by time.
        numbers: the pairs to draw from; None for all pairs.

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
        """Whether the arrays are memory-mapped, and so may not fit into memory."""
        return isinstance(self.x, np.memmap) or isinstance(self.x_pos, np.memmap)

    @property
    def total(self) -> int:
        """Number of pairs, whether in `numbers` or not."""
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
        """Positions in time of the pairs that a call draws; None for pairs given row by row."""
        return None if self.within is None else self._draw(size, generator)

    def _draw(self, size: int, generator: torch.Generator) -> tuple[Indices, Indices]:
        """Rows of the members of pairs, or their positions in sequences."""
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
        """The pairs to draw from."""
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
        """The observations at the given positions of the sequences (`Sequences`), as a tensor."""
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
        """Split into training pairs and held-out pairs, one in `parts`.

        In sequences, up to `blocks` blocks of time are held out, and pairs that share a row with them belong
        to neither part, unless that leaves less than half of the pairs for training. Of pairs given row by
        row, every `parts`-th is held out or, of many, blocks at regular intervals.
        """
        mine = self._part
        if self.within is None:
            held = mine.places(ends_of_stretches(len(mine), parts, STRETCHES))
            return replace(self, numbers=mine.without(held)), replace(self, numbers=held)
        # the reach of a pair and its windows; rows are at least as far apart as the numbers of pairs
        reach = self.within.high + self.window
        for number in (blocks, 1):
            held = mine.places(ends_of_stretches(len(mine), parts, number))
            kept = mine.without(held.wider(reach))
            if 2 * len(kept) >= len(mine):
                return replace(self, numbers=kept), replace(self, numbers=held)
        return replace(self, numbers=mine.without(held)), replace(self, numbers=held)

    def fingerprint(self) -> str:
        """A hash of all data and settings, computed chunk by chunk."""
        digest = hashlib.sha256(f"{self.window} {self.counts} {self.both}".encode())
        arrays = [self.x, self.x_pos]
        if self.numbers is not None:
            arrays += [self.numbers.first, self.numbers.end]
        if self.labels is not None:
            arrays += [self.labels.classes, self.labels.places]
        if self.within is not None:
            digest.update(f"{self.within.low} to {self.within.high}".encode())
            arrays += [self.within.ends, self.within.order]
        for array in arrays:
            if array is None:
                continue
            digest.update(f"{array.dtype} {array.shape}".encode())
            rows = max(1, AT_ONCE // max(1, array[:1].nbytes))
            for start in range(0, len(array), rows):
                index = np.arange(start, min(start + rows, len(array)))
                digest.update(np.ascontiguousarray(_read(array, index)).data)
        return digest.hexdigest()


def are_counts(data: Array) -> bool:
    """Whether rows N×d look like counts: whole numbers from 0 to 255, and not only 0 and 1.

    At most `LOOKED_AT` rows are examined.

    >>> are_counts(np.array([[0, 3], [1, 2]])), are_counts(np.array([[0, -3]]))
    (True, False)
    """
    if data.ndim != 2 or data.dtype.kind not in "uif":
        return False
    rows = _read(data, np.arange(0, len(data), max(1, len(data) // LOOKED_AT)))
    values = rows[~np.isnan(rows)]
    if values.size == 0:
        return False
    counts = values.min() >= 0 and 1 < values.max() < 256 and (values == np.round(values)).all()
    return bool(counts and (isinstance(data, np.memmap) or not (data < 0).any()))


def incomplete(data: Array) -> NDArray[np.bool_]:
    """Which rows hold NaN, read chunk by chunk."""
    missing = np.zeros(len(data), bool)
    if data.dtype.kind == "f":
        step = max(1, AT_ONCE // max(1, data[:1].nbytes))
        for start in range(0, len(data), step):
            index = np.arange(start, min(start + step, len(data)))
            missing[index] = np.isnan(_read(data, index).reshape(len(index), -1)).any(axis=1)
    return missing


def rows_of(name: str, data: Array, index: Indices) -> Tensor:
    """Read rows as a tensor: floats keep their type, integer vectors become float64, and images of bytes
    stay bytes."""
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
    """Raise an error that names the first NaN or infinite entry; `index` holds the row numbers."""
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(data.sum()):  # much faster than checking each entry
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
    # pages of a memory map count as memory of this process until they are released
    rows = np.empty((len(index), *data.shape[1:]), data.dtype)
    for start in range(0, len(index), 256):
        chunk = slice(start, start + 256)
        rows[chunk] = data[index[chunk]]
        mapped.madvise(mmap.MADV_DONTNEED)
    return rows
