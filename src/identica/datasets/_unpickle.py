"""Reads pickles of NumPy arrays and plain containers, and runs nothing that a pickle names.

Python's own unpickler is not used: it calls whatever a pickle names, allocates what a pickle claims to
hold, and takes forever to hash tuples that share their parts.
"""

from __future__ import annotations

import mmap
import pickletools
import re
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, cast

import numpy as np

from identica.datasets.reading import reading, reason
from identica.errors import InputError


class _Dtype:
    """`numpy.dtype(code, …)`, followed by its state (version, byte order, …)."""

    def __init__(self, code: str, *flags: bool) -> None:
        if not re.fullmatch(r"b1|[iu][1248]|f[248]|O8?", code):
            raise ValueError(f"an array of type {code[:20]!r}")
        self.dtype = np.dtype(code)

    def set_state(self, state: Any) -> None:
        self.dtype = self.dtype.newbyteorder(state[1] if state[1] in ("<", ">") else "=")


class _Array:
    """`_reconstruct(ndarray, …)` followed by its state (version, shape, dtype, Fortran, data).

    NumPy's own `__setstate__` trusts its input, so it never gets to see any.
    """

    def __init__(self, *ignored: object) -> None:
        self.state: Any = None

    def set_state(self, state: Any) -> None:
        self.state = state

    def value(self) -> Any:
        """The array, or for an array of objects the list of them."""
        _, shape, dtype, fortran, data = self.state
        if dtype.dtype.hasobject:
            if not isinstance(data, list):
                raise ValueError("an array of objects without a list of them")
            return data
        if max(shape, default=0) > len(data):  # also of an array without elements
            raise ValueError("an array larger than its data")
        flat = np.frombuffer(data, dtype.dtype)
        return flat.reshape(shape, order="F" if fortran else "C")


def _from_buffer(data: Any, dtype: _Dtype, shape: Any, order: str) -> _Array:
    """Pickle protocol 5: data, dtype, shape and order in one call."""
    array = _Array()
    array.set_state((0, shape, dtype, order == "F", data))
    return array


def _scalar(dtype: _Dtype, data: Any) -> _Array:
    return _from_buffer(data, dtype, (), "C")


def _encode(text: str, encoding: str) -> bytes:
    """Before protocol 3, bytes were written as text with a call that encodes them."""
    if encoding != "latin1":
        raise ValueError("bytes in another encoding than latin1")
    return text.encode("latin1")


_KNOWN: dict[tuple[str, str], Callable[..., Any] | None] = {
    ("numpy", "ndarray"): None,  # pickles pass it along, but need not call it
    ("numpy", "dtype"): _Dtype,
    ("_codecs", "encode"): _encode,
    **{
        (f"numpy.{core}.{module}", name): standin
        for core in ("core", "_core")
        for module, name, standin in (
            ("multiarray", "_reconstruct", _Array),
            ("multiarray", "scalar", _scalar),
            ("numeric", "_frombuffer", _from_buffer),
        )
    },
}

_CONSTANTS: dict[str, Any] = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_EMPTY: dict[str, type] = {"EMPTY_LIST": list, "EMPTY_DICT": dict, "EMPTY_TUPLE": tuple}
_VALUES = re.compile(
    r"(BIN)?INT[12]?|LONG[14]?|(BIN)?FLOAT|(SHORT_)?(BIN)?(STRING|UNICODE|BYTES)8?|BYTEARRAY8"
)
_MARK = object()


