"""Observations and pairs from torch data sets and data loaders, iterables of batches, and folders of
images."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset, default_collate

from identica._validate import kind_of
from identica.datasets import images
from identica.errors import InputError
from identica.estimator.pairs import ArrayPairs, Batch, finite
from identica.estimator.sequences import Indices

AT_ONCE = 256  # items of a data set that are read at once
BUFFERED = 1 << 33  # bytes of batches that are read into memory

Fetch = Callable[[list[int]], Any]


@dataclass(frozen=True)
class DatasetPairs(ArrayPairs):
    """A sampler of the pairs in a data set, each read when it is drawn.

    What a data set draws itself, such as augmentations, follows the generator: the global random states of
    torch, NumPy and Python are seeded by it, and restored afterwards.

    Attributes:
        x: the numbers of the pairs.
        fetch: reads some pairs as a batch, by their numbers.

    >>> z = torch.arange(6.0)[:, None]
    >>> pairs = opened(TensorDataset(z, -z))
    >>> batch = pairs(3, generator=torch.Generator().manual_seed(0))
    >>> (batch.x + batch.x_pos).ravel()
    tensor([0., 0., 0.])
    """

    fetch: Fetch = list

    def __call__(self, size: int, *, generator: torch.Generator) -> Batch:
        numbers, _ = self._draw(size, generator)
        seed = torch.randint(2**31, (), generator=generator, device=generator.device)
        return self.read(numbers, int(seed))

    def read(self, numbers: Indices, seed: int = 0) -> Batch:
        """Some pairs, by their numbers."""
        with seeded(seed):
            found = pair_in("X", self.fetch(numbers.tolist()))
        for x in found:
            if x.is_floating_point() and not x.isfinite().all():
                finite("X", x.double().numpy(), numbers)
        return found

    @property
    def lazy(self) -> bool:
        return True

    def rows(self, name: str, data: NDArray[Any], index: Indices) -> Tensor:
        return getattr(self.read(index), "x_pos" if name == "X_pos" else "x")

    def anchors(self) -> Iterator[Tensor]:
        """The first members of all pairs in order, some at a time."""
        for part in np.array_split(self.x, -(-len(self.x) // AT_ONCE)):
            yield self.read(part).x

    def fingerprint(self) -> str:
        """Only the number of pairs: items may be many, and differ each time."""
        return f"{len(self.x)} pairs of a data set"


def opened(X: Any) -> Any:
    """What a data set, data loader, iterable of batches or folder holds: `DatasetPairs`, or an array of
    observations in order; anything else as it is.

    From a data loader, only the data set and `collate_fn` are used: the estimator decides which items are
    drawn and which are held out. Iterables are read once, into memory.
    """
    if isinstance(X, (str, Path)):
        if os.path.isfile(X):
            raise InputError(
                f"X must hold data, or name a folder of images: read the file {X} first"
            )
        try:
            return images.load(X)
        except InputError as error:
            raise InputError(f"X: {error}") from None
    if isinstance(X, DataLoader):
        if X.batch_size is None or isinstance(X.dataset, IterableDataset):
            return _buffered(X)
        return _dataset(X.dataset, X.collate_fn)
    if isinstance(X, IterableDataset):
        return _buffered(DataLoader(X, batch_size=AT_ONCE))
    if isinstance(X, Dataset):
        return _dataset(X, default_collate)
    return _buffered(X) if _is_iterable(X) else X


def pair_in(name: str, batch: Any) -> Batch:
    """The pairs in a batch, which has x and x_pos, or is a pair of them."""
    if hasattr(batch, "x") and hasattr(batch, "x_pos"):
        x, x_pos = batch.x, batch.x_pos
    elif isinstance(batch, (tuple, list)) and len(batch) == 2:
        x, x_pos = batch
    else:
        raise InputError(
            f"{name} must return a pair (x, x_pos) or an object with x and x_pos, got "
            f"{type(batch).__name__}"
        )
    try:
        x, x_pos = torch.as_tensor(x), torch.as_tensor(x_pos)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"{name} must return arrays or tensors of numbers: {error}") from None
    if x.ndim < 2 or x.shape != x_pos.shape:
        hint = "; labels are given as fit(X, labels=…)" if x_pos.ndim == 1 < x.ndim else ""
        raise InputError(
            f"{name} must return x and x_pos of the same shape N×…, got {tuple(x.shape)} and "
            f"{tuple(x_pos.shape)}{hint}"
        )
    if x.is_meta or x_pos.is_meta:
        raise InputError(f"{name} must return tensors with values, got tensors on meta")
    return Batch(x, x_pos)


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Set the global states of torch, NumPy and Python to a seed, and restore them at the end."""
    python, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(numpy)  # noqa: NPY002


