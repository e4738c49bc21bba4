"""Compiled functions: numba with the options that all kernels share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., Any])


def compiler(*liberties: str, **options: Any) -> Callable[[F], F]:
    """A decorator that compiles to machine code without the interpreter lock, kept on disk where possible.

    Args:
        liberties: what arithmetic may do for speed, as in numba's `fastmath`.
        options: others of `numba.njit`; with `forceinline=True` callers get a copy instead of a call.
    """
    options |= {"nogil": True, "error_model": "numpy", "fastmath": set(liberties)}

    def compiled(function: F) -> F:
        try:
            return cast(F, numba.njit(cache=True, **options)(function))
        except RuntimeError:  # nowhere to write
            return cast(F, numba.njit(**options)(function))

    return compiled
