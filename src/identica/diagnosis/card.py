"""A diagnosis in a notebook: the verdict, and what it rests on behind a click."""

from __future__ import annotations

from typing import TYPE_CHECKING

from identica import _html
from identica.diagnosis.verdict import DISTRUST, LINEAR, PERMUTATION, UNSURE, Finding

if TYPE_CHECKING:
    from identica.diagnosis.diagnosis import Diagnosis

MEANING = {
    PERMUTATION: "Each code is one factor, up to order, sign and scale.",
    LINEAR: "All factors are in the codes, but as a mixture: a linear map of the codes, not a code.",
    UNSURE: "Nothing shows that the codes are wrong, but an assumption fails that would make them right.",
    DISTRUST: "The codes are not the factors, or nothing shows that they are.",
}
COLOURS = {
    PERMUTATION: _html.GOOD,
    LINEAR: _html.GOOD,
    UNSURE: _html.WARN,
    DISTRUST: _html.BAD,
}
LEVELS = {"fine": _html.GOOD, "caution": _html.WARN, "unsure": _html.WARN, "wrong": _html.BAD}


def card(diagnosis: Diagnosis) -> str:
    """The verdict with its gravest finding; the others are behind a click."""
    first, *others = diagnosis.findings
    said = diagnosis.verdict[0].upper() + diagnosis.verdict[1:]
    about = (
        f"{diagnosis.conditional} on {diagnosis.space}, {diagnosis.pairs:,} held-out pairs, "
        f"{len(diagnosis.restarts.linear)} fits"
    )
    return _html.card(
        said,
        _html.tag("div", MEANING[diagnosis.verdict]),
        _html.tag("div", about, style="opacity:.75;font-size:.9em"),
        _html.items([_finding(first)]),
        _html.details(f"{len(others)} more findings", _html.items(map(_finding, others))),
        colour=COLOURS[diagnosis.verdict],
    )


def _finding(found: Finding) -> _html.Markup:
    level = _html.tag("b", found.level, style=f"color:{LEVELS[found.level]}")
    advice = _html.tag("div", "Try: ", found.advice) if found.advice else _html.Markup()
    name = _html.tag("b", found.check)
    parts = [level, " ", name, f": {found.seen} {found.means}", advice]
    return _html.Markup("".join(map(_html.text, parts)))
