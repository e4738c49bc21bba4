"""The verdict that follows from the findings, and what to try first.

Why codes can vouch for themselves: if factors are uniform and positives vary alike around all of them,
and the codes are uniform and their positives vary alike as well, then the map from factors to codes
keeps volumes and steps the same everywhere, so it is affine, whatever model it came from. Where the codes are
not uniform, either the factors are not (and the map may be affine all the same), or their steps
change from place to place (and it is bent), or there are more factors than columns (and it is no
map at all): the data do not tell, so neither does the verdict.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from identica.diagnosis import findings as checks
from identica.diagnosis.axes import Axes, fixes_axes
from identica.diagnosis.conditional import Positives
from identica.diagnosis.dimension import Dimensions
from identica.diagnosis.findings import LEVELS, Finding
from identica.diagnosis.marginal import Marginal
from identica.diagnosis.sequence import Rows
from identica.families import Family
from identica.spaces import Space

if TYPE_CHECKING:
    from identica.diagnosis.diagnosis import Restarts, Score
    from identica.diagnosis.truth import Truth

PERMUTATION = "recovered up to permutation and scale"
LINEAR = "recovered up to a linear map"
UNSURE = "uncertain"
DISTRUST = "do not trust"

# First things first: what comes earlier may be the cause of what comes later.
FIRST = (
    *("score", "memory", "rows", "restarts", "codes", "dimension", "missed", "space", "bend"),
    *("truth", "conditional", "anisotropy", "noise", "marginal", "axes"),
)
# What true factors of all codes say nothing about: whether pairs are related, and what holds for new ones.
OPEN = ("score", "memory", "missed", "truth")


def verdict(findings: list[Finding], *, known: bool = False) -> str:
    """One of four, never better than the gravest finding.

    Args:
        known: whether the true factors of all codes are known, so that they decide about axes.
    """
    levels = {finding.level for finding in findings}
    if "wrong" in levels:
        return DISTRUST
    if "unsure" in levels:
        return UNSURE
    decide = ("truth",) if known else ("axes", "truth")
    fine = all(finding.level == "fine" for finding in findings if finding.check in decide)
    return PERMUTATION if fine else LINEAR


def reason(findings: list[Finding]) -> str:
    """Why a verdict is no better: the first sentence of what the first of the gravest findings means."""
    sentence = findings[0].means.split(". ")[0].rstrip(".")
    return sentence[0].lower() + sentence[1:]


def find(
    *,
    space: Space,
    filled: Space,
    conditional: Family,
    learn_precision: bool,
    score: Score,
    restarts: Restarts,
    axes: dict[str, Axes],
    dimensions: Dimensions,
    positives: Positives,
    marginal: Marginal,
    rows: Rows,
    truth: Truth | None,
    pairs: int,
) -> list[Finding]:
    """All findings, the gravest first; only the first of them gives advice.

    Args:
        space, conditional: what the model assumes.
        filled: the space that the codes fill, a sphere where they cover an ellipsoid.
    """
    evenly = checks.marginal(marginal, dimensions, filled, rows)
    fixed = fixes_axes(filled, conditional, learn_precision, uniform=evenly.level == "fine")
    found = [
        checks.score(score),
        *checks.memory(score),
        *checks.rows(rows, pairs),
        *checks.noise(rows),
        checks.restarts(restarts),
        checks.axes(restarts, axes, fixed, filled),
        *checks.codes(dimensions),
        *checks.directions(space, filled),
        checks.surface(dimensions, filled, rows),
        *checks.missed(dimensions, rows),
        checks.bend(positives, filled, rows),
        checks.conditional(positives, conditional, rows),
        checks.anisotropy(positives, learn_precision),
        evenly,
        *checks.truth(truth, len(dimensions.varies)),
    ]
    if truth is not None and known(truth, dimensions):
        found = _settled(found)
    # nothing that is there was missed because of overfitting, if nothing is there
    first = FIRST if score.related is False else ("memory", *FIRST)
    found.sort(key=lambda f: (LEVELS.index(f.level), first.index(f.check)))
    return [found[0], *(replace(finding, advice="") for finding in found[1:])]


def known(truth: Truth | None, dimensions: Dimensions) -> bool:
    """Whether there are true factors for all codes."""
    return truth is not None and len(truth.r2) >= len(dimensions.varies)


def _settled(findings: list[Finding]) -> list[Finding]:
    """What only made one suspect that factors are lost is no more than a caution if none is."""
    if any(finding.check == "truth" and finding.level == "wrong" for finding in findings):
        return findings
    return [
        replace(
            finding,
            level="caution",
            means=f"{finding.means} The true factors show otherwise.",
        )
        if finding.level in ("wrong", "unsure") and finding.check not in OPEN
        else finding
        for finding in findings
    ]
