"""Observations from files: npy, npz, csv and parquet."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from identica._validate import as_floats
from identica.datasets.reading import map_npy, npz_names, read_npz, reading
from identica.errors import InputError
from identica.estimator.pairs import rows_of

Array = NDArray[Any]


class Observations(NamedTuple):
    """What a file holds.

    Attributes:
        x: N×d or images; memory-mapped where the file allows.
        columns: names of the columns, where they have some.
        positives: the positive of each row, if asked for.
        groups: the sequence of each row, if asked for.
        files: the files read, by the argument that named them: data, positives, groups.
    """

    x: Array
    columns: list[str] | None = None
    positives: Array | None = None
    groups: Array | None = None
    files: Mapping[str, Path] = {}


class Source(NamedTuple):
    """Arrays of an npz or columns of a table by name, each read when it is asked for."""

    names: list[str]
    get: Callable[[str], Array]


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
    found, kind = _open("DATA", path), path.suffix.lower()
    named = found if isinstance(found, Source) else Source([], dict[str, Array]().__getitem__)
    if array is not None and kind != ".npz":
        raise InputError(f"array names an array of an npz, but {path} is {kind}: leave it out")
    files, columns = {"data": path}, None
    if kind in TABLES:
        columns = [name for name in named.names if name != groups]
    x = _observations("DATA", path, found, array, columns)
    other = group = None
    if positives is not None:
        if kind == ".npz" and positives in named.names:
            other = _checked("positives", named.get(positives))
        else:
            files["positives"] = _file("positives", positives, named.names)
            source = _open("positives", files["positives"])
            other = _observations("positives", files["positives"], source)
        if other.shape != x.shape:
            raise InputError(
                f"positives must have the shape of the observations, {x.shape}, got {other.shape}"
            )
    if groups is not None:
        if groups in named.names:
            group = _labels(path, named.get(groups))
        else:
            files["groups"] = _file("groups", groups, named.names)
            group = _labels(files["groups"], _vector(files["groups"]))
    return Observations(x, columns, other, group, files)


def fingerprint(path: Path) -> dict[str, Any]:
    """Size and hash of a file, which identify its content."""
    with reading(path, "a file"), path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256")
        return {"bytes": file.tell(), "sha256": digest.hexdigest()}


def _open(argument: str, path: Path) -> Array | Source:
    kind = path.suffix.lower()
    if kind not in READERS:
        raise InputError(f"{argument} must be a file of {', '.join(READERS)}, got {path}")
    try:
        with reading(path, kind):
            return READERS[kind](path)
    except InputError as error:
        raise InputError(f"{argument}: {error}") from None


def _file(argument: str, value: str, names: list[str]) -> Path:
    if Path(value).suffix.lower() in READERS:
        return Path(value)
    known = f"; DATA has {', '.join(names)}" if names else ""
    raise InputError(f"{argument} must be a file, or a name in DATA, got {value!r}{known}")


def _vector(path: Path) -> Array:
    """The labels in a file: its only array or column."""
    found = _open("groups", path)
    if isinstance(found, Source):
        if len(found.names) != 1:
            raise InputError(f"groups must be one column, but {path} has {', '.join(found.names)}")
        found = found.get(found.names[0])
    return found.reshape(-1) if found.ndim and found.size == len(found) else found


def _labels(path: Path, values: Array) -> Array:
    """Labels as they are, with None for the empty cells of a csv."""
    if path.suffix.lower() != ".csv":
        return values
    return np.array([None if v.strip().lower() in ("", "nan") else v for v in values], object)


def _observations(
    argument: str,
    path: Path,
    found: Array | Source,
    array: str | None = None,
    columns: list[str] | None = None,
) -> Array:
    """The observations in what a file holds: an array, one of several, or columns side by side."""
    if not isinstance(found, Source):
        return _checked(argument, found)
    if path.suffix.lower() in TABLES:
        columns = found.names if columns is None else columns
        if not columns:
            raise InputError(
                f"{argument} must hold observations, but {path} has no columns for them"
            )
        table = [_numbers(path, name, found.get(name)) for name in columns]
        return _checked(argument, np.stack(table, axis=1))
    if array is None:
        usual = [name for name in found.names if name in ("x", "X")] or found.names
        if len(usual) != 1:
            held = ", ".join(found.names) or "none"
            raise InputError(f"array must be said, as {path} holds {held}")
        array = usual[0]
    elif array not in found.names:
        raise InputError(f"array must be one of {', '.join(found.names)} in {path}, got {array!r}")
    return _checked(argument, found.get(array))


def _checked(argument: str, x: Array) -> Array:
    """Observations that can be fitted: finite real numbers, N×d or images."""
    if x.dtype.kind not in "buif":
        raise InputError(f"{argument} must hold real numbers, got {x.dtype}")
    if x.ndim < 2 or x.size == 0:
        raise InputError(f"{argument} must have shape N×d, or N×… for images, got {x.shape}")
    if x.dtype.kind == "f":
        for start in range(0, len(x), 4096):
            rows_of(argument, x, np.arange(start, min(start + 4096, len(x))))
    return x


def _numbers(path: Path, name: str, values: Array) -> Array:
    try:
        return as_floats(name, values)
    except InputError:
        raise InputError(
            f"column {name!r} of {path} must hold numbers: leave it out, or name it in groups"
        ) from None


# --- each kind of file ------------------------------------------------------------------------------


def _npz(path: Path) -> Source:
    return Source(npz_names(path), lambda name: read_npz(path, [name])[name])


def _csv(path: Path) -> Source:
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
    place = {name: k for k, name in enumerate(names)}
    return Source(
        names, lambda name: np.array([line[place[name]] for line in lines[named:]], object)
    )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _parquet(path: Path) -> Source:
    try:
        import pandas

        frame = pandas.read_parquet(path)
    except ImportError:
        raise InputError(
            "parquet files need pandas and pyarrow (pip install pandas pyarrow); csv and npy do not"
        ) from None
    columns = {str(name): frame[name].to_numpy() for name in frame.columns}
    return Source(list(columns), columns.__getitem__)


TABLES = (".csv", ".parquet")
READERS: dict[str, Callable[[Path], Array | Source]] = {
    ".npy": map_npy,
    ".npz": _npz,
    ".csv": _csv,
    ".parquet": _parquet,
}
