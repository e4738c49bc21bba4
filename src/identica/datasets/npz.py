"""Reading npy files and npz archives that may be cut short, damaged, foreign or hostile."""

from __future__ import annotations

import csv
import lzma
import math
import stat
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from identica.errors import InputError

# What NumPy, zipfile and csv raise on such files.
DAMAGE = (
    ValueError,
    TypeError,
    LookupError,
    SyntaxError,
    ArithmeticError,
    RuntimeError,
    EOFError,
    OSError,
    struct.error,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    csv.Error,
)
DEFLATED = 1032  # bytes that one compressed byte can stand for, at most


@contextmanager
def reading(path: str | Path, kind: str) -> Iterator[None]:
    """One `InputError` for whatever goes wrong while a file is read as a `kind` of file."""
    try:
        if not stat.S_ISREG(Path(path).stat().st_mode):  # a pipe or a device may have no end
            raise InputError(f"{path} must be a file, not a folder, pipe or device")
        yield
    except InputError:
        raise
    except FileNotFoundError:
        raise InputError(f"{path} does not exist") from None
    except MemoryError:
        raise InputError(f"{path} holds more than fits into memory") from None
    except DAMAGE as error:
        if isinstance(error, OSError) and error.strerror:
            raise InputError(f"{path} cannot be read: {error.strerror}") from None
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise InputError(f"{path} is damaged or not {kind}: {reason}") from None


def read_npz(path: str | Path, names: Sequence[str]) -> dict[str, NDArray[Any]]:
    """The arrays `names` of an npz archive; no others are read, and nothing is unpickled.

    Raises one `InputError` where the file is absent, damaged, foreign or lacks an array.
    """
    with reading(path, "an npz archive"), zipfile.ZipFile(path) as archive:
        missing = [name for name in names if f"{name}.npy" not in archive.namelist()]
        if missing:
            raise InputError(f"{path} must hold the arrays {', '.join(names)}; missing: {missing}")
        return {name: _member(Path(path), archive, name) for name in names}


def npz_names(path: str | Path) -> list[str]:
    """The names of the arrays in an npz archive."""
    with reading(path, "an npz archive"), zipfile.ZipFile(path) as archive:
        return [name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy")]


def map_npy(path: str | Path) -> NDArray[Any]:
    """The array of an npy file, memory-mapped; nothing is unpickled."""
    with reading(path, "an npy file"):
        with Path(path).open("rb") as file:
            _check_header(file, Path(path).stat().st_size)
        return np.lib.format.open_memmap(path, mode="r")


def _member(path: Path, archive: zipfile.ZipFile, name: str) -> NDArray[Any]:
    info = archive.getinfo(f"{name}.npy")
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"{name} is compressed by method {info.compress_type}, not by deflate")
    if info.file_size > DEFLATED * min(info.compress_size, path.stat().st_size):
        raise ValueError(f"{name} claims {info.file_size} bytes, more than the archive can hold")
    with archive.open(info) as file:
        _check_header(file, info.file_size)
    with archive.open(info) as file:
        return np.asarray(np.lib.format.read_array(file, allow_pickle=False))


def _check_header(file: IO[bytes], size: int) -> None:
    """Refuse an npy file of `size` bytes that holds anything but a plain array of that size."""
    version = np.lib.format.read_magic(file)
    old = version == (1, 0)
    read = np.lib.format.read_array_header_1_0 if old else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(file)
    if dtype.hasobject:
        raise ValueError("it holds Python objects, which are never unpickled: save plain numbers")
    if dtype.kind == "V":
        raise ValueError(f"it must hold a plain array, not one with fields ({dtype})")
    claimed, there = math.prod(shape) * dtype.itemsize, size - file.tell()
    if any(n < 0 for n in shape) or claimed > there:
        raise ValueError(f"its header claims shape {shape} of {dtype}, but {there} bytes follow")
