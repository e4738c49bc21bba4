"""The two decorators that every kernel of the ray caster goes through.

numba renews what it kept on disk when the file of a function changes, not when one of the functions
copied into it does: after a change here, delete this folder's ``__pycache__``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS: dict[str, Any] = {
    "nogil": True,  # images are drawn by ordinary threads
    "error_model": "numpy",
    # Fast arithmetic, but infinities and NaN keep their meaning: "no hit", "no triangle".
    "fastmath": {"nsz", "arcp", "contract", "afn", "reassoc"},
}


def compiled(function: F, **options: Any) -> F:
    """Compile to machine code that runs without the interpreter lock, and keep it on disk."""
    try:
        return cast(F, numba.njit(cache=True, **_OPTIONS, **options)(function))
    except RuntimeError:  # nowhere to write
        return cast(F, numba.njit(**_OPTIONS, **options)(function))


def inlined(function: F) -> F:
    """The same for what is called often: callers get a copy of it instead of a call."""
    return compiled(function, forceinline=True)
