"""Pairs from arrays: two arrays row by row, or rows of sequences some steps apart."""

from __future__ import annotations

import hashlib
import math
import mmap
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data
from torch import Tensor

from identica._random import Device
from identica._validate import InputTypeError, as_array, count
from identica.errors import InputError

if TYPE_CHECKING:
    from identica.estimator import ContrastiveICA

Array = NDArray[Any]
Indices = NDArray[np.int64]
Lag = int | tuple[int, int]

AT_ONCE = 1 << 22  # bytes that are hashed at once
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
class Sequences:
    """Rows of sequences, paired `low` to `high` steps apart and never across the end of one.

    Memory grows with the number of sequences, not of rows, as long as each is in one piece.

    Attributes:
        low, high: least and greatest lag; a lag is uniform between them, cut at the sequence's end.
        ends: index just past the end of each sequence, ascending.
        order: rows in order of sequence and time; None where they are in that order already.
    """

    low: int
    high: int
    ends: Indices
    order: Indices | None = None

    @cached_property
    def _until(self) -> Indices:
        """Pairs in all sequences up to each."""
        return np.cumsum(np.maximum(np.diff(self.ends, prepend=0) - self.low, 0))

    @property
    def pairs(self) -> int:
        """How many rows have another one `low` steps later."""
        return int(self._until[-1])

    def at(self, chosen: Indices, steps: Indices) -> tuple[Indices, Indices]:
        """Rows (i, j) of the chosen pairs, with `steps` from `low` to `high` between them."""
        first, second = self.times(chosen, steps)
        if self.order is None:
            return first, second
        return self.order[first], self.order[second]

    def times(self, chosen: Indices, steps: Indices) -> tuple[Indices, Indices]:
        """When those rows were observed, in steps of time, one sequence after the other."""
        sequence = np.searchsorted(self._until, chosen, side="right")
        # counted from the end of the sequence, whose last `low` rows begin no pair
        first = self.ends[sequence] - self.low - (self._until[sequence] - chosen)
        return first, np.minimum(first + steps, self.ends[sequence] - 1)


def sequences(rows: int, lag: Lag = 1, groups: Any = None) -> Sequences:
    """Sequences of `rows` rows in all.

    Args:
        rows: number of rows.
        lag: steps between the members of a pair: a number, or (low, high) for a range.
        groups: for each row the sequence it belongs to, of any type; rows of one sequence are in
            order of time. By default all rows are one sequence.

    >>> s = sequences(6, groups=["a", "a", "a", "b", "b", "a"])
    >>> [pair.tolist() for pair in s.at(np.arange(s.pairs), np.ones(s.pairs, int))]
    [[0, 1, 2, 3], [1, 2, 5, 4]]
    """
    low, high = _lags(lag)
    if high >= max(rows, 2):
        raise InputError(f"lag must be smaller than the number of rows, {rows}, got {lag}")
    one = Sequences(low, high, np.array([rows]))
    found = one if groups is None else _grouped(rows, low, high, groups)
    if found.pairs < 2:
        raise InputError(
            f"X must hold at least 2 pairs of rows {low} apart within a sequence, got "
            f"{found.pairs} (n_samples={rows} in {len(found.ends)} sequences)"
        )
    return found


def _lags(lag: Lag) -> tuple[int, int]:
    if isinstance(lag, (tuple, list)):
        if len(lag) != 2 or count("lag", lag[0]) > count("lag", lag[1]):
            raise InputError(f"lag must be a whole number or (low, high), got {lag!r}")
        return int(lag[0]), int(lag[1])
    return count("lag", lag), int(lag)


def _grouped(rows: int, low: int, high: int, groups: Any) -> Sequences:
    labels = np.asarray(groups)
    if labels.shape != (rows,):
        raise InputError(f"groups must have one entry for each of {rows} rows, got {labels.shape}")
    if labels.dtype.kind == "O":
        missing = np.array([_is_missing(label) for label in labels])
        texts = [str(label) for label in labels]
        numbers = {text: number for number, text in enumerate(sorted(set(texts)))}
        labels = np.array([numbers[text] for text in texts])
    else:
        missing = labels != labels  # NaN and NaT
    if missing.any():
        row = int(missing.argmax())
        raise InputError(f"groups must label every row, but row {row} (from 0) has none")
    changes = np.flatnonzero(labels[1:] != labels[:-1]) + 1
    heads = labels[np.r_[0, changes]]
    if len(np.unique(heads)) == len(heads):  # each in one piece
        return Sequences(low, high, np.r_[changes, rows])
    order = np.argsort(labels, kind="stable")
    changes = np.flatnonzero(np.diff(np.unique(labels, return_inverse=True)[1][order])) + 1
    return Sequences(low, high, np.r_[changes, rows], order)


