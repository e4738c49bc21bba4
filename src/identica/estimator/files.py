"""Which array, columns, index and groups of a file are the observations; `readers` parses the formats."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from identica._validate import one_of
from identica.datasets import images
from identica.datasets.reading import reading
from identica.errors import InputError
from identica.estimator.pairs import rows_of
from identica.estimator.readers import READERS, Source, open_file
from identica.estimator.tables import numbers
from identica.estimator.times import pieces, times_in

Array = NDArray[Any]


class Index(NamedTuple):
    """A column with the time of each row.

    Attributes:
        name: of the column.
        cells: as they are in the file.
        times: dates or numbers, to draw.
    """

    name: str
    cells: Array
    times: Array


class Observations(NamedTuple):
    """The content of a file.

    Attributes:
        x: N×d, trials × time × channels or images; memory-mapped if the format allows.
        columns: names of the columns, if they have names.
        positives: the positive of each row, if requested.
        groups: the sequence of each row, if requested or if there are gaps in time.
        stamps: the time of each row, if the file has an index.
        files: the files read, by the argument that named them: data, positives, groups.
        notes: messages about assumptions made while reading.
    """

    x: Array
    columns: list[str] | None = None
    positives: Array | None = None
    groups: Array | None = None
    stamps: Index | None = None
    files: Mapping[str, Path] = {}
    notes: Sequence[str] = ()


class Chosen(NamedTuple):
    """The columns of a table to use as observations, and how to read them."""

    columns: str | None = None
    drop: str | None = None
    beside: tuple[str | None, ...] = ()
    missing: str = "raise"

    def of(self, path: Path, source: Source) -> list[str]:
        """Names of the observed columns: those in `columns`, or all that have no other role."""
        wanted = _names("columns", self.columns, path, source) or [
            name for name in source.names if name not in self.beside
        ]
        dropped = _names("drop", self.drop, path, source)
        return [name for name in wanted if name not in dropped]


def read(
    path: Path,
    *,
    array: str | None = None,
    positives: str | None = None,
    groups: str | None = None,
    columns: str | None = None,
    drop: str | None = None,
    index: str | None = None,
    missing: str = "raise",
) -> Observations:
    """Read observations and, if requested, their positives and groups.

    Args:
        path: a .npy, .npz, .csv, .parquet, .h5, .hdf5 or .zarr file, or a folder of PNG and JPEG images,
            which are read in order of their names.
        array: name of the array of observations in a file of several; by default x, X or the only one.
        positives: another file, or the name of an array in the same file.
        groups: name of a column or of an array in the same file, or another file.
        columns, drop: columns of a table to use, or to leave out, separated by commas.
        index: the column or array with the times of the rows, as numbers or dates; by default the one
            that was written as an index. Gaps in it end a sequence.
        missing: "raise" an error if cells are empty or NaN, or "drop": keep them as NaN.
    """
    one_of("missing", missing, ("raise", "drop"))
    kind = path.suffix.lower()
    folder = kind not in READERS and os.path.isdir(path)  # not Path.is_dir, which may raise
    kind = "a folder" if folder else kind
    content = images.load(path) if folder else open_file("DATA", path)
    named = content if isinstance(content, Source) else Source([], dict[str, Array]().__getitem__)
    if array is not None and (named.table or not named.names):
        raise InputError(
            f"array selects one of several arrays in a file, but {path} is {kind}: leave it out"
        )
    if not named.table:
        for option, given in {"columns": columns, "drop": drop}.items():
            if given is not None:
                raise InputError(
                    f"{option} names columns of a table, but {path} is {kind}: leave it out"
                )
    files, notes = {"data": path}, []
    if index is None and named.stamps is not None:
        used = {
            groups,
            *_names("columns", columns, path, named),
            *_names("drop", drop, path, named),
        }
        if named.stamps not in used:
            index = named.stamps
            notes.append(f"column {index!r} of {path} is the index, not one of the observations")
    if index is not None and index not in named.names:
        raise InputError(f"index must be a name in DATA{_known(named.names)}, got {index!r}")
    chosen = Chosen(columns, drop, (groups, index), missing)
    x = _observations("DATA", path, content, chosen, array)
    other = group = None
    if positives is not None:
        if not named.table and positives in named.names:
            other = _checked("positives", named.get(positives), missing)
        else:
            files["positives"] = _file("positives", positives, named.names)
            source = open_file("positives", files["positives"])
            if isinstance(source, Source) and source.stamps is not None:
                chosen = chosen._replace(beside=(*chosen.beside, source.stamps))
            other = _observations("positives", files["positives"], source, chosen)
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
    stamps = None
    if index is not None:
        cells = named.get(index)
        times = times_in(f"index {index!r} of {path}", cells, named.place)
        values = (1e6 * times.values).astype("M8[us]") if times.dates else times.values
        stamps = Index(index, cells, values)
        ordered = f"DATA (by {index!r})"
        cut = pieces(ordered, times, group) if positives is None else None
        if cut is not None and cut.gaps is not None:
            group = cut.groups
            notes.append(cut.gaps)
    names = chosen.of(path, named) if named.table else None
    return Observations(x, names, other, group, stamps, files, notes)


def fingerprint(path: Path) -> dict[str, Any]:
    """Size and hash of a file or of all files in a folder."""
    if not path.is_dir():
        with reading(path, "a file"), path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256")
            return {"bytes": file.tell(), "sha256": digest.hexdigest()}
    parts = sorted((str(p.relative_to(path)), p) for p in path.rglob("*") if p.is_file())
    hashed = [(name, fingerprint(part)) for name, part in parts]
    whole = hashlib.sha256(repr([(name, part["sha256"]) for name, part in hashed]).encode())
    return {"bytes": sum(part["bytes"] for _, part in hashed), "sha256": whole.hexdigest()}


def _names(option: str, text: str | None, path: Path, source: Source) -> list[str]:
    """Names of columns, separated by commas; a single name may contain commas."""
    if text is None:
        return []
    names = [text] if text in source.names else [name.strip() for name in text.split(",")]
    for name in names:
        if name not in source.names:
            raise InputError(
                f"{option} must name columns of {path}{_known(source.names)}, got {name!r}"
            )
    if len(set(names)) < len(names):
        raise InputError(f"{option} must name each column once, got {text!r}")
    return names


def _known(names: list[str]) -> str:
    more = ", …" if len(names) > 20 else ""
    return f", which has {', '.join(names[:20])}{more}" if names else ""


def _file(argument: str, value: str, names: list[str]) -> Path:
    if Path(value).suffix.lower() in READERS:
        return Path(value)
    raise InputError(f"{argument} must be a file, or a name in DATA{_known(names)}, got {value!r}")


def _vector(path: Path) -> Array:
    """The labels in a file, which must have a single array or column."""
    labels = open_file("groups", path)
    if isinstance(labels, Source):
        names = [name for name in labels.names if name != labels.stamps]
        if len(names) != 1:
            raise InputError(f"groups must be one column, but {path} has {', '.join(names)}")
        labels = labels.get(names[0])
    return labels.reshape(-1) if labels.ndim and labels.size == len(labels) else labels


def _labels(path: Path, values: Array) -> Array:
    """Labels with None for the empty cells of a csv."""
    if path.suffix.lower() != ".csv":
        return values
    return np.array([None if v.strip().lower() in ("", "nan") else v for v in values], object)


def _observations(
    argument: str, path: Path, found: Array | Source, chosen: Chosen, array: str | None = None
) -> Array:
    """The observations of an opened file: an array, one of several, or columns of a table."""
    if not isinstance(found, Source):
        return _checked(argument, found, chosen.missing)
    if found.table:
        names = chosen.of(path, found)
        if not names:
            raise InputError(
                f"{argument} must hold observations, but {path} has no columns for them"
            )
        blank = chosen.missing == "drop"
        table = [
            numbers(
                f"column {name!r} of {path}",
                found.get(name),
                found.place,
                blank=blank,
                advice=_advice(name),
            )
            for name in names
        ]
        return _checked(argument, np.stack(table, axis=1).astype(float), chosen.missing)
    if array is None:
        usual = [name for name in found.names if name in ("x", "X")] or found.names
        if len(usual) != 1:
            held = ", ".join(found.names) or "none"
            raise InputError(f"array must be given, as {path} holds {held}")
        array = usual[0]
    elif array not in found.names:
        raise InputError(f"array must be one of {', '.join(found.names)} in {path}, got {array!r}")
    return _checked(argument, found.get(array), chosen.missing)


def _advice(name: str) -> dict[str, str]:
    out = f'drop="{name}" leaves it out'
    return {
        "date": f'index="{name}" makes it the index, {out}',
        "text": f'{out}, groups="{name}" separates sequences by it; otherwise encode it as numbers',
    }


def _checked(argument: str, x: Array, missing: str) -> Array:
    """Check that observations are finite real numbers of a shape that can be fitted."""
    if x.dtype.kind not in "buif":
        raise InputError(f"{argument} must hold real numbers, got {x.dtype}")
    if x.ndim < 2 or x.size == 0:
        raise InputError(f"{argument} must have shape N×d, or N×… for images, got {x.shape}")
    if x.dtype.kind == "f" and missing == "raise":
        for start in range(0, len(x), 4096):
            rows_of(argument, x, np.arange(start, min(start + 4096, len(x))))
    return x
