"""Observations from files: npy, npz, csv, parquet, HDF5, zarr and folders of images."""

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


class Observations(NamedTuple):
    """What a file holds.

    Attributes:
        x: N×d, trials × time × channels or images; memory-mapped where the file allows.
        columns: names of the columns, where they have some.
        positives: the positive of each row, if asked for.
        groups: the sequence of each row, if asked for, or if there are gaps in time.
        files: the files read, by the argument that named them: data, positives, groups.
        notes: what was taken for granted, in words.
    """

    x: Array
    columns: list[str] | None = None
    positives: Array | None = None
    groups: Array | None = None
    files: Mapping[str, Path] = {}
    notes: Sequence[str] = ()


class Chosen(NamedTuple):
    """Which columns of a table are observations, and how to read them."""

    columns: str | None = None
    drop: str | None = None
    beside: tuple[str | None, ...] = ()
    missing: str = "raise"

    def of(self, path: Path, source: Source) -> list[str]:
        """The columns of a table that are observations: those chosen, or all but those named otherwise."""
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
    """Read observations, with what belongs to them.

    Args:
        path: the file: .npy, .npz, .csv, .parquet, .h5, .hdf5 or .zarr; or a folder of PNG and JPEG
            images, in order of their names.
        array: the array of observations in a file of several; by default x, X or the only one.
        positives: another file, or the name of an array in the same.
        groups: the name of a column of the table or of an array in the file, or another file.
        columns, drop: columns of the table to use, or not to use, with commas between their names.
        index: the column or array that says when rows were observed, in numbers or dates; by default
            the one that was written as an index. Gaps in it end a sequence.
        missing: "raise" an error if cells are empty or NaN, or "drop": they become NaN.
    """
    one_of("missing", missing, ("raise", "drop"))
    kind = path.suffix.lower()
    folder = kind not in READERS and os.path.isdir(path)  # not Path.is_dir, which may raise
    kind = "a folder" if folder else kind
    found = images.load(path) if folder else open_file("DATA", path)
    named = found if isinstance(found, Source) else Source([], dict[str, Array]().__getitem__)
    if array is not None and (named.table or not named.names):
        raise InputError(
            f"array names an array of a file of several, but {path} is {kind}: leave it out"
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
    x = _observations("DATA", path, found, chosen, array)
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
    if index is not None and positives is None:
        times = times_in(f"index {index!r} of {path}", named.get(index), named.place)
        cut = pieces("DATA", times, group)
        if cut.gaps is not None:
            group = cut.groups
            notes.append(cut.gaps)
    names = chosen.of(path, named) if named.table else None
    return Observations(x, names, other, group, files, notes)


def fingerprint(path: Path) -> dict[str, Any]:
    """Size and hash of a file, or of all files in a folder, which identify its content."""
    if not path.is_dir():
        with reading(path, "a file"), path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256")
            return {"bytes": file.tell(), "sha256": digest.hexdigest()}
    parts = sorted((str(p.relative_to(path)), p) for p in path.rglob("*") if p.is_file())
    found = [(name, fingerprint(part)) for name, part in parts]
    whole = hashlib.sha256(repr([(name, part["sha256"]) for name, part in found]).encode())
    return {"bytes": sum(part["bytes"] for _, part in found), "sha256": whole.hexdigest()}


def _names(option: str, text: str | None, path: Path, source: Source) -> list[str]:
    """Names of columns with commas between them; a name may have commas itself."""
    if text is None:
        return []
    names = [text] if text in source.names else [name.strip() for name in text.split(",")]
    for name in names:
        if name not in source.names:
            raise InputError(
                f"{option} must name columns of {path}{_known(source.names)}, got {name!r}"
            )
    return names


def _known(names: list[str]) -> str:
    more = ", …" if len(names) > 20 else ""
    return f", which has {', '.join(names[:20])}{more}" if names else ""


def _file(argument: str, value: str, names: list[str]) -> Path:
    if Path(value).suffix.lower() in READERS:
        return Path(value)
    raise InputError(f"{argument} must be a file, or a name in DATA{_known(names)}, got {value!r}")


def _vector(path: Path) -> Array:
    """The labels in a file: its only array or column."""
    found = open_file("groups", path)
    if isinstance(found, Source):
        names = [name for name in found.names if name != found.stamps]
        if len(names) != 1:
            raise InputError(f"groups must be one column, but {path} has {', '.join(names)}")
        found = found.get(names[0])
    return found.reshape(-1) if found.ndim and found.size == len(found) else found


def _labels(path: Path, values: Array) -> Array:
    """Labels as they are, with None for the empty cells of a csv."""
    if path.suffix.lower() != ".csv":
        return values
    return np.array([None if v.strip().lower() in ("", "nan") else v for v in values], object)


def _observations(
    argument: str, path: Path, found: Array | Source, chosen: Chosen, array: str | None = None
) -> Array:
    """The observations in what a file holds: an array, one of several, or columns side by side."""
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
            numbers(f"column {name!r} of {path}", found.get(name), found.place, blank=blank)
            for name in names
        ]
        return _checked(argument, np.stack(table, axis=1).astype(float), chosen.missing)
    if array is None:
        usual = [name for name in found.names if name in ("x", "X")] or found.names
        if len(usual) != 1:
            held = ", ".join(found.names) or "none"
            raise InputError(f"array must be said, as {path} holds {held}")
        array = usual[0]
    elif array not in found.names:
        raise InputError(f"array must be one of {', '.join(found.names)} in {path}, got {array!r}")
    return _checked(argument, found.get(array), chosen.missing)


def _checked(argument: str, x: Array, missing: str) -> Array:
    """Observations that can be fitted: finite real numbers, N×d, trials or images."""
    if x.dtype.kind not in "buif":
        raise InputError(f"{argument} must hold real numbers, got {x.dtype}")
    if x.ndim < 2 or x.size == 0:
        raise InputError(f"{argument} must have shape N×d, or N×… for images, got {x.shape}")
    if x.dtype.kind == "f" and missing == "raise":
        for start in range(0, len(x), 4096):
            rows_of(argument, x, np.arange(start, min(start + 4096, len(x))))
    return x
