"""Prepare docstrings for the reference: doctests become code blocks, formulas are drawn, and grouped names
stay together."""

from __future__ import annotations

import re
from typing import Any

import griffe

DOCTEST = re.compile(r"^>>> .*?(?=\n\n|\Z)", re.MULTILINE | re.DOTALL)
GROUPED = re.compile(r"^    \w+(?:, \w+)+:(?=\s)", re.MULTILINE)
# an indented paragraph of its own, before the first section, with a sign that no program or file has
FORMULA = re.compile(r"(?<=\n\n)((?:    \S.*(?:\n|\Z))+)(?=\n|\Z)")
SIGNS = re.compile(r"[Στλκ‖∝δ]|\be\^|\bMCC =|argmin_|E\[")


class Docstrings(griffe.Extension):
    """Fences every doctest and formula, and keeps the parser from reading `a, b: text` as `a` of type `b`."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring:
            text = DOCTEST.sub(r"```pycon\n\g<0>\n```", obj.docstring.value)
            text = FORMULA.sub(formula, text)
            obj.docstring.value = GROUPED.sub(lambda names: names[0].replace(", ", ",\u00a0"), text)


def formula(found: re.Match[str]) -> str:
    if not SIGNS.search(found[0]):
        return found[0]
    lines = [line.strip() for line in found[0].splitlines()]
    return "\n".join(["```math", *lines, "```", ""])
