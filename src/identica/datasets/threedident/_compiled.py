"""The two decorators that every kernel of the ray caster goes through.

numba renews what it kept on disk when the file of a function changes, not when one of the functions
copied into it does: after a change here, delete this folder's ``__pycache__``.
"""

from __future__ import annotations

from identica._compiled import compiler

# Fast arithmetic, but infinities and NaN keep their meaning: "no hit", "no triangle".
LIBERTIES = ("nsz", "arcp", "contract", "afn", "reassoc")

compiled = compiler(*LIBERTIES)
inlined = compiler(*LIBERTIES, forceinline=True)  # for what is called often
