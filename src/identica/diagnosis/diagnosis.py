"""Can the codes be trusted? What a fitted model, its restarts and unseen pairs tell without the truth."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from identica._random import as_generator
from identica._validate import as_matrix, count, same_rows
from identica.diagnosis import conditional as _laws
from identica.diagnosis import evidence as _measures
from identica.diagnosis.evidence import Axes, Codes, Dimensions, Laws, Restarts, Score
from identica.diagnosis.truth import Truth
from identica.diagnosis.truth import truth as beside_truth
from identica.diagnosis.verdict import Finding, find, verdict
from identica.errors import InputError
from identica.estimator.fit import Fit, calibrate, encode, log_likelihood
from identica.estimator.pairs import ArrayPairs, Batch, PairSampler, rows_of
from identica.families import Family
from identica.process import Labelled
from identica.spaces import Box, Euclidean, Space, Sphere

Matrix = NDArray[np.float64]

FEWEST = 20  # pairs that can be judged
JUDGED = 4096  # pairs by which models are judged
SHOWN = 2000  # pairs that are kept for pictures


# --- what is judged ---------------------------------------------------------------------------------


def codes_of(fit: Fit, pairs: Batch, seen: Batch | None = None) -> Codes:
    """Codes and evidence by a fitted model."""
    device = next(fit.model.parameters()).device
    h, h_pos = (encode(fit.model, x.to(device)) for x in pairs)
    learnt = None
    if seen is not None:
        known = Batch(*(x.to(device) for x in seen))
        learnt = float(fit.log_likelihood(known).mean()) / math.log(2)
    with torch.no_grad():
        scaled = fit.loss.scaled(h), fit.loss.scaled(h_pos)
    return _scored((h, h_pos), scaled, fit.loss.conditional, fit.temperature)._replace(seen=learnt)


def codes_from(h: Any, h_pos: Any, conditional: Family) -> Codes:
    """Codes that were made in any way, at the temperature that suits them best."""
    anchor, positive = as_matrix("h", h), as_matrix("h_pos", h_pos)
    if anchor.shape != positive.shape:
        raise InputError(f"h_pos must have the shape of h, {anchor.shape}, got {positive.shape}")
    pair = torch.from_numpy(anchor).float(), torch.from_numpy(positive).float()
    found = _scored(pair, pair, conditional, calibrate(conditional, *pair))
    return found._replace(h=anchor, h_pos=positive)


def _scored(
    codes: tuple[Tensor, Tensor],
    scaled: tuple[Tensor, Tensor],
    conditional: Family,
    temperature: float,
) -> Codes:
    anchor, positive = scaled
    order = torch.randperm(len(anchor), generator=torch.Generator().manual_seed(0))
    other = positive[order.to(positive.device)]
    bits = log_likelihood(conditional, anchor, positive, temperature)
    control = log_likelihood(conditional, anchor, other, calibrate(conditional, anchor, other))
    return Codes(
        as_matrix("h", codes[0]),
        as_matrix("h_pos", codes[1]),
        bits.cpu().double().numpy() / math.log(2),
        control.cpu().double().numpy() / math.log(2),
    )


# --- what is found ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Diagnosis:
    """What `diagnose` found.

    Attributes:
        verdict: "recovered up to permutation and scale", "recovered up to a linear map", "uncertain"
            or "do not trust".
        findings: what it rests on, the gravest first.
        space, conditional: what the model assumes.
        score, restarts, axes, dimensions, laws, truth: the numbers.
        codes: some pairs of codes (h, h_pos), for pictures.
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
    laws: Laws
    truth: Truth | None
    codes: tuple[Matrix, Matrix] = field(repr=False, compare=False)

    def __str__(self) -> str:
        return "\n".join([f"Verdict: {self.verdict}.", *(f"{f}" for f in self.findings)])

    def to_json(self) -> str:
        """All numbers and findings as JSON text."""
        parts = ("score", "restarts", "dimensions", "laws", "truth")
        content: dict[str, Any] = {
            "verdict": self.verdict,
            "findings": [asdict(finding) for finding in self.findings],
            "space": repr(self.space),
            "conditional": repr(self.conditional),
            "pairs": self.pairs,
            **{name: _plain(getattr(self, name)) for name in parts},
            "axes": {name: asdict(axes) for name, axes in self.axes.items()},
        }
        return json.dumps(content, indent=2, ensure_ascii=False, default=_jsonable)


def _plain(part: Any) -> Any:
    return None if part is None else asdict(part)


def _jsonable(value: Any) -> Any:
    return value.tolist()


# --- finding it -------------------------------------------------------------------------------------


