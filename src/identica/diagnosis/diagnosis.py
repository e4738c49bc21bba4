"""The diagnosis: checks of held-out codes and of several fits, combined into findings and a verdict."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import combinations
from types import NoneType
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from identica._tensors import floats
from identica._validate import (
    as_array,
    as_matrix,
    finite,
    flag,
    instance,
    members,
    positive,
    same_rows,
    seed,
)
from identica.diagnosis import density
from identica.diagnosis import verdict as checks
from identica.diagnosis.codes import Codes, Score
from identica.diagnosis.conditional import Positives, positives
from identica.diagnosis.density import Density
from identica.diagnosis.dimension import Dimensions, dimensions, related
from identica.diagnosis.marginal import (
    Axes,
    Marginal,
    as_directions,
    axes,
    blur,
    fixes_axes,
    marginal,
)
from identica.diagnosis.sequence import Rows, order_of
from identica.diagnosis.truth import Truth
from identica.diagnosis.verdict import (
    DISTRUST,
    LEVELS,
    UNSURE,
    Finding,
    Restarts,
)
from identica.errors import InputError
from identica.families import Family
from identica.metrics import agreement
from identica.metrics.evidence import calibrate, log_likelihood
from identica.spaces import Box, Euclidean, Space, Sphere

Matrix = NDArray[np.float64]

FEWEST = 20  # pairs needed for a diagnosis
MOST_FITS = 100
MOST = 1e150  # size of codes, whose squares must be finite
SHOWN = 2000  # pairs kept for plots

# In order: a problem found by an earlier check may cause those found by later ones.
FIRST = (
    *("score", "memory", "rows", "restarts", "codes", "dimension", "missed", "space", "bend"),
    *("truth", "conditional", "anisotropy", "marginal", "axes"),
)
# Checks that true factors cannot overrule: whether pairs are related, and overfitting.
OPEN = ("score", "memory", "missed", "truth")


# --- input ------------------------------------------------------------------------------------------


def codes_from(
    h: Any,
    h_pos: Any,
    conditional: Family,
    *,
    scaled: tuple[Tensor, Tensor] | None = None,
    temperature: float | None = None,
    bias: Tensor | None = None,
    seen: float | None = None,
) -> Codes:
    """Make `Codes` from the codes of any model, computing the evidence of their pairs.

    Args:
        h, h_pos: codes of the members of each pair, N×n.
        conditional: the family that defines the similarity.
        scaled: codes to compute the similarity from, if other than h and h_pos.
        temperature: temperature of the similarity; by default the best one.
        bias: value of the potential for each positive, shape N.
        seen: mean evidence of training pairs, in bits.
    """
    anchors, others = _pair(h, h_pos)
    instance("conditional", conditional, Family, "a family")
    if scaled is None:
        scaled = torch.from_numpy(anchors).float(), torch.from_numpy(others).float()
    one, other = members("scaled", scaled, "two tensors", 2)
    for name, value, ndim in (("scaled", one, 2), ("scaled", other, 2), ("bias", bias, 1)):
        if value is None:
            continue
        if floats(name, value).ndim != ndim or len(value) != len(anchors):
            raise InputError(f"{name} must have {len(anchors)} rows, got {tuple(value.shape)}")
    seen = None if seen is None else finite("seen", seen)
    if temperature is None:
        temperature = calibrate(conditional, one, other, bias)
    temperature = positive("temperature", temperature)
    order = torch.randperm(len(other), generator=torch.Generator().manual_seed(0)).to(other.device)
    stranger, its_bias = other[order], None if bias is None else bias[order]
    bits, control = (
        log_likelihood(conditional, one, second, tau, b).cpu().double().numpy() / math.log(2)
        for second, tau, b in (
            (other, temperature, bias),
            (stranger, calibrate(conditional, one, stranger, its_bias), its_bias),
        )
    )
    return Codes(anchors, others, bits, control, seen)


def _pair(h: Any, h_pos: Any) -> tuple[Matrix, Matrix]:
    anchors, others = as_matrix("h", h), as_matrix("h_pos", h_pos)
    if anchors.shape != others.shape:
        raise InputError(f"h_pos must have the shape of h, {anchors.shape}, got {others.shape}")
    if max(np.abs(anchors).max(), np.abs(others).max()) > MOST:
        raise InputError(f"h and h_pos must be at most {MOST:g}")
    return anchors, others


def _checked(code: Any) -> Codes:
    instance("codes", code, Codes, "a list of codes, see codes_from")
    h, h_pos = _pair(code.h, code.h_pos)
    for name in ("bits", "control"):
        if as_matrix(name, values := getattr(code, name)).shape != (len(h), 1):
            raise InputError(f"{name} must be {len(h)} numbers, got {as_array(name, values).shape}")
    bits, control = (as_matrix("bits", part)[:, 0] for part in (code.bits, code.control))
    seen = None if code.seen is None else finite("seen", code.seen)
    return Codes(h, h_pos, bits, control, seen)


# --- results ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Diagnosis:
    """The result of `diagnose`.

    Attributes:
        verdict: "recovered up to permutation and scale", "recovered up to a linear map", "uncertain"
            or "do not trust".
        findings: the findings behind it, most serious first.
        space, conditional: assumptions of the model.
        score, restarts, axes, dimensions, positives, marginal, rows, truth: the measurements.
        codes: a sample of pairs of codes (h, h_pos), for plots.
    """

    verdict: str
    findings: list[Finding]
    space: Space
    conditional: Family
    pairs: int
    score: Score
    restarts: Restarts
    axes: dict[str, Axes]
    dimensions: Dimensions
    positives: Positives
    marginal: Marginal
    rows: Rows
    truth: Truth | None
    codes: tuple[Matrix, Matrix] = field(repr=False, compare=False)

    @property
    def headline(self) -> str:
        """The verdict, "with caution" where an assumption does not hold, and the first reason."""
        if self.verdict in (UNSURE, DISTRUST):
            return f"{self.verdict}. {self.findings[0].reason}"
        for finding in self.findings:  # the verdict itself says what is known of the axes
            if finding.level != "fine" and finding.check not in ("axes", "truth"):
                known = _knows_all_factors(self)  # the true factors have shown otherwise
                return (
                    f"{self.verdict}."
                    if known
                    else f"{self.verdict}, with caution. {finding.reason}"
                )
        return f"{self.verdict}."

    def __str__(self) -> str:
        return "\n".join([f"Verdict: {self.headline}", *(f"{f}" for f in self.findings)])

    def _repr_html_(self) -> str:
        from identica.diagnosis.card import card

        return card(self)

    def to_json(self) -> str:
        """Return all measurements and findings as JSON."""
        parts = ("score", "restarts", "dimensions", "positives", "marginal", "rows", "truth")
        numbers = {name: getattr(self, name) for name in parts}
        content: dict[str, Any] = {
            "verdict": self.verdict,
            "findings": [asdict(finding) for finding in self.findings],
            "space": repr(self.space),
            "conditional": repr(self.conditional),
            "pairs": self.pairs,
            **{name: None if part is None else asdict(part) for name, part in numbers.items()},
            "axes": {name: asdict(axes) for name, axes in self.axes.items()},
        }
        return json.dumps(content, indent=2, ensure_ascii=False, default=np.ndarray.tolist)


# --- measurements -----------------------------------------------------------------------------------


def diagnose(
    codes: Sequence[Codes],
    space: Space,
    conditional: Family,
    *,
    observations: tuple[Any, Any] | None = None,
    times: Any = None,
    learn_precision: bool = False,
    potential: bool = False,
    truth: Truth | None = None,
    random_state: int = 0,
) -> Diagnosis:
    """Diagnose the codes of several models for the same pairs; the first model is the one in question.

    Args:
        codes: codes of at least two models fitted from different starts, see `codes_from`.
        space, conditional: assumptions of the models.
        observations: x and x_pos of the pairs, N×d, if they are rows.
        times: time steps of the anchors and of their positives, N each, if pairs come from sequences; by
            default they are inferred from the codes if possible (see `order_of`).
        learn_precision: whether the models learnt a precision for each code.
        potential: whether they learnt a potential, so that factors need not be uniform.
        truth: comparison of the codes with true factors, if these are known; if there is one for every
            code, it overrules indirect findings.

    >>> from identica import Box, Laplace
    >>> z = Box(2).sample(2000, generator=0)
    >>> z_pos = Laplace(0.05).sample(Box(2), z, generator=1)
    >>> both = [codes_from(h, h_pos, Laplace(1.0)) for h, h_pos in [(z, z_pos), (-z, -z_pos)]]
    >>> diagnose(both, Box(2), Laplace(1.0)).verdict
    'recovered up to permutation and scale'
    """
    codes = [_checked(code) for code in members("codes", codes, "a list of codes")]
    if len(codes) < 2:
        raise InputError(f"codes must hold the codes of at least 2 models, got {len(codes)}")
    instance("space", space, Space, "a space such as Sphere(3)")
    instance("conditional", conditional, Family, "a family")
    instance("truth", truth, (Truth, NoneType), "a comparison with true factors")
    flag("learn_precision", learn_precision)
    flag("potential", potential)
    seed("random_state", random_state)
    h, h_pos = codes[0][:2]
    if h.shape[1] != space.dim:
        raise InputError(f"codes must have {space.dim} columns, as {space}, got {h.shape[1]}")
    if len(h) < FEWEST:
        raise InputError(f"codes must hold at least {FEWEST} pairs for a diagnosis, got {len(h)}")
    same_rows(**{f"codes[{i}]": code.h for i, code in enumerate(codes)})
    seen = None
    if observations is not None:
        both = members("observations", observations, "x and x_pos", 2)
        seen = as_matrix("x", both[0]), as_matrix("x_pos", both[1])
        same_rows(h=h, x=seen[0], x_pos=seen[1])
    rows, order = order_of(h, h_pos, times)
    # a model that does not assume a sphere may recover directions as points of an ellipsoid
    directions = None
    if isinstance(space, (Box, Euclidean)):
        directions = as_directions(h, h_pos, random_state=random_state)
    (y, y_pos), filled = (h, h_pos), space
    if directions is not None:
        (y, y_pos), filled = directions, Sphere(space.dim)
    even = marginal(y, filled, random_state)
    measured = Diagnosis(
        DISTRUST,  # replaced below
        [],
        space,
        conditional,
        len(h),
        _score(codes[1:], None if seen is None else related(*seen, order)),
        _restarts(codes, times),
        axes(h, h_pos, random_state),
        dimensions(y, y_pos, filled, seen, order, random_state),
        positives(y, y_pos, filled, conditional, order, random_state),
        replace(even, blur=blur(float(rows.noise.max()), random_state)),
        rows,
        truth,
        codes=(h[:SHOWN], h_pos[:SHOWN]),
    )
    shape = density.density(y, filled, rows.independent) if potential else None
    findings = _find(measured, filled, learn_precision, shape)
    verdict = checks.verdict(findings, known=_knows_all_factors(measured))
    return replace(measured, verdict=verdict, findings=findings)


def _score(codes: Sequence[Codes], related: bool | None) -> Score:
    bits = np.mean([code.bits for code in codes], axis=0)
    control = np.mean([code.control for code in codes], axis=0)
    seen = [code.seen for code in codes if code.seen is not None]
    root = math.sqrt(len(bits))
    return Score(
        float(bits.mean()),
        float(bits.std()) / root,
        float(control.mean()),
        float(control.std()) / root,
        float(np.mean(seen)) if seen else None,
        math.log2(len(bits)),
        related,
    )


def _restarts(codes: Sequence[Codes], times: Any) -> Restarts:
    signal = [1 - float(order_of(code.h, code.h_pos, times)[0].noise.mean()) for code in codes]
    shape = 3, len(codes), len(codes)
    linear, permutation, ceiling = np.broadcast_to(np.eye(len(codes)), shape).copy()
    for i, j in combinations(range(len(codes)), 2):
        both = [codes[i].h, codes[j].h]
        linear[i, j] = linear[j, i] = agreement(both, "affine")
        permutation[i, j] = permutation[j, i] = agreement(both, "permutation")
        ceiling[i, j] = ceiling[j, i] = signal[i] * signal[j]
    return Restarts(
        linear, permutation, max(0.5, float(ceiling[np.triu_indices(len(codes), 1)].mean()))
    )


# --- findings ---------------------------------------------------------------------------------------


def _find(
    d: Diagnosis, filled: Space, learn_precision: bool, shape: Density | None
) -> list[Finding]:
    """All findings, most serious first; only the first one keeps its advice.

    Args:
        d: the measurements.
        filled: the space that the codes fill, a sphere if they cover an ellipsoid.
        learn_precision: see `diagnose`.
        shape: description of the density of the codes, if a potential was learnt.
    """
    evenly = checks.marginal(d.marginal, d.dimensions, filled, d.rows)
    uniform = evenly.level in ("fine", "caution")  # as far as anyone can tell
    fixed = fixes_axes(filled, d.conditional, learn_precision, uniform=uniform)
    findings = [
        checks.score(d.score),
        *checks.memory(d.score),
        *checks.rows(d.rows, d.pairs),
        checks.restarts(d.restarts),
        checks.axes(d.restarts, d.axes, fixed, filled),
        *checks.codes(d.dimensions),
        *checks.directions(d.space, filled),
        checks.surface(d.dimensions, filled, d.rows),
        *checks.missed(d.dimensions, d.rows),
        checks.bend(d.positives, filled, d.rows),
        checks.conditional(d.positives, d.conditional, d.rows),
        checks.anisotropy(d.positives, learn_precision),
        *checks.truth(d.truth, len(d.dimensions.varies)),
    ]
    if shape is not None and not uniform:
        evenly = density.finding(
            evenly, shape, findings, d.dimensions, filled, d.conditional, learn_precision
        )
    findings.append(evenly)
    if _knows_all_factors(d):
        findings = _settled(findings)
    # overfitting may explain any other failure, unless the pairs are unrelated
    first = FIRST if d.score.related is False else ("memory", *FIRST)
    findings.sort(key=lambda f: (LEVELS.index(f.level), first.index(f.check)))
    return [findings[0], *(replace(finding, advice="") for finding in findings[1:])]


def _knows_all_factors(d: Diagnosis) -> bool:
    """Whether there are true factors for all codes."""
    return d.truth is not None and len(d.truth.r2) >= len(d.dimensions.varies)


def _settled(findings: list[Finding]) -> list[Finding]:
    """Downgrade findings that suggest lost factors to cautions if true factors show the opposite."""
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
