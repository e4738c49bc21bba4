"""Safe reading of data files that may be missing, damaged or malicious.

Any problem raises an `InputError` that names the file, and nothing is unpickled. Allocations are bounded by
the size of the file or by a limit of the caller, never by a size that the file claims.
"""

from __future__ import annotations

import math
import stat
import struct
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BufferedReader, BytesIO
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from identica.errors import InputError

HEADER = 10_000  # bytes that the header of an npy file may have, as in NumPy
DEFLATED = 1032  # bytes that one compressed byte can stand for, at most


@contextmanager
def reading(path: str | Path, kind: str) -> Iterator[BufferedReader]:
    """Open a regular file; any error while it is read as a `kind` of file becomes an
    `InputError`."""
    try:
        if not stat.S_ISREG(Path(path).stat().st_mode):  # a pipe or a device may have no end
            raise InputError(f"{path} must be a file, not a folder, pipe or device")
        with open(path, "rb") as file:
            yield file
    except InputError:
        raise
    except FileNotFoundError:
        raise InputError(f"{path} does not exist") from None
    except MemoryError:
        raise InputError(f"{path} holds more than fits into memory") from None
    except Exception as error:  # a damaged file may raise anything at all
        if isinstance(error, OSError) and error.strerror:
            raise InputError(f"{path} cannot be read: {error.strerror}") from None
        raise InputError(f"{path} is damaged or not {kind}: {reason(error)}") from None


def reason(error: BaseException) -> str:
    """The message of an exception, in one line of limited length."""
    message = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return " ".join(str(message).split())[:200]


def read_header(file: IO[bytes], size: int) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, Fortran order and type that the header of an npy stream of `size` bytes states.

    Raises `ValueError` unless it is that of a plain array of at most this size.
    """
    first = np.lib.format.read_magic(file) == (1, 0)
    length = file.read(2 if first else 4)
    if int.from_bytes(length, "little") > HEADER:
        raise ValueError("its header is too long")
    header = BytesIO(length + file.read(int.from_bytes(length, "little")))
    read = np.lib.format.read_array_header_1_0 if first else np.lib.format.read_array_header_2_0
    shape, fortran, dtype = read(header)
    if dtype.hasobject:
        raise ValueError("it holds Python objects, which are never unpickled: save plain numbers")
    if dtype.kind == "V":
        raise ValueError(f"it must hold a plain array, not one with fields ({dtype})")
    there = size - file.tell()
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize > there:
        raise ValueError(f"its header claims shape {shape} of {dtype}, but {there} bytes follow")
    return shape, fortran, dtype


def map_npy(path: str | Path) -> NDArray[Any]:
    """The array of an npy file, read-only and mapped into memory."""
    with reading(path, "an npy file") as file:
        shape, fortran, dtype = read_header(file, Path(path).stat().st_size)
        return np.memmap(file, dtype, "r", file.tell(), shape, "F" if fortran else "C")


def npz_names(path: str | Path) -> list[str]:
    """The names of the arrays in an npz archive."""
    with reading(path, "an npz archive") as file, zipfile.ZipFile(file) as archive:
        return [name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy")]


def read_npz(
    path: str | Path, names: Sequence[str], largest: int | None = None
) -> dict[str, NDArray[Any]]:
    """The arrays `names` of an npz archive, of `largest` bytes together at most; no others are read."""
    with reading(path, "an npz archive") as file, zipfile.ZipFile(file) as archive:
        missing = [name for name in names if f"{name}.npy" not in archive.namelist()]
        if missing:
            raise InputError(f"{path} must hold the arrays {', '.join(names)}; missing: {missing}")
        size = sum(archive.getinfo(f"{name}.npy").file_size for name in names)
        if largest is not None and size > largest:
            raise InputError(f"{path} must hold at most {largest} bytes once unpacked, got {size}")
        return {name: _member(Path(path), archive, name) for name in names}


def _member(path: Path, archive: zipfile.ZipFile, name: str) -> NDArray[Any]:
    info = archive.getinfo(f"{name}.npy")
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"{name} is compressed by method {info.compress_type}, not by deflate")
    if info.file_size > DEFLATED * min(info.compress_size, path.stat().st_size):
        raise ValueError(f"{name} claims {info.file_size} bytes, more than the archive can hold")
    with archive.open(info) as file:
        read_header(file, info.file_size)
    with archive.open(info) as file:
        return np.asarray(np.lib.format.read_array(file, allow_pickle=False))


def read_png(path: str | Path, largest: int, mode: str | None = None) -> NDArray[Any]:
    """The pixels of a PNG file.

    Args:
        path: The file.
        largest: Width and height may have this many pixels at most; nothing larger is decoded.
        mode: Convert to this mode of Pillow, such as "RGB".
    """
    from PIL import Image

    with reading(path, "an image in PNG format") as file:
        head = file.read(24)
        if head[:8] != b"\x89PNG\r\n\x1a\n" or head[12:16] != b"IHDR":
            raise ValueError("it does not begin as one")
        width, height = struct.unpack(">II", head[16:])
        if max(width, height) > largest:
            raise InputError(
                f"{path} must have at most {largest}×{largest} pixels, got {height}×{width}"
            )
        # From memory, which ends where the file does: a chunk may claim any length.
        with Image.open(BytesIO(head + file.read()), formats=["PNG"]) as image:
            return np.asarray(image if mode is None else image.convert(mode))
