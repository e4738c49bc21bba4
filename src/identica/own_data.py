"""Observations from files: npy, npz, csv and parquet."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from identica._check import InputError

Array = NDArray[Any]


class Observations(NamedTuple):
    """What a file holds.

    Attributes:
        x: N×d or images; memory-mapped where the file allows.
        columns: names of the columns, where they have some.
        positives: the positive of each row, if asked for.
        groups: the sequence of each row, if asked for.
    """

    x: Array
    columns: list[str] | None = None
    positives: Array | None = None
    groups: Array | None = None


def read(
    path: Path, *, array: str | None = None, positives: str | None = None, groups: str | None = None
) -> Observations:
    """Read observations, with what belongs to them.

    Args:
        path: the file: .npy, .npz, .csv or .parquet.
        array: the array of observations in an npz; by default x, X or the only one.
        positives: another file, or the name of an array in the npz.
        groups: the name of a column of the table or of an array in the npz, or a file.
    """
    kind = path.suffix.lower()
    if kind not in READERS:
        raise InputError(f"DATA must be a file of {', '.join(READERS)}, got {path}")
    if not path.is_file():
        raise InputError(f"DATA must be a file, but {path} is none")
    try:
        found = READERS[kind](path)
    except (OSError, ValueError, EOFError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path} cannot be read as {kind}: {error}") from None
    named: dict[str, Array] = found if kind == ".npz" else {}
    columns = None
    group = _beside("groups", groups, found if isinstance(found, dict) else {})
    other = _beside("positives", positives, named)
    if kind == ".npy":
        x = found
    elif kind == ".npz":
        x = _observations_of(path, named, array)
    else:
        columns = [name for name in found if name != groups]
        x = np.stack([_numbers(path, name, found[name]) for name in columns], axis=1)
    return Observations(x, columns, other, group)


def fingerprint(path: Path) -> dict[str, Any]:
    """What tells a file from another one: its name, size, and a hash of its first and last megabyte."""
    size, part = path.stat().st_size, 1 << 20
    with path.open("rb") as file:
        content = file.read(part)
        file.seek(max(0, size - part))
        content += file.read(part)
    return {"name": path.name, "bytes": size, "hash": hashlib.sha256(content).hexdigest()[:16]}


def _beside(name: str, value: str | None, named: dict[str, Array]) -> Array | None:
    """An array that stands beside the observations, or in a file of its own."""
    if value is None:
        return None
    if value in named:
        return named[value]
    if Path(value).suffix.lower() in READERS:
        return read(Path(value)).x if name == "positives" else _vector(Path(value))
    known = f"; DATA has {', '.join(named)}" if named else ""
    raise InputError(f"{name} must be a file, or a name in DATA, got {value!r}{known}")


def _vector(path: Path) -> Array:
    values = read(path).x
    return values.reshape(-1) if values.size == len(values) else values


def _observations_of(path: Path, named: dict[str, Array], array: str | None) -> Array:
    if array is not None:
        if array not in named:
            raise InputError(f"array must be one of {', '.join(named)} in {path}, got {array!r}")
        return named[array]
    usual: list[str] = [name for name in named if name in ("x", "X")] or list(named)
    if len(usual) != 1:
        raise InputError(f"array must be said, as {path} holds {', '.join(named) or 'none'}")
    return named[usual[0]]


def _numbers(path: Path, name: str, values: Array) -> Array:
    try:
        return values.astype(np.float64)
    except (ValueError, TypeError):
        raise InputError(
            f"column {name!r} of {path} must hold numbers: leave it out, or name it in groups"
        ) from None


# --- each kind of file ------------------------------------------------------------------------------


def _npy(path: Path) -> Array:
    return np.load(path, mmap_mode="r", allow_pickle=False)


def _npz(path: Path) -> dict[str, Array]:
    with np.load(path, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def _csv(path: Path) -> dict[str, Array]:
    """Columns of a table with commas, semicolons or tabs; names in the first line, if it has any."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        start = file.readline()
        mark = max(",;\t", key=start.count)
        file.seek(0)
        lines = [line for line in csv.reader(file, delimiter=mark) if line]
    if not lines:
        raise InputError(f"{path} is empty")
    width = len(lines[0])
    for number, line in enumerate(lines, 1):
        if len(line) != width:
            raise InputError(f"{path}: line {number} has {len(line)} cells, the first {width}")
    named = not all(map(_is_number, lines[0]))
    names = [name.strip() for name in lines[0]] if named else [f"x{k}" for k in range(width)]
    if len(set(names)) < width:
        raise InputError(f"{path}: columns must have different names, got {', '.join(names)}")
    cells = np.array(lines[named:], dtype=str).reshape(-1, width)
    return {name: cells[:, k] for k, name in enumerate(names)}


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _parquet(path: Path) -> dict[str, Array]:
    try:
        import pandas

        frame = pandas.read_parquet(path)
    except ImportError:
        raise InputError(
            "parquet files need pandas and pyarrow (pip install pandas pyarrow); csv and npy do not"
        ) from None
    return {str(name): frame[name].to_numpy() for name in frame.columns}


READERS: dict[str, Callable[[Path], Any]] = {
    ".npy": _npy,
    ".npz": _npz,
    ".csv": _csv,
    ".parquet": _parquet,
}
