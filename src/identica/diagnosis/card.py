"""The HTML card that shows a diagnosis in a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING

from identica import _html
from identica.diagnosis.verdict import DISTRUST, LINEAR, PERMUTATION, UNSURE, Finding

if TYPE_CHECKING:
    from identica.diagnosis.diagnosis import Diagnosis

MEANING = {
    PERMUTATION: "Each code is one factor, up to order, sign and scale.",
    LINEAR: "All factors are in the codes, but mixed: each is a linear map of all codes, not a single one.",
    UNSURE: "Nothing shows that the codes are wrong, but an assumption behind them is in doubt.",
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
    """Show the verdict with its most serious finding; the others are collapsed."""
    first, *others = diagnosis.findings
    said, _, why = diagnosis.headline.partition(". ")
    said = (said[0].upper() + said[1:]).rstrip(".")
    about = (
        f"{diagnosis.conditional} on {diagnosis.space}, {diagnosis.pairs:,} held-out pairs, "
        f"{len(diagnosis.restarts.linear)} fits"
    )
    return _html.card(
        said,
        _html.tag("div", f"{MEANING[diagnosis.verdict]} {why}".strip()),
        _html.tag("div", about, style="opacity:.75;font-size:.9em"),
        _html.items([_finding(first)]),
        _html.details(f"{len(others)} more findings", _html.items(map(_finding, others))),
        colour=_html.WARN if said.endswith("caution") else COLOURS[diagnosis.verdict],
    )


def _finding(found: Finding) -> _html.Markup:
    level = _html.tag("b", found.level, style=f"color:{LEVELS[found.level]}")
    advice = _html.tag("div", "Try: ", found.advice) if found.advice else _html.Markup()
    name = _html.tag("b", found.check)
    parts = [level, " ", name, f": {found.seen} {found.means}", advice]
    return _html.Markup("".join(map(_html.text, parts)))