def _dataset(dataset: Any, collate: Callable[[list[Any]], Any]) -> DatasetPairs | NDArray[Any]:
    """The pairs of a data set, or its observations as an array, in order."""
    try:
        total = len(dataset)
    except TypeError:
        raise InputError(f"X must have a length, and {kind_of(dataset)} has none") from None
    if total < 2:
        raise InputError(f"X must hold at least 2 items, got n_samples={total}")

    def fetch(numbers: list[int]) -> Any:
        if isinstance(dataset, TensorDataset) and collate is default_collate:
            return [tensor[numbers] for tensor in dataset.tensors]
        try:
            if hasattr(dataset, "__getitems__"):
                return collate(dataset.__getitems__(numbers))
            return collate([dataset[number] for number in numbers])
        except (TypeError, RuntimeError) as error:  # not tensors, or of different shapes
            raise InputError(f"X must hold items that collate into a batch: {error}") from None

    with seeded(0):
        first = fetch([0])
    if isinstance(first, (tuple, list)) and len(first) == 1:
        return _stacked(lambda numbers: fetch(numbers)[0], total)
    if isinstance(first, Tensor):
        return _stacked(fetch, total)
    pair_in("X", first)
    return DatasetPairs(np.arange(total), fetch=fetch)


def _stacked(fetch: Fetch, total: int) -> NDArray[Any]:
    parts = np.array_split(np.arange(total), -(-total // AT_ONCE))
    with seeded(0):
        return torch.cat([fetch(part.tolist()) for part in parts]).numpy()


def _buffered(batches: Iterable[Any]) -> DatasetPairs:
    """The pairs of all batches, in memory."""
    found, size = [], 0
    for batch in batches:
        found.append(pair_in("X", batch))
        size += sum(x.nbytes for x in found[-1])
        if size > BUFFERED:
            raise InputError(
                f"X must yield batches of at most {BUFFERED / 2**30:.3g} GB in all, which are kept in "
                "memory: pass a Dataset, or a function that draws pairs"
            )
    if not found:
        raise InputError(
            "X must yield batches of pairs, got none (a generator yields them only once)"
        )
    if len(shapes := {batch.x.shape[1:] for batch in found}) > 1:
        one, other = sorted(map(tuple, shapes))[:2]
        raise InputError(f"X must yield observations of one shape, got {one} and {other}")
    both: Sequence[Tensor] = [torch.cat(side) for side in zip(*found, strict=True)]
    whole = _dataset(TensorDataset(*both), default_collate)
    assert isinstance(whole, DatasetPairs)
    return whole


def _is_iterable(X: Any) -> bool:
    """Whether X yields batches of pairs; a list of arrays or of rows does not."""
    if isinstance(X, (list, tuple)):
        first = X[0] if X else None
        pair = isinstance(first, (list, tuple)) and len(first) == 2
        return hasattr(first, "x_pos") or (
            pair and all(getattr(x, "ndim", 0) > 1 for x in first or ())
        )
    if isinstance(X, (Iterator, Mapping)) or callable(X):
        return isinstance(X, Iterator)
    arrays = ("shape", "__array__", "__array_interface__", "__dataframe__", "__buffer__")
    return isinstance(X, Iterable) and not any(hasattr(X, name) for name in arrays)
