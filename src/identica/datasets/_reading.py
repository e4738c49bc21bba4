"""Opening data files that may be absent, damaged, foreign or hostile.

Whatever is wrong becomes one `InputError` that names the file. What is allocated is bounded by the
size of the file or by a limit that the caller states, never by what the file claims.
"""

from __future__ import annotations

import math
import os
import stat
import struct
from io import BufferedReader, BytesIO
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from identica.errors import InputError

HEADER = 10_000  # bytes that the header of an npy file may have, as in NumPy


def open_file(path: str | Path) -> BufferedReader:
    """Open a regular file for reading; a pipe or device could block or never end."""
    try:
        if stat.S_ISREG(os.stat(path).st_mode):
            return open(path, "rb")
    except FileNotFoundError:
        raise InputError(f"{path} does not exist") from None
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read {path}: {reason(error)}") from None
    raise InputError(f"{path} must be a regular file, not a folder, pipe or device")


def reason(error: BaseException) -> str:
    """What an exception says, in one line of limited length."""
    told = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return " ".join(str(told).split())[:200]


def read_header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, Fortran order and type that the header of an npy stream states.

    Raises `ValueError` where there is no such header.
    """
    try:
        version = np.lib.format.read_magic(file)
        first = version == (1, 0)
        length = file.read(2 if first else 4)
        if int.from_bytes(length, "little") > HEADER:
            raise ValueError("its header is too long")
        header = BytesIO(length + file.read(int.from_bytes(length, "little")))
        read = np.lib.format.read_array_header_1_0 if first else np.lib.format.read_array_header_2_0
        shape, fortran, dtype = read(header)
    except Exception as error:  # a damaged header may raise anything at all
        raise ValueError(f"its header is damaged: {reason(error)}") from None
    if dtype.hasobject or min(shape, default=0) < 0:
        raise ValueError(f"it states {dtype} of shape {shape}")
    return shape, fortran, dtype


def map_array(path: str | Path) -> NDArray[Any]:
    """The array of an npy file, read-only and mapped into memory; nothing is unpickled.

    Raises unless the file is exactly as long as its header says.
    """
    with open_file(path) as file:
        try:
            shape, fortran, dtype = read_header(file)
            start, held = file.tell(), os.fstat(file.fileno()).st_size
            if start + math.prod(shape) * dtype.itemsize != held:
                raise ValueError(f"it has {held} bytes, but states {dtype} of shape {shape}")
            return np.memmap(file, dtype, "r", start, shape, "F" if fortran else "C")
        except (OSError, ValueError, OverflowError) as error:
            raise InputError(
                f"{path} is not an array of NumPy, or is cut short ({reason(error)})"
            ) from None


def read_png(path: str | Path, largest: int, mode: str | None = None) -> NDArray[Any]:
    """The pixels of a PNG file.

    Args:
        path: The file.
        largest: Width and height may have this many pixels at most; nothing larger is decoded.
        mode: Convert to this mode of Pillow, such as "RGB".
    """
    from PIL import Image

    with open_file(path) as file:
        try:
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
        except InputError:
            raise
        except Exception as error:  # a damaged image may raise anything at all
            raise InputError(
                f"{path} is not an image in PNG format, or is cut short ({reason(error)})"
            ) from None
