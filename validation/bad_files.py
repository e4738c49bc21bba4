"""A small collection of files that cannot be fitted, by name, with what the error must say of each."""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

ROWS = np.arange(120.0).reshape(40, 3)


class Bad(NamedTuple):
    """Content of a file (None: a folder), and words of the error it gives."""

    content: Callable[[], bytes] | None
    says: str


def npy(array: Any, **options: Any) -> bytes:
    """The bytes of an npy file."""
    file = io.BytesIO()
    np.save(file, array, **options)
    return file.getvalue()


def npz(compressed: bool = False, **arrays: NDArray[Any]) -> bytes:
    """The bytes of an npz archive."""
    file = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(file, **arrays)
    return file.getvalue()


def header(shape: str, descr: str = "'<f8'") -> bytes:
    """The bytes of an npy file whose header says anything at all, with 80 bytes of content."""
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}}}".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + bytes(80)


def archive(content: bytes, method: int = zipfile.ZIP_STORED) -> bytes:
    """The bytes of an npz archive with one member, x.npy."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as made:
        made.writestr("x.npy", content)
    return file.getvalue()


def patched(content: bytes, local: int, central: int, value: bytes) -> bytes:
    """An archive of one member with some bytes replaced in both of its headers."""
    changed = bytearray(content)
    for start in (changed.index(b"PK\x03\x04") + local, changed.index(b"PK\x01\x02") + central):
        changed[start : start + len(value)] = value
    return bytes(changed)


def flipped(content: bytes) -> bytes:
    """A byte in the middle of the member changed."""
    place = len(content) // 2
    return content[:place] + bytes([content[place] ^ 0xFF]) + content[place + 1 :]


def claiming(size: int) -> bytes:
    """A member whose zip headers and npy header both claim a size that is not there."""
    field = struct.pack("<II", min(size, 0xFFFFFFFE), min(size, 0xFFFFFFFE))
    return patched(archive(header(f"({size // 8},)")), 18, 20, field)


BAD: dict[str, Bad] = {
    "empty.npy": Bad(lambda: b"", "damaged or not"),
    "empty.npz": Bad(lambda: b"", "damaged or not"),
    "empty.csv": Bad(lambda: b"", "is empty"),
    "empty.parquet": Bad(lambda: b"", ""),
    "folder.npy": Bad(None, "must be a file, not a folder"),
    "folder.npz": Bad(None, "must be a file, not a folder"),
    "folder.csv": Bad(None, "must be a file, not a folder"),
    "folder.parquet": Bad(None, "must be a file, not a folder"),
    "text.npy": Bad(lambda: b"no such thing", "damaged or not"),
    "text.npz": Bad(lambda: b"no such thing", "damaged or not"),
    "text.parquet": Bad(lambda: b"no such thing", ""),
    "other.txt": Bad(lambda: b"1,2\n3,4\n", "must be a file of .npy"),
    "cut.npy": Bad(lambda: npy(ROWS)[:-100], "claims"),
    "cut-header.npy": Bad(lambda: npy(ROWS)[:40], "damaged or not"),
    "cut.npz": Bad(lambda: npz(x=ROWS)[:-30], "damaged or not"),
    "npz-inside.npy": Bad(lambda: npz(x=ROWS), "damaged or not"),
    "npy-inside.npz": Bad(lambda: npy(ROWS), "damaged or not"),
    "flipped.npz": Bad(lambda: flipped(npz(x=ROWS)), "damaged or not"),
    "flipped-packed.npz": Bad(
        lambda: flipped(npz(True, x=np.random.default_rng(0).normal(size=(40, 3)))),
        "damaged or not",
    ),
    "encrypted.npz": Bad(lambda: patched(npz(x=ROWS), 6, 8, b"\x01\x00"), "encrypted"),
    "method.npz": Bad(lambda: patched(npz(x=ROWS), 8, 10, b"\x63\x00"), "method 99"),
    "bzip2.npz": Bad(lambda: archive(npy(ROWS), zipfile.ZIP_BZIP2), "method 12"),
    "lying.npz": Bad(lambda: claiming(2 * 10**12), "claims"),
    "huge.npz": Bad(lambda: archive(header("(1, 250000000000)")), "claims"),
    "huge.npy": Bad(lambda: header("(1000000, 1000000)"), "claims"),
    "negative.npy": Bad(lambda: header("(-1, 3)"), "claims"),
    "endless.npy": Bad(lambda: header("(" + "9" * 400 + ",)"), "claims"),
    "nested.npy": Bad(lambda: header("(" * 300 + ")" * 300), "damaged or not"),
    "dtype.npy": Bad(lambda: header("(2, 5)", "'<q99'"), "damaged or not"),
    "future.npy": Bad(lambda: b"\x93NUMPY\x09\x00" + npy(ROWS)[8:], "damaged or not"),
    "no-header.npy": Bad(lambda: b"\x93NUMPY\x01\x00\xff\xff", "damaged or not"),
    "objects.npy": Bad(lambda: npy(np.array([[{}]]), allow_pickle=True), "never unpickled"),
    "objects.npz": Bad(
        lambda: archive(npy(np.array([[{}]]), allow_pickle=True)), "never unpickled"
    ),
    "fields.npy": Bad(lambda: npy(np.zeros(4, "f8,i4")), "plain array"),
    "fields.npz": Bad(lambda: npz(x=np.zeros(4, "f8,i4")), "plain array"),
    "none.npz": Bad(lambda: npz(), "holds none"),
    "several.npz": Bad(lambda: npz(a=ROWS, b=ROWS), "array must be given"),
    "raw-member.npz": Bad(lambda: archive(b"not an array"), "damaged or not"),
    "scalar.npy": Bad(lambda: npy(np.array(3.0)), "shape"),
    "vector.npy": Bad(lambda: npy(np.arange(40.0)), "shape"),
    "no-rows.npy": Bad(lambda: npy(np.zeros((0, 3))), "shape"),
    "no-columns.npy": Bad(lambda: npy(np.zeros((40, 0))), "shape"),
    "complex.npy": Bad(lambda: npy(ROWS + 1j), "real numbers"),
    "dates.npy": Bad(lambda: npy(ROWS.astype("M8[s]")), "real numbers"),
    "durations.npy": Bad(lambda: npy(ROWS.astype("m8[s]")), "real numbers"),
    "words.npy": Bad(lambda: npy(ROWS.astype(str)), "real numbers"),
    "nan.npy": Bad(lambda: npy(np.where(ROWS == 7, np.nan, ROWS)), "finite"),
    "inf.npz": Bad(lambda: npz(x=np.where(ROWS == 7, np.inf, ROWS)), "finite"),
    "latin1.csv": Bad(lambda: "größe,b\n1,2\n".encode("latin-1"), "utf-8"),
    "nul.csv": Bad(lambda: b"a,b\n1,\x002\n3,4\n", ""),
    "long-cell.csv": Bad(lambda: b"a,b\n1," + b"9" * 200_000 + b"\n", "field larger"),
    "ragged.csv": Bad(lambda: b"a,b\n1,2\n3\n", "line 3 has 1 cells"),
    "words.csv": Bad(lambda: b"a,b\n1,x\n2,y\n", "must hold numbers, but line 2 has 'x'"),
    "comma.csv": Bad(lambda: b"a;b\n1;2\n3;1,5\n", "line 3 has '1,5', with a decimal comma"),
    "shuffled.csv": Bad(lambda: b",a,b\n1,1,2\n0,3,4\n2,5,6\n", "must be in order of time"),
    "unnamed-words.csv": Bad(lambda: b",a,b\nx,1,2\ny,3,4\n", "index 'index' of"),
    "empty.h5": Bad(lambda: b"", ""),
    "text.hdf5": Bad(lambda: b"no such thing", ""),
    "folder.h5": Bad(None, "must be a file, not a folder"),
    "folder.zarr": Bad(None, ""),
    "file.zarr": Bad(lambda: b"no such thing", "must be a folder"),
    "dates.csv": Bad(
        lambda: b"a,day\n1,2020-01-01\n2,2020-01-02\n", "line 2 has the date '2020-01-01'"
    ),
    "blank.csv": Bad(lambda: b"a,b\n1,2\n3,\n", "column 'b' of"),
    "nan.csv": Bad(lambda: b"a,b\n1,2\n3,nan\n", "finite"),
    "names-alone.csv": Bad(lambda: b"a,b\n", "shape"),
    "twice.csv": Bad(lambda: b"a,a\n1,2\n", "different names"),
    "line-ends.csv": Bad(lambda: b"\r\n\r\n\n", "is empty"),
}


def write(folder: Path, name: str) -> Path:
    """Make a bad file (or folder) in a folder."""
    path, content = folder / name, BAD[name].content
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content())
    return path
