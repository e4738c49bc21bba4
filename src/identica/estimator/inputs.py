"""Validation of the input of the estimator: observations, and the pairs they form."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data
from torch import Tensor

from identica._random import as_generator
from identica._validate import InputTypeError, as_array, count, is_auto, one_of
from identica.errors import InputError
from identica.estimator.labels import as_labels
from identica.estimator.loaders import DatasetPairs, opened, pair_in
from identica.estimator.pairs import (
    ArrayPairs,
    Batch,
    PairSampler,
    are_counts,
    finite,
    incomplete,
)
from identica.estimator.sequences import Sequences, check_pairs, sequences
from identica.estimator.tables import from_cells, from_frame, is_frame, names_of
from identica.estimator.times import pieces, times_of

if TYPE_CHECKING:
    from identica.estimator import ContrastiveICA

Array = NDArray[Any]

IMAGES = ("uint8", "bool", "torch.uint8", "torch.bool")  # types of arrays N×H×W that are images


def checked(sampler: Callable[..., Any]) -> PairSampler:
    """Any source of batches as a sampler of `Batch`."""

    def draw(size: int, *, generator: torch.Generator) -> Batch:
        return pair_in("sampler", sampler(size, generator=generator))

    return draw


def pairs_of(
    ica: ContrastiveICA,
    X: Any,
    X_pos: Any,
    lag: Any,
    groups: Any,
    labels: Any = None,
    *,
    reset: bool,
) -> tuple[PairSampler, Any]:
    """The sampler of pairs that the arguments of `fit` describe, and the lag.

    Args:
        ica: the estimator; with `reset` it records shape and features of X, otherwise X must match them.
    """
    X, X_pos = opened(X), opened(X_pos)
    if isinstance(X_pos, DatasetPairs):
        raise InputError("X_pos must hold observations, not pairs")
    if callable(X):
        if any(given is not None for given in (X_pos, lag, groups, labels)):
            raise InputError(
                "X draws its own pairs: X_pos, lag, groups and labels must not be given"
            )
        sample = X if isinstance(X, DatasetPairs) else checked(X)
        x = sample(2, generator=as_generator(0, ica.device)).x
        if reset:
            ica._shape, ica.n_features_in_ = tuple(x.shape[1:]), x[0].numel()
            ica.__dict__.pop("feature_names_in_", None)
        elif x.shape[1:] != ica._shape:
            raise InputError(
                f"X must hold observations of shape {ica._shape}, got {tuple(x.shape[1:])}"
            )
        return sample, None
    if X_pos is not None and _is_vector(X_pos):
        warnings.warn(
            "a vector passed as X_pos is taken for scikit-learn's y and ignored; pass groups= to separate "
            "sequences",
            stacklevel=3,
        )
        X_pos = None
    if X_pos is None:
        X, groups, lengths = joined(ica, X, groups, labels, reset=reset)
        if lengths is not None and isinstance(labels, (list, tuple)):
            labels = np.concatenate([np.asarray(part) for part in labels])
        data = observations(ica, "X", X, reset=reset)
        both = lag is not None
        if lag is None or (is_auto(lag) and not reset):
            lag = 1 if reset or ica.lag_ is None else ica.lag_
        within = sequences(len(data), 1 if is_auto(lag) else lag, groups)
        within = complete(ica, data, within)
        check_pairs(within, lag)
        if labels is None:
            return ArrayPairs(data, within=within), lag
        known = as_labels(labels, len(data))
        if within.order is not None:
            places = known.places[within.order]
            known = replace(known, classes=known.classes[within.order], places=places)
        pairs = ArrayPairs(data, within=within, labels=known, both=both)
        return pairs, lag if both else None
    if lag is not None or groups is not None or labels is not None:
        raise InputError(
            "X_pos defines the pairs: lag, groups and labels must not be given with it"
        )
    X, _, _ = joined(ica, X, None, reset=reset, timed=False)
    data = observations(ica, "X", X, reset=reset)
    X_pos, _, _ = joined(ica, X_pos, None, reset=False, timed=False)
    other = observations(ica, "X_pos", X_pos, reset=False)
    if other.shape != data.shape:
        raise InputError(f"X_pos must have the shape of X, {data.shape}, got {other.shape}")
    if _drops(ica) and (missing := incomplete(data) | incomplete(other)).any():
        data, other = data[~missing], other[~missing]
    if len(data) < 2:
        raise InputError(f"X must hold at least 2 pairs, got n_samples={len(data)}")
    return ArrayPairs(data, other), None


class Sessions(NamedTuple):
    """Means and scales of sessions with columns of their own, and whether they are counts."""

    means: list[Array]
    scales: list[Array]
    counts: bool

    def rows(self, parts: Sequence[Array]) -> Array:
        """All rows, scaled, in as many columns as there are in all sessions: 0 in those of the others."""
        widths = [len(mean) for mean in self.means]
        if [part.shape[1] for part in parts] != widths:
            found = [part.shape[1] for part in parts]
            raise InputError(f"X must hold sessions of {widths} columns, as in fit, got {found}")
        rows = np.zeros((sum(map(len, parts)), sum(widths)))
        row = column = 0
        for part, mean, scale in zip(parts, self.means, self.scales, strict=True):
            where = slice(row, row + len(part)), slice(column, column + len(mean))
            rows[where] = (self._stable(part) - mean) / scale
            row, column = row + len(part), column + len(mean)
        return rows

    def _stable(self, part: Array) -> Array:
        if self.counts and (part < 0).any():
            raise InputError("X must hold counts, as in fit, but some entries are negative")
        return np.sqrt(part) if self.counts else part

    @classmethod
    def measure(cls, parts: Sequence[Array]) -> Sessions:
        """Take means and scales from sessions; constant columns are divided by infinity."""
        blank = cls([], [], all(map(are_counts, parts)))
        stable = [blank._stable(part) for part in parts]
        stds = [part.std(axis=0) for part in stable]
        scales = [np.where(std > 0, std, np.inf) for std in stds]
        return cls([part.mean(axis=0) for part in stable], scales, blank.counts)


def joined(
    ica: ContrastiveICA,
    X: Any,
    groups: Any,
    labels: Any = None,
    *,
    reset: bool,
    timed: bool = True,
) -> tuple[Any, Any, Sequence[int] | None]:
    """Concatenate sequences: all rows, the sequence of each row, and the length of each sequence.

    A list of arrays (rows × columns) holds a sequence each, and so does an array of trials × time ×
    channels (`are_trials`). Anything else is returned unchanged. Sequences with columns of their own share no
    column of what is returned; `labels` say what they have in common. Gaps in an index of dates end a
    sequence too, unless the order of rows does not matter (`timed`).
    """
    if reset:
        ica._sessions = None
    trials = are_trials(ica, X, reset=reset)
    if not trials and not _is_list(X):
        return X, _uninterrupted("X", X, groups, reset) if timed else groups, None
    if groups is not None:
        hint = f"; for images of {X.dtype}, write N×H×W×1" if trials else ""
        raise InputError(f"X holds separate sequences already: groups must not be given{hint}")
    if trials:
        data = X if isinstance(X, np.memmap) else _array("X", X)
        number, time, channels = data.shape
        return data.reshape(-1, channels), np.repeat(np.arange(number), time), [time] * number
    parts = [_plain(f"X[{k}]", part) for k, part in enumerate(X)]
    widths = [part.shape[1] for part in parts]
    names = [names_of(part) for part in X if is_frame(part)]
    if len(set(widths)) == 1 and any(other != names[0] for other in names):
        other = next(other for other in names if other != names[0])
        raise InputError(
            f"X must hold sequences of the same columns, got {', '.join(names[0])} and "
            f"{', '.join(other)}"
        )
    if reset and len(set(widths)) > 1:
        if labels is None:
            raise InputError(
                f"X holds sequences of {sorted(set(widths))} columns, which cannot be aligned: give labels "
                "that all of them have, such as the stimulus or the position of the animal"
            )
        for k, part in enumerate(parts):
            _finite(ica, f"X[{k}]", part)
        ica._sessions = Sessions.measure([part[~incomplete(part)] for part in parts])
    lengths = [len(part) for part in parts]
    if ica._sessions is None and len(set(widths)) > 1:
        raise InputError(f"X must hold sequences of the same columns, got {sorted(set(widths))}")
    whole = np.concatenate(parts) if ica._sessions is None else ica._sessions.rows(parts)
    if not timed:
        return whole, np.repeat(np.arange(len(parts)), lengths), lengths
    first, inner = 0, []
    for k, part in enumerate(X):
        found = _uninterrupted(f"X[{k}]", part, np.zeros(lengths[k], np.int64), reset)
        inner.append(first + found)
        first += int(found.max(initial=-1)) + 1
    return whole, np.concatenate(inner), lengths


def are_trials(ica: ContrastiveICA, X: Any, *, reset: bool = True) -> bool:
    """Whether an array of three dimensions is one of trials × time × channels.

    By its type: those of bytes or booleans are images N×H×W, all others are trials. A custom network
    may take observations of any shape. Once fitted, the estimator knows which of them X is.
    """
    if getattr(X, "ndim", 0) != 3 or not len(X):
        return False
    if not reset:
        return len(ica._shape) == 1
    return ica.network is None and str(X.dtype) not in IMAGES


def _uninterrupted(name: str, X: Any, groups: Any, reset: bool) -> Any:
    """Groups, cut at the gaps of an index of dates; a warning says where these are (`reset`)."""
    if (times := times_of(X)) is None:
        return groups
    found = pieces(name, times, groups)
    if found.gaps is not None and reset:
        warnings.warn(f"{found.gaps}; reset the index to ignore this", stacklevel=5)
    return found.groups


def _plain(name: str, X: Any) -> Array:
    """Numbers as an array, with those of a data frame checked column by column."""
    if is_frame(X):
        return from_frame(name, X)
    data = _array(name, X)
    return from_cells(name, data) if data.dtype.kind in "OU" and data.size else data


def _array(name: str, X: Any) -> Array:
    return np.asarray(as_array(name, X))


def observations(ica: ContrastiveICA, name: str, X: Any, *, reset: bool) -> Array:
    """Rows or images as a validated array; memory maps are kept."""
    columns = None
    if is_frame(X):
        data, columns = from_frame(name, X), names_of(X)
        _validated(ica, name, X, reset=reset, skip_check_array=True)
    elif getattr(X, "ndim", 0) > 2:
        X = X if isinstance(X, np.memmap) else _array(name, X)
        data = X
        if X.dtype.kind not in "buif" or X.size == 0:
            raise InputError(f"{name} must hold numbers, got {X.dtype} of shape {X.shape}")
        if reset:
            ica.n_features_in_ = math.prod(X.shape[1:])
            ica.__dict__.pop("feature_names_in_", None)
    else:
        X = _array(name, X) if isinstance(X, (Tensor, list, tuple)) else X
        if isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "OU" and X.size:
            X = from_cells(name, X)
        data = _validated(ica, name, X, reset=reset, dtype="numeric", ensure_all_finite=False)
    mapped = isinstance(X, np.memmap)
    if not mapped:
        _finite(ica, name, data, columns)
    if reset:
        ica._shape = tuple(data.shape[1:])
    elif data.shape[1:] != ica._shape:
        raise InputError(
            f"{name} must hold observations of shape {ica._shape}, got {data.shape[1:]}"
        )
    return X if mapped else data


def _validated(ica: ContrastiveICA, name: str, X: Any, **options: Any) -> Any:
    """scikit-learn's validation of X: numbers, with its features recorded or compared."""
    try:
        return validate_data(ica, X, **options)
    except TypeError as error:
        raise InputTypeError(f"{name}: {error}") from None
    except (ValueError, OverflowError) as error:
        raise InputError(f"{name}: {error}") from None


