"""Reads pickles of NumPy arrays and plain containers, and runs nothing that a pickle names."""

from __future__ import annotations

import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np

from identica._check import InputError


class _Standin:
    """Holds what the pickle says about an object; the object itself is made afterwards, by us.

    NumPy's own `__setstate__` trusts its input, so it never gets to see any.
    """

    def __setstate__(self, state: object) -> None:
        raise pickle.UnpicklingError("unexpected state")


class _Class(_Standin):
    """`numpy.ndarray`, which pickles pass along but need not call."""

    def __init__(self) -> None:
        raise pickle.UnpicklingError("numpy.ndarray called")


class _Dtype(_Standin):
    def __init__(self, code: str, *flags: bool) -> None:
        if not re.fullmatch(r"b1|[iu][1248]|f[248]|O8?", code):
            raise pickle.UnpicklingError(f"an array of type {code!r}")
        self.code, self.order = code, "="

    def __setstate__(self, state: Any) -> None:
        self.order = {"<": "<", ">": ">"}.get(state[1], "=")

    @property
    def boxed(self) -> bool:
        return self.code.startswith("O")

    def dtype(self) -> np.dtype[Any]:
        return np.dtype(self.order + self.code)


class _Array(_Standin):
    """`_reconstruct(ndarray, …)` followed by its state (version, shape, dtype, Fortran, data)."""

    def __init__(self, *ignored: object) -> None:
        self.state: Any = None

    def __setstate__(self, state: Any) -> None:
        self.state = state

    def value(self) -> Any:
        _, shape, dtype, fortran, data = self.state
        if dtype.boxed:
            if not isinstance(data, list):
                raise pickle.UnpicklingError("an array of objects without a list of them")
            return _plain(data)
        flat = np.frombuffer(data, dtype.dtype())
        return flat.reshape(shape, order="F" if fortran else "C")


class _FromBuffer(_Array):
    """Pickle protocol 5: data, dtype, shape and order in one call."""

    def __init__(self, data: Any, dtype: _Dtype, shape: Any, order: str) -> None:
        self.state = (0, shape, dtype, order == "F", data)


class _Scalar(_Array):
    def __init__(self, dtype: _Dtype, data: Any) -> None:
        self.state = (0, (), dtype, False, data)


class _Bytes(bytes):
    """Before protocol 3, bytes were written as text with a call that encodes them."""

    def __new__(cls, text: str, encoding: str) -> _Bytes:
        if encoding != "latin1":
            raise pickle.UnpicklingError(f"bytes encoded as {encoding!r}")
        return super().__new__(cls, text.encode("latin1"))

    __setstate__ = _Standin.__setstate__


_KNOWN: dict[tuple[str, str], type] = {
    ("numpy", "ndarray"): _Class,
    ("numpy", "dtype"): _Dtype,
    ("_codecs", "encode"): _Bytes,
    **{
        (f"numpy.{core}.{module}", name): standin
        for core in ("core", "_core")
        for module, name, standin in (
            ("multiarray", "_reconstruct", _Array),
            ("multiarray", "scalar", _Scalar),
            ("numeric", "_frombuffer", _FromBuffer),
        )
    },
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> type:
        if (module, name) in _KNOWN:
            return _KNOWN[module, name]
        raise pickle.UnpicklingError(f"{module}.{name} called")


def _plain(item: Any) -> Any:
    """`item` with every stand-in replaced by the array it stands for."""
    if isinstance(item, dict):
        return {_plain(key): _plain(value) for key, value in item.items()}
    if isinstance(item, list | tuple):
        return [_plain(value) for value in item]
    if isinstance(item, _Array):
        return item.value()
    if item is None or isinstance(item, bool | int | float | str | bytes):
        return item
    raise pickle.UnpicklingError(f"a {type(item).__name__}")


def load(path: str | Path) -> Any:
    """The content of a pickle made of NumPy arrays, dicts, lists, tuples, numbers and text.

    Tuples and arrays of objects become lists. Anything else, and a pickle that calls anything,
    raises `InputError` before it is called.
    """
    try:
        with open(path, "rb") as file:
            return _plain(_Unpickler(file).load())
    except FileNotFoundError:
        raise InputError(f"{path} does not exist") from None
    except Exception as error:  # a damaged pickle may raise anything at all
        raise InputError(
            f"{path} must be a whole pickle of NumPy arrays and plain containers, nothing else; "
            f"found: {error or type(error).__name__}"
        ) from None