def diagnose_fit(
    fit: Fit,
    sample: PairSampler,
    refit: Callable[[PairSampler, int], Fit],
    *,
    restarts: int = 2,
    labelled: Labelled | None = None,
    random_state: int = 0,
) -> Diagnosis:
    """Judge a fitted model: fit it anew to four fifths of the pairs, and look at the others.

    Args:
        fit: the model in question.
        sample: draws pairs; from arrays (`ArrayPairs`) a fifth of them is held out.
        refit: fits a model of the same kind to the pairs of a sampler, from a seed.
        restarts: number of models in all.
    """
    count("restarts", restarts, at_least=2)
    kept, held = sample, sample
    if isinstance(sample, ArrayPairs):
        kept, held = sample.split()
        if len(held) < FEWEST:
            total = len(sample)
            raise InputError(f"X must hold at least {5 * FEWEST} pairs to be judged, got {total}")
    others = [refit(kept, random_state + i) for i in range(1, restarts)]
    pairs = held(JUDGED, generator=as_generator(random_state))
    seen = kept(len(pairs.x), generator=as_generator(random_state + 1))
    return diagnose([fit, *others], pairs, seen, labelled=labelled, random_state=random_state)


def diagnose(
    fits: Sequence[Fit],
    pairs: Batch,
    seen: Batch | None = None,
    *,
    labelled: Labelled | None = None,
    random_state: int = 0,
) -> Diagnosis:
    """Judge a fitted model by its restarts and by pairs that these have not seen.

    Args:
        fits: the model in question and at least one other, fitted from another seed.
        pairs: pairs that the others were not trained on, at least 20 (some thousand are better).
        seen: about as many pairs that the others were trained on.
        labelled: observations with their true factors, where these are known.
    """
    if len(fits) < 2:
        raise InputError(f"fits must hold a model and at least one restart of it, got {len(fits)}")
    _enough(len(pairs.x))
    codes = [codes_of(fit, pairs, seen) for fit in fits]
    truth = None
    if labelled is not None:
        device = next(fits[0].model.parameters()).device
        truth = beside_truth(labelled.z, encode(fits[0].model, labelled.x.to(device)))
    rows = pairs.x.ndim == 2
    return diagnose_codes(
        codes,
        fits[0].model.space,
        fits[0].model.conditional,
        observations=Batch(pairs.x.cpu(), pairs.x_pos.cpu()) if rows else None,
        learn_precision=fits[0].loss.learn_precision is not None,
        truth=truth,
        random_state=random_state,
    )


def diagnose_codes(
    codes: Sequence[Codes],
    space: Space,
    conditional: Family,
    *,
    observations: Batch | None = None,
    learn_precision: bool = False,
    truth: Truth | None = None,
    random_state: int = 0,
) -> Diagnosis:
    """Judge codes of the same pairs by several models, of which the first one is in question.

    >>> from identica import Box, Laplace
    >>> z = Box(2).sample(2000, generator=0)
    >>> z_pos = Laplace(0.05).sample(Box(2), z, generator=1)
    >>> both = [codes_from(h, h_pos, Laplace(1.0)) for h, h_pos in [(z, z_pos), (-z, -z_pos)]]
    >>> diagnose_codes(both, Box(2), Laplace(1.0)).verdict
    'recovered up to permutation and scale'
    """
    if len(codes) < 2:
        raise InputError(f"codes must be of at least 2 models to compare, got {len(codes)}")
    h, h_pos = as_matrix("h", codes[0].h), as_matrix("h_pos", codes[0].h_pos)
    _enough(len(h))
    same_rows(**{f"codes[{i}]": code.h for i, code in enumerate(codes)})
    seen = None
    if observations is not None:
        seen = as_matrix("x", observations.x), as_matrix("x_pos", observations.x_pos)
    # factors that are directions may be found by a model that knows of none, as points of an ellipsoid
    directions = None
    if isinstance(space, (Box, Euclidean)):
        directions = _laws.as_directions(h, h_pos, random_state=random_state)
    (y, y_pos), filled = (h, h_pos), space
    if directions is not None:
        (y, y_pos), filled = directions, Sphere(space.dim)
    numbers: dict[str, Any] = {
        "score": _measures.score(codes[1:]),
        "restarts": _measures.restarts([code.h for code in codes]),
        "axes": _measures.axes(h, h_pos, random_state),
        "dimensions": _measures.dimensions(y, y_pos, filled, seen, random_state),
        "laws": _measures.laws(y, y_pos, filled, conditional, random_state),
        "truth": truth,
    }
    findings = find(
        space=space,
        filled=filled,
        conditional=conditional,
        learn_precision=learn_precision,
        pairs=len(h),
        **numbers,
    )
    return Diagnosis(
        verdict(findings, truth),
        findings,
        space,
        conditional,
        len(h),
        codes=(h[:SHOWN], h_pos[:SHOWN]),
        **numbers,
    )


def _enough(pairs: int) -> None:
    if pairs < FEWEST:
        raise InputError(f"pairs must be at least {FEWEST} to be judged by, got {pairs}")


def some_labelled(x: NDArray[Any], z: Any, *, random_state: int = 0) -> Labelled:
    """Some observations x (N×…) with their true factors z (N×d), in a random order."""
    factors = as_matrix("Z", z, rows=4)
    if len(factors) != len(x):
        raise InputError(f"Z must have a row for each of {len(x)} rows of X, got {len(factors)}")
    rows = np.random.default_rng(random_state).permutation(len(x))[:JUDGED]
    return Labelled(torch.from_numpy(factors[rows]), rows_of("X", x, rows))