def _drops(ica: ContrastiveICA) -> bool:
    return one_of("missing", ica.missing, ("raise", "drop")) == "drop"


def _finite(
    ica: ContrastiveICA, name: str, data: Array, columns: Sequence[str] | None = None
) -> None:
    """Raise if an entry is infinite, or NaN where rows with NaN are not left out."""
    if data.dtype.kind == "f":
        finite(name, np.where(np.isnan(data), 0, data) if _drops(ica) else data, None, columns)


def complete(ica: ContrastiveICA, data: Array, within: Sequences) -> Sequences:
    """Sequences without the rows that hold NaN, if they are to be left out."""
    missing = incomplete(data) if _drops(ica) else np.zeros(0, bool)
    return within.without(missing) if missing.any() else within


def _is_list(data: Any) -> bool:
    """Whether data are a list of tables or arrays, rows × columns."""
    if not isinstance(data, (list, tuple)) or not data:
        return False
    return all(len(getattr(part, "shape", ())) == 2 for part in data)


def _is_vector(data: Any) -> bool:
    return (
        not _is_list(data)
        and len(data.shape if hasattr(data, "shape") else as_array("X_pos", data).shape) == 1
    )


def seed_of(random_state: Any) -> int:
    """A seed from a random state of scikit-learn."""
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    if random_state is None or isinstance(random_state, np.random.Generator):
        return int(np.random.default_rng(random_state).integers(2**31))
    return count("random_state", random_state, at_least=0)