def _is_missing(label: Any) -> bool:
    """Whether an object is None, NaN, NaT or pandas' NA."""
    return label is None or type(label).__name__ == "NAType" or bool(label != label)


@dataclass(frozen=True)
class ArrayPairs:
    """A sampler of pairs from arrays, which may be memory-mapped: rows are read as they are needed.

    Attributes:
        x: observations, N×….
        x_pos: their positives row by row, or None for pairs within x.
        within: which rows of x make pairs, where x_pos is None.
        part: every pair ("all"), or what `split` leaves to either side ("kept", "held out").

    >>> pairs = ArrayPairs(np.arange(6.0)[:, None], within=sequences(6, lag=2))
    >>> batch = pairs(3, generator=torch.Generator().manual_seed(0))
    >>> (batch.x_pos - batch.x).ravel()
    tensor([2., 2., 2.], dtype=torch.float64)
    """

    x: Array
    x_pos: Array | None = None
    within: Sequences | None = None
    part: str = "all"

    @property
    def total(self) -> int:
        """Number of pairs, of every part."""
        return len(self.x) if self.within is None else self.within.pairs

    def __len__(self) -> int:
        block = self._block
        periods, rest = divmod(self.total, 5 * block)
        kept = 4 * block * periods + min(rest, 4 * block)
        return {"all": self.total, "kept": kept, "held out": self.total - kept}[self.part]

    def split(self) -> tuple[ArrayPairs, ArrayPairs]:
        """Four fifths of the pairs, and the others."""
        return replace(self, part="kept"), replace(self, part="held out")

    def __call__(self, size: int, *, generator: torch.Generator) -> Batch:
        """At most `size` pairs drawn at random."""
        chosen, steps = self._drawn(size, generator)
        first = second = chosen
        if self.within is not None:
            first, second = self.within.at(chosen, steps)
        other = self.x if self.x_pos is None else self.x_pos
        return Batch(rows_of("X", self.x, first), rows_of("X_pos", other, second))

    def times(self, size: int, *, generator: torch.Generator) -> tuple[Indices, Indices] | None:
        """When the members of the pairs that a call draws were observed; None if nobody knows."""
        return None if self.within is None else self.within.times(*self._drawn(size, generator))

    def _drawn(self, size: int, generator: torch.Generator) -> tuple[Indices, Indices]:
        """Numbers of pairs among all, and the steps between their members."""
        n, device = len(self), generator.device
        if n <= SHUFFLED:
            drawn = torch.randperm(n, generator=generator, device=device)[:size]
        else:
            drawn = torch.randint(n, (size,), generator=generator, device=device)
        chosen = self._in_part(drawn.cpu().numpy())
        if self.within is None:
            return chosen, np.zeros_like(chosen)
        low, high = self.within.low, self.within.high + 1
        steps = torch.randint(low, high, chosen.shape, generator=generator, device=device)
        return chosen, steps.cpu().numpy()

    def fingerprint(self) -> str:
        """A hash of everything that pairs are drawn from, read some rows at a time."""
        found = hashlib.sha256()
        arrays = [self.x, self.x_pos]
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

    @property
    def _block(self) -> int:
        """Length of the blocks that are held out: neighbours in time must not be torn apart."""
        return 1 if self.within is None else max(1, self.total // 50)

    def _in_part(self, index: Indices) -> Indices:
        """Numbers of pairs within the part, as numbers among all: each fifth block is held out."""
        block = self._block
        if self.part == "kept":
            return index // (4 * block) * (5 * block) + index % (4 * block)
        if self.part == "held out":
            return (index // block) * (5 * block) + 4 * block + index % block
        return index


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
    tensor = torch.from_numpy(rows)
    if not torch.isfinite(tensor).all():
        raise InputError(f"{name} must be finite, but some rows hold NaN or infinity")
    return tensor


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


def checked(sampler: Callable[..., Any]) -> PairSampler:
    """Any source of batches as a sampler of `Batch`: what it returns has x and x_pos, or is a pair."""

    def draw(size: int, *, generator: torch.Generator) -> Batch:
        batch = sampler(size, generator=generator)
        if hasattr(batch, "x") and hasattr(batch, "x_pos"):
            x, x_pos = batch.x, batch.x_pos
        elif isinstance(batch, (tuple, list)) and len(batch) == 2:
            x, x_pos = batch
        else:
            raise InputError(
                "sampler must return a pair (x, x_pos) or an object with x and x_pos, got "
                f"{type(batch).__name__}"
            )
        x, x_pos = torch.as_tensor(x), torch.as_tensor(x_pos)
        if x.ndim < 2 or x.shape != x_pos.shape:
            raise InputError(
                "sampler must return x and x_pos of the same shape N×…, got "
                f"{tuple(x.shape)} and {tuple(x_pos.shape)}"
            )
        return Batch(x, x_pos)

    return draw


# --- what is handed to the estimator ----------------------------------------------------------------


def pairs_of(
    ica: ContrastiveICA, X: Any, X_pos: Any, lag: Any, groups: Any, *, reset: bool
) -> tuple[PairSampler, Any]:
    """A sampler of the pairs that the arguments of `fit` stand for, and their lag.

    Args:
        ica: the estimator, which takes note of the observations (`reset`) or has done so in `fit`.
    """
    if callable(X):
        if X_pos is not None or lag is not None or groups is not None:
            raise InputError("X draws pairs by itself: X_pos, lag and groups must not be given")
        return checked(X), None
    data = observations(ica, "X", X, reset=reset)
    if X_pos is not None and _is_vector(X_pos):
        warnings.warn(
            "a vector in the place of X_pos is taken for labels y and ignored; sequences are "
            "told apart by groups=",
            stacklevel=3,
        )
        X_pos = None
    if X_pos is None:
        if lag is None:
            lag = 1 if reset or ica.lag_ is None else ica.lag_
        return ArrayPairs(data, within=sequences(len(data), lag, groups)), lag
    if lag is not None or groups is not None:
        raise InputError("X_pos says what is paired: lag and groups must not be given with it")
    other = observations(ica, "X_pos", X_pos, reset=False)
    if other.shape != data.shape:
        raise InputError(f"X_pos must have the shape of X, {data.shape}, got {other.shape}")
    if len(data) < 2:
        raise InputError(f"X must hold at least 2 pairs, got n_samples={len(data)}")
    return ArrayPairs(data, other), None


def observations(ica: ContrastiveICA, name: str, X: Any, *, reset: bool) -> Array:
    """Rows or images as an array, checked; memory maps stay what they are."""
    if isinstance(X, Tensor):
        X = np.asarray(as_array(name, X))
    mapped = isinstance(X, np.memmap)
    if isinstance(X, np.ndarray) and X.ndim > 2:
        data = X
        if X.dtype.kind not in "buif" or X.size == 0:
            raise InputError(f"{name} must hold numbers, got {X.dtype} of shape {X.shape}")
        if reset:
            ica.n_features_in_ = math.prod(X.shape[1:])
            ica.__dict__.pop("feature_names_in_", None)
    else:
        try:
            with np.errstate(over="ignore", invalid="ignore"):  # sums of large numbers
                data = validate_data(
                    ica, X, reset=reset, dtype="numeric", ensure_all_finite=not mapped
                )
        except TypeError as error:
            raise InputTypeError(f"{name}: {error}") from None
        except (ValueError, OverflowError) as error:
            raise InputError(f"{name}: {error}") from None
    if reset:
        ica._shape = tuple(data.shape[1:])
    elif data.shape[1:] != ica._shape:
        raise InputError(
            f"{name} must hold observations of shape {ica._shape}, got {data.shape[1:]}"
        )
    return X if mapped else data


def _is_vector(data: Any) -> bool:
    return len(data.shape if hasattr(data, "shape") else as_array("X_pos", data).shape) == 1
