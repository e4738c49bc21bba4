"""Files of every kind as named arrays or columns, each read when it is asked for."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from identica.datasets.reading import (
    DEFLATED,
    map_npy,
    npz_names,
    read_npz,
    reading,
    reason,
)
from identica.errors import InputError

Array = NDArray[Any]

FREE = (
    1 << 30
)  # bytes that an array may claim whatever the size of its file: empty parts are not stored
UNNAMED = ("", "Unnamed: 0")  # what an index is called in a csv, and in one written twice


def _row(number: int) -> str:
    return f"row {number} (from 0)"


class Source(NamedTuple):
    """What a file holds by name.

    Attributes:
        names: of arrays, or of the columns of a table.
        get: reads one of them.
        table: these are columns.
        stamps: the column that was written as the index of a data frame, if any.
        place: what to call a row in an error, by its number.
    """

    names: list[str]
    get: Callable[[str], Array]
    table: bool = False
    stamps: str | None = None
    place: Callable[[int], str] = _row


def open_file(argument: str, path: Path) -> Array | Source:
    """An array, or a source of several."""
    kind = path.suffix.lower()
    if kind not in READERS:
        raise InputError(f"{argument} must be a file of {', '.join(READERS)}, got {path}")
    try:
        with _guarded(path):
            return READERS[kind](path)
    except InputError as error:
        raise InputError(f"{argument}: {error}") from None


@contextmanager
def _guarded(path: Path) -> Iterator[None]:
    """Turn any error in reading a file or folder into an `InputError`."""
    kind = path.suffix.lower()
    if kind != ".zarr":
        with reading(path, kind):
            yield
        return
    try:
        if not path.exists():
            raise InputError(f"{path} does not exist")
        if not path.is_dir():
            raise InputError(f"{path} must be a folder")
        yield
    except InputError:
        raise
    except MemoryError:
        raise InputError(f"{path} holds more than fits into memory") from None
    except Exception as error:  # a damaged store may raise anything at all
        raise InputError(f"{path} is damaged or not {kind}: {reason(error)}") from None


def _library(name: str, kind: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        needed = name.partition(".")[0]
        raise InputError(
            f"{kind} files need {needed}, which is not installed: pip install identica[files]"
        ) from None


# --- arrays -----------------------------------------------------------------------------------------


def _npz(path: Path) -> Source:
    return Source(npz_names(path), lambda name: read_npz(path, [name])[name])


def _hdf5(path: Path) -> Source:
    h5py = _library("h5py", "HDF5")
    names: list[str] = []
    with h5py.File(path, "r") as file:
        file.visititems(lambda name, item: names.append(name) if hasattr(item, "dtype") else None)

    def get(name: str) -> Array:
        with _guarded(path), h5py.File(path, "r") as file:
            item = file[name]
            _claims(name, item, path.stat().st_size)
            text = h5py.check_string_dtype(item.dtype) is not None
            return np.asarray(item.asstr()[()] if text else item[()])

    return Source(names, get)


def _zarr(path: Path) -> Array | Source:
    zarr = _library("zarr", "zarr")
    size = 0
    for file in path.rglob("*"):
        size += file.stat().st_size
        if file.name in (".zarray", ".zmetadata", "zarr.json"):
            said = json.dumps(json.loads(file.read_bytes()))  # without escapes
            if "pickle" in said:
                raise ValueError("it holds Python objects, which are never unpickled")
    store = zarr.open(str(path), mode="r")

    def get(name: str) -> Array:
        with _guarded(path):
            item = store[name] if name else store
            _claims(name or path.name, item, size)
            return np.asarray(item[...])

    if hasattr(store, "dtype"):  # the store is one array
        return get("")
    names = [name for name, item in store.members(max_depth=None) if hasattr(item, "dtype")]
    return Source(sorted(names), get)


def _claims(name: str, array: Any, size: int) -> None:
    if array.nbytes > max(FREE, DEFLATED * size):
        raise ValueError(f"{name} claims {array.nbytes} bytes, more than {size} can stand for")


# --- tables -----------------------------------------------------------------------------------------


def _csv(path: Path) -> Source:
    """Columns of a table with commas, semicolons or tabs; names in the first line, if it has any."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        start = file.readline()
        mark = max(",;\t", key=start.count)
        file.seek(0)
        reader = csv.reader(file, delimiter=mark)
        lines, at = [], []
        for line in reader:
            if line:
                lines.append(line)
                at.append(reader.line_num)
    if not lines:
        raise InputError(f"{path} is empty")
    width = len(lines[0])
    for number, line in zip(at, lines, strict=True):
        if len(line) != width:
            raise InputError(f"{path}: line {number} has {len(line)} cells, the first {width}")
    named = not all(map(_is_number, lines[0]))
    names = [name.strip() for name in lines[0]] if named else [f"x{k}" for k in range(width)]
    rows = lines[named:]
    index = None
    if named and names[0] in UNNAMED and width > 1:
        index = names[0] = "index" if "index" not in names else names[0]
    elif not named and width > 1 and [row[0] for row in rows] == [*map(str, range(len(rows)))]:
        index = names[0]
    if len(set(names)) < width:
        raise InputError(f"{path}: columns must have different names, got {', '.join(names)}")
    column = {name: k for k, name in enumerate(names)}
    return Source(
        names,
        lambda name: np.array([row[column[name]] for row in rows], object),
        True,
        index,
        lambda row: f"line {at[row + named]}",
    )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _parquet(path: Path) -> Source:
    table = _library("pyarrow.parquet", "parquet").read_table(path)
    about = json.loads((table.schema.metadata or {}).get(b"pandas", b"{}"))
    index = [name for name in about.get("index_columns", []) if name in table.column_names]
    return Source(
        list(table.column_names),
        lambda name: np.asarray(table.column(name).to_numpy()),
        True,
        index[0] if len(index) == 1 else None,
    )


READERS: dict[str, Callable[[Path], Array | Source]] = {
    ".npy": map_npy,
    ".npz": _npz,
    ".csv": _csv,
    ".parquet": _parquet,
    ".h5": _hdf5,
    ".hdf5": _hdf5,
    ".zarr": _zarr,
}