def _run(file: IO[bytes]) -> Any:
    """What the instructions of a pickle leave on its stack; `pickletools` checks that each is whole."""
    stack: list[Any] = []
    memo: dict[int | None, Any] = {}

    def above_mark() -> list[Any]:
        items = []
        while (item := stack.pop()) is not _MARK:
            items.append(item)
        return items[::-1]

    def fill(items: list[Any]) -> None:
        """Put keys and values, in turn, into the dict on top."""
        for key in items[::2]:
            if not isinstance(key, str | bytes | int):  # others may take forever to hash
                raise ValueError(f"a {type(key).__name__} as a key")
        stack[-1].update(zip(items[::2], items[1::2], strict=True))

    for opcode, argument, _ in pickletools.genops(file):
        name = opcode.name
        if name in ("PROTO", "FRAME"):
            pass
        elif name in _CONSTANTS:
            stack.append(_CONSTANTS[name])
        elif _VALUES.fullmatch(name):
            stack.append(argument)
        elif name in ("PUT", "BINPUT", "LONG_BINPUT"):
            memo[argument] = stack[-1]
        elif name == "MEMOIZE":
            memo[len(memo)] = stack[-1]
        elif name in ("GET", "BINGET", "LONG_BINGET"):
            stack.append(memo[argument])
        elif name == "MARK":
            stack.append(_MARK)
        elif name in _EMPTY:
            stack.append(_EMPTY[name]())
        elif name == "LIST":
            stack.append(above_mark())
        elif name == "TUPLE":
            stack.append(tuple(above_mark()))
        elif name in ("TUPLE1", "TUPLE2", "TUPLE3"):
            n = int(name[-1])
            stack[-n:] = [tuple(stack[-n:])]
        elif name == "DICT":
            items = above_mark()
            stack.append({})
            fill(items)
        elif name == "APPEND":
            item = stack.pop()
            stack[-1].append(item)
        elif name == "APPENDS":
            items = above_mark()
            stack[-1].extend(items)
        elif name == "SETITEM":
            items, stack[-2:] = stack[-2:], []
            fill(items)
        elif name == "SETITEMS":
            fill(above_mark())
        elif name in ("GLOBAL", "STACK_GLOBAL"):
            module, called = argument.split(" ") if argument else (stack.pop(-2), stack.pop())
            if not (isinstance(module, str) and isinstance(called, str)):
                raise ValueError("a call of something without a name")
            if (module, called) not in _KNOWN:
                raise ValueError(f"a call of {module}.{called}")
            stack.append(_KNOWN[module, called])
        elif name == "REDUCE":
            arguments = stack.pop()
            stack.append(stack.pop()(*arguments))  # nothing but what is known can be called
        elif name == "BUILD":
            state = stack.pop()
            stack[-1].set_state(state)
        elif name == "STOP":
            return stack.pop()
        else:
            raise ValueError(f"the instruction {name}")
    raise ValueError("no end")


class _Plain:
    """Replaces stand-ins by the arrays they stand for.

    What a pickle refers to many times is copied as many times, so the sum is limited to the size of
    the file: without such references it cannot hold more.
    """

    def __init__(self, size: int) -> None:
        self.left = size

    def __call__(self, item: Any) -> Any:
        if isinstance(item, _Array):
            item = item.value()
        self.left -= 1 + (item.nbytes if isinstance(item, np.ndarray) else 0)
        if self.left < 0:
            raise ValueError("more references to the same content than its size allows")
        if isinstance(item, dict):
            return {key: self(value) for key, value in item.items()}
        if isinstance(item, list | tuple):
            return [self(value) for value in item]
        if item is None or isinstance(item, bool | int | float | str | bytes | np.ndarray):
            return item
        raise ValueError(f"a {type(item).__name__}")


def load(path: str | Path) -> Any:
    """The content of a pickle made of NumPy arrays, dicts, lists, tuples, numbers and text.

    Tuples and arrays of objects become lists. Anything else, and a pickle that calls anything,
    raises `InputError` before it is called.
    """
    with reading(path, "a pickle") as file:
        try:
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                return _Plain(len(content))(_run(cast(IO[bytes], content)))
        except Exception as error:  # a damaged pickle may raise anything at all
            raise InputError(
                f"{path} must be a whole pickle of NumPy arrays and plain containers, nothing else; "
                f"found: {reason(error)}"
            ) from None
