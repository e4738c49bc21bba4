"""Prepare docstrings for the reference: doctests become code blocks, and grouped names stay together."""

from __future__ import annotations

import re
from typing import Any

import griffe

DOCTEST = re.compile(r"^>>> .*?(?=\n\n|\Z)", re.MULTILINE | re.DOTALL)
GROUPED = re.compile(r"^    \w+(?:, \w+)+:(?=\s)", re.MULTILINE)


class Docstrings(griffe.Extension):
    """Fences every doctest, and keeps the parser from reading `a, b: text` as `a` of type `b`."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring:
            text = DOCTEST.sub(r"```pycon\n\g<0>\n```", obj.docstring.value)
            obj.docstring.value = GROUPED.sub(lambda names: names[0].replace(", ", ",\u00a0"), text)
