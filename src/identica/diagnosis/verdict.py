"""Interpretation of the measurements as findings, and the resulting verdict.

Why codes alone are informative: if factors are uniform and positives vary alike around all of them, and
the same holds for the codes, then the map from factors to codes preserves volumes and step sizes
everywhere, so it is affine, whatever the model. If the codes are not uniform, there are three possible
explanations: the factors are not uniform either (and the map may still be affine), steps depend on
position (and the map is curved), or there are more factors than columns (and there is no map). The
data cannot distinguish these cases, so the verdict is "uncertain".
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from identica.diagnosis.conditional import Positives, nearest_family
from identica.diagnosis.dimension import SHARED, Dimensions
from identica.diagnosis.marginal import Axes, Marginal
from identica.diagnosis.sequence import Rows
from identica.families import Family, Joint
from identica.spaces import Box, Space, Sphere

if TYPE_CHECKING:
    from identica.diagnosis.codes import Score
    from identica.diagnosis.truth import Truth

PERMUTATION = "recovered up to permutation and scale"
LINEAR = "recovered up to a linear map"
UNSURE = "uncertain"
DISTRUST = "do not trust"

AVERAGE = "a window (the mean of neighbouring rows), so that noise averages out."
LEVELS = ("wrong", "unsure", "caution", "fine")

# Thresholds, tuned on the processes of validation/diagnosis.py that are not held out.
ENOUGH = 0.95  # R² or correlation above which factors count as recovered
NOTHING = 0.05  # bits that count as no evidence
FORGOTTEN = 0.5  # held-out relative to training score, below which pairs were memorised
FADED = 0.8  # … below which some were
SAME_AXES = 0.95  # MCC between restarts, and with independent components
# standard deviation of the log spread over positions: wrong, unsure. In one dimension, σ implies
# R² = 1 − σ²/5 at worst (if the spread grows steadily from one end to the other).
BENT = 0.4, 0.2
FLAT = 0.9  # fraction of the possible dimension, below which codes lie on a surface
OWN = 0.25, 0.45  # share of a code not predicted by others: wrong; unsure, or wrong on a surface
MISSED = 0.15  # share of variance
UNEVEN = 1.5  # ratio of spreads
MISFIT = 0.05  # Kolmogorov–Smirnov distance, if no shape is fitted
OTHER_SHAPE = 2**0.5  # ratio of shapes
# allowance for sampling error over √(independent rows): for pairs, and for sequences, in which most
# codes vary faster than the slowest one, which determines the number of independent rows
CHANCE = 1.5, 1.0
NOT_UNIFORM = 0.04  # Kolmogorov–Smirnov distance, in addition to sampling error and noise
VAGUE = 0.2  # sampling error of that distance above which nearly any density passes: 25 rows of a sequence


@dataclass(frozen=True)
class Restarts:
    """Agreement of the codes of models from different starts, m×m: up to a linear map (R²), and up to
    permutation and scale (MCC). The noise of the codes limits R² to `ceiling`."""

    linear: NDArray[np.float64]
    permutation: NDArray[np.float64]
    ceiling: float = 1.0

    @property
    def mean_linear(self) -> float:
        return float(self.linear[np.triu_indices(len(self.linear), 1)].mean())

    @property
    def mean_permutation(self) -> float:
        return float(self.permutation[np.triu_indices(len(self.linear), 1)].mean())


@dataclass(frozen=True)
class Finding:
    """The result of one check.

    Attributes:
        check: its name.
        level: "fine", "caution" (an assumption is violated or untested, or the axes are unknown),
            "unsure" (recovery is in doubt) or "wrong" (the factors are not recovered).
        seen, means, advice: the observation, its interpretation, and what to try (empty if fine).
    """

    check: str
    level: str
    seen: str
    means: str
    advice: str = ""

    @property
    def reason(self) -> str:
        """The first sentence of the interpretation."""
        return self.means.split(". ")[0].rstrip(".") + "."

    def __str__(self) -> str:
        advice = f" Try: {self.advice}" if self.advice else ""
        return f"  [{self.level}] {self.check}: {self.seen} {self.means}{advice}"


def verdict(findings: list[Finding], *, known: bool = False) -> str:
    """The overall verdict, determined by the most serious finding.

    Args:
        known: whether the true factors of all codes are known, so that they settle the axes.
    """
    levels = {finding.level for finding in findings}
    if "wrong" in levels:
        return DISTRUST
    if "unsure" in levels:
        return UNSURE
    decide = ("truth",) if known else ("axes", "truth")
    fine = all(finding.level == "fine" for finding in findings if finding.check in decide)
    return PERMUTATION if fine else LINEAR


# --- checks -----------------------------------------------------------------------------------------


def score(score: Score) -> Finding:
    seen = (
        f"Held-out pairs score {round(score.bits, 2) + 0.0:.2f} ± {score.error:.2f} bits above chance, "
        f"shuffled pairs {round(score.control, 2) + 0.0:.2f}."  # no minus before a zero
    )
    least = max(NOTHING, score.control + 3 * (score.error + score.control_error))
    if score.bits > least:
        return Finding("score", "fine", seen, "The codes capture something that pairs share.")
    if score.related:
        means = "The model cannot tell held-out pairs from random ones, but their observations are related."
        return Finding("score", "wrong", seen, means, "more steps, another space or conditional.")
    means = "Nothing can be predicted: the pairs are unrelated (shuffled?), or nothing was learnt."
    advice = "check what is paired with what (X_pos, lag, groups); more steps or pairs."
    return Finding("score", "wrong", seen, means, advice)


def memory(score: Score) -> Iterator[Finding]:
    if score.seen is None or score.seen < NOTHING:
        return
    seen = f"Training pairs score {score.seen:.2f} bits, held-out pairs {score.bits:.2f}."
    left = score.bits / score.seen
    if left >= FADED:
        yield Finding("memory", "fine", seen, "The model generalises to new pairs.")
        return
    level, what = (
        ("wrong", "The training pairs were") if left < FORGOTTEN else ("unsure", "Some pairs were")
    )
    advice = "more pairs, fewer steps, or a smaller network."
    yield Finding("memory", level, seen, f"{what} memorised (overfitting).", advice)


def rows(rows: Rows, pairs: int) -> Iterator[Finding]:
    if not rows.apart:
        return
    noise, codes = float(np.median(rows.noise_in_pairs)), len(rows.noise)
    seen = (
        f"The {pairs} held-out rows are a sequence, worth about {rows.independent:.0f} independent rows; "
        f"measurement noise is {noise:.0%} of the variance within pairs."
    )
    if rows.few:
        means = f"Too few independent rows to judge {codes} codes."
        advice = "a longer recording, or one in which the factors change faster."
        yield Finding("rows", "unsure", seen, means, advice)
    elif rows.noisy:
        means = "Differences within pairs are noise as well as change."
        yield Finding("rows", "caution", seen, means, AVERAGE)
    else:
        yield Finding("rows", "fine", seen, f"They suffice for most checks of {codes} codes.")


def restarts(restarts: Restarts) -> Finding:
    number, agreement = len(restarts.linear), restarts.mean_linear
    seen = (
        f"{number} fits from different starts agree up to a linear map with R² = {agreement:.3f}."
    )
    if agreement < restarts.ceiling < 0.9995:  # else it reads 1.000
        seen = f"{seen[:-1]}; given their noise, at most {restarts.ceiling:.3f} is possible."
    agreement /= restarts.ceiling
    if agreement >= ENOUGH:
        return Finding("restarts", "fine", seen, "Each start finds the same codes.")
    advice = "more steps or pairs, another n_components, or another space or conditional."
    # if errors are independent, the R² of each with the truth is the root of their agreement
    if agreement >= ENOUGH**2:
        means = "Another start finds slightly different codes."
        return Finding("restarts", "unsure", seen, means, advice)
    means = "Another start finds other codes, so these are not the factors."
    return Finding("restarts", "wrong", seen, means, advice)


def axes(restarts: Restarts, axes: dict[str, Axes], fixed: bool, space: Space) -> Finding:
    agreement = restarts.mean_permutation
    seen = f"Code by code, the fits agree with MCC = {agreement:.3f}."
    mixed = "A code is a mixture of factors, so do not interpret single codes."
    if not fixed:
        where, first = "", 'space="box" or '
        if isinstance(space, Box):
            where, first = " in a box that is not filled", ""
        means = f"This model cannot tell the factors from a rotation of them{where}. {mixed}"
        advice = f'{first}conditional="laplace", if that is plausible.'
        return Finding("axes", "caution", seen, means, advice)
    if agreement < SAME_AXES * math.sqrt(restarts.ceiling):
        advice = "more steps; a conditional that fits the differences within pairs."
        return Finding("axes", "caution", seen, mixed, advice)
    sure = {name: found.same for name, found in axes.items() if found.sure >= SAME_AXES}
    others = {name: same for name, same in sure.items() if same < SAME_AXES}
    if others:
        name, same = min(others.items(), key=lambda item: item[1])
        seen += f" But the independent components of the {name} have other axes (MCC {same:.3f})."
        means = f"All fits may share a wrong rotation. {mixed}"
        advice = "a conditional that fits the differences within pairs."
        return Finding("axes", "caution", seen, means, advice)
    if not sure and axes:
        seen += " But independent components of codes and differences have no clear axes."
        means = f"The axes are not confirmed. {mixed}"
        advice = "another conditional, if one is plausible."
        return Finding("axes", "caution", seen, means, advice)
    return Finding("axes", "fine", seen, "Each code is one factor.")


def codes(dimensions: Dimensions) -> Iterator[Finding]:
    still = [k + 1 for k, varies in enumerate(dimensions.varies) if not varies]
    noise = [
        k + 1
        for k, correlation in enumerate(dimensions.correlations)
        if correlation < SHARED and dimensions.varies[k]
    ]
    for codes, what in ((still, "do not vary"), (noise, "are not shared within pairs")):
        if codes:
            seen = f"Codes {', '.join(map(str, codes))} {what}."
            means = "There are more codes than factors that were found."
            left = len(dimensions.varies) - len(codes)
            advice = f"n_components={left}, or learn_precision=True."
            yield Finding("codes", "wrong", seen, means, advice)


def directions(space: Space, filled: Space) -> Iterator[Finding]:
    if isinstance(filled, Sphere) and not isinstance(space, Sphere):
        seen = "The codes lie on an ellipsoid and cover it evenly."
        means = "The factors are directions, or behave like them."
        yield Finding("space", "caution", seen, means, 'space="sphere".')


def surface(dimensions: Dimensions, space: Space, rows: Rows) -> Finding:
    (dimension, error, room), own = dimensions.intrinsic, dimensions.own
    seen = f"The codes have an intrinsic dimension of {dimension:.1f} ± {error:.1f} out of {room}"
    seen += "." if own is None else f"; up to {1 - own:.0%} of a code is explained by the others."
    flat = dimension + 2 * error < FLAT * room
    redundant, doubtful = OWN
    if not flat and (own is None or own >= doubtful):
        return Finding("dimension", "fine", seen, "They fill their space.")
    wrong = (flat and own is None) or (own is not None and own < (doubtful if flat else redundant))
    level, may = ("wrong", "") if wrong and not rows.few else ("unsure", "may ")
    means = f"Codes {may}repeat each other along a bent surface."
    number = round(dimension) if flat else room - 1
    other = "" if isinstance(space, Sphere) else ', or space="sphere"'
    advice = f"n_components={max(1, number)}, or learn_precision=True{other}."
    return Finding("dimension", level, seen, means, advice)


def missed(dimensions: Dimensions, rows: Rows) -> Iterator[Finding]:
    if dimensions.missed is None:
        return
    seen = (
        f"Beyond their codes, the observations of a pair share at most {dimensions.missed:.0%} of the "
        "variance in any direction."
    )
    if dimensions.missed < MISSED and 2 * dimensions.missed_error < MISSED:
        yield Finding("missed", "fine", seen, "The codes miss nothing that pairs share.")
    elif dimensions.missed < MISSED:
        error = f"{dimensions.missed_error:.0%}"
        seen = (
            f"What the observations of a pair share beyond their codes is only known to ± {error}."
        )
        means = "A factor may be missing: the rows are too few, or too similar, to tell."
        yield Finding("missed", "unsure", seen, means, "a longer recording.")
    else:
        means = "A factor is missing from the codes."
        advice = "a larger n_components, learn_precision=True, or another space."
        yield Finding("missed", "unsure" if rows.few else "wrong", seen, means, advice)


def bend(positives: Positives, space: Space, rows: Rows) -> Finding:
    seen = f"The spread of positives varies by {positives.bend:.0%} (s.d.) across the space."
    wrong, some = BENT
    if positives.bend < some:
        return Finding("bend", "fine", seen, "The codes are not a bent image of the factors.")
    level = "wrong" if positives.bend >= wrong and not (rows.few or rows.noisy) else "unsure"
    which = "or their noise" if rows.noisy else "themselves"
    means = f"Codes are a bent image of the factors, unless these {which} vary more in some places."
    advice = 'space="unbounded".' if isinstance(space, Box) else "another space or conditional."
    return Finding("bend", level, seen, means, advice)


def conditional(positives: Positives, conditional: Family, rows: Rows) -> Finding:
    shapes = [fit.shape for fit in positives.codes if fit is not None]
    if positives.concentration is not None and not shapes:
        kappa, apart = positives.concentration, positives.misfit
        seen = f"Positives have concentration κ = {kappa:.3g}, and are {apart:.2f} from that distribution."
        if positives.misfit < MISFIT:
            return Finding("conditional", "fine", seen, "They follow the model's family.")
        means = "They do not follow a von Mises–Fisher distribution."
        return Finding("conditional", "caution", seen, means, "another space.")
    if isinstance(conditional, Joint):
        most = f"at most {positives.misfit:.2f} from the distributions of the parts"
        seen = f"Differences within pairs are {most} (Kolmogorov–Smirnov distance)."
        if positives.misfit < MISFIT:
            return Finding("conditional", "fine", seen, "They follow the model's families.")
        means = "A part has another family than assumed."
        return Finding("conditional", "caution", seen, means, "another family for that part.")
    if not shapes:
        seen = "All codes are close to a wall, so no distribution was fitted to the differences."
        means = "Whether the assumed conditional fits is not known."
        return Finding("conditional", "caution", seen, means, "pairs that are closer together.")
    typical, assumed = float(np.median(shapes)), conditional.p or 2.0
    seen = (
        f"Differences within pairs have shape β = {typical:.2f} ({min(shapes):.2f} to {max(shapes):.2f}), "
        f"the model assumes {assumed:g}; the distributions are {positives.misfit:.2f} apart."
    )
    if rows.noisy:
        means = (
            "Noise makes differences look normal, so the family of the conditional is not known."
        )
        return Finding("conditional", "caution", seen, means, AVERAGE)
    family = nearest_family(typical)
    known = [fit.shape_interval for fit in positives.codes if fit is not None]
    outside = sum(not low <= assumed <= high for low, high in known) > len(known) / 2
    ratio = max(typical / assumed, assumed / typical)
    if not outside or (family == nearest_family(assumed) and ratio < OTHER_SHAPE):
        return Finding("conditional", "fine", seen, "They follow the model's family.")
    if family == nearest_family(assumed):
        means = "Most differences are far smaller than the largest: pauses and jumps, or two kinds of pairs."
        advice = "a longer lag; check what is paired with what."
        return Finding("conditional", "caution", seen, means, advice)
    means = "The conditional has another family than assumed."
    return Finding("conditional", "caution", seen, means, f'conditional="{family}".')


def anisotropy(positives: Positives, learn_precision: bool) -> Finding:
    seen = f"Positives spread up to {positives.anisotropy:.2f} times as far along one code as along another."
    if positives.anisotropy < UNEVEN:
        return Finding(
            "anisotropy", "fine", seen, "All codes vary by similar amounts within pairs."
        )
    if learn_precision:
        return Finding(
            "anisotropy", "fine", seen, "The model has learnt a precision for each code."
        )
    means = "The model assumes that all factors vary equally, so those that vary more may be lost or bent."
    return Finding("anisotropy", "caution", seen, means, "learn_precision=True.")


def marginal(marginal: Marginal, dimensions: Dimensions, space: Space, rows: Rows) -> Finding:
    worst = float(marginal.uniform.max())
    seen = f"Codes are at most {worst:.2f} from uniform (Kolmogorov–Smirnov distance)."
    chance = CHANCE[rows.apart > 0] / math.sqrt(rows.independent)
    if worst < NOT_UNIFORM + marginal.blur + chance:
        if rows.few or chance > VAGUE:
            means = f"About {rows.independent:.0f} independent rows cannot show whether codes are uniform."
            level, more = ("unsure" if rows.few else "caution"), "a longer recording."
            return Finding("marginal", level, seen, means, more if rows.apart else "more pairs.")
        means = "They fill their space evenly, as the theory requires."
        if worst >= 2 * NOT_UNIFORM:
            means = "This is within what noise and the number of independent rows allow."
        return Finding("marginal", "fine", seen, means)
    means = (
        "The codes are not uniform, but the theory assumes uniform factors. If yours are not uniform, the "
        "codes are usually still a linear map of them; but if they change more in some places"
    )
    if dimensions.columns is not None and dimensions.columns <= dimensions.intrinsic.room:
        means += ", or there are more factors than columns"
    means += ", the codes look the same without being the factors."
    advice = "more steps, or another space"
    if isinstance(space, Box):
        advice = 'more steps; space="unbounded", if factors have no bounds'
    elif not isinstance(space, Sphere):
        advice = 'space="box" or space="sphere", if factors have bounds'
    return Finding("marginal", "unsure", seen, means, f'marginal="any"; {advice}.')


def truth(truth: Truth | None, codes: int) -> Iterator[Finding]:
    if truth is None:
        return
    number = len(truth.r2)
    which = "the true factors" if number >= codes else f"{number} of at least {codes} true factors"
    seen = f"With {which}: R² = {truth.mean_r2:.3f}, MCC = {truth.mcc:.3f}."
    if truth.mcc >= ENOUGH:
        yield Finding("truth", "fine", seen, "Each of them is one code.")
    elif truth.mean_r2 >= ENOUGH:
        yield Finding("truth", "caution", seen, "The codes are mixtures of the factors.")
    else:
        lost = [str(k + 1) for k, r2 in enumerate(truth.r2) if r2 < ENOUGH]
        means = f"Factors {', '.join(lost)} are not recovered."
        yield Finding("truth", "wrong", seen, means, "more steps or pairs, or another space.")
