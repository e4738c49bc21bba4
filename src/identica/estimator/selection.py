"""Selection of the space and the family: a short fit of each candidate, compared on held-out pairs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from identica import _html
from identica._random import as_generator
from identica._validate import one_of
from identica.errors import InputError
from identica.estimator.fit import Fit, encode
from identica.estimator.pairs import ArrayPairs, PairSampler
from identica.families import Family, GeneralizedNormal, Laplace, Normal, VonMisesFisher
from identica.spaces import Box, Euclidean, Space, Sphere

Candidate = tuple[Space, Family]
HELD_OUT = 4096
NEARLY = 0.97  # fraction of the best evidence that counts as equally good after a short fit
COMPONENTS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20)
EVEN = 0.08  # unevenness below which codes fill a box; that of a normal distribution is 0.13
SPACES = {"sphere": Sphere, "box": Box, "unbounded": Euclidean}
FAMILIES: dict[str, Family] = {
    "laplace": Laplace(1.0),
    "normal": Normal(1.0),
    "gennorm3": GeneralizedNormal(3.0),
    "vmf": VonMisesFisher(1.0),
}


def candidates(
    space: str | Space, conditional: str | Family | None, n: int, *, learn_precision: bool = False
) -> list[Candidate]:
    """The candidates for the given names: one, or several if a name is "auto".

    >>> candidates("box", None, 3)
    [(Box(dim=3, low=0.0, high=1.0), Normal(std=1.0))]
    >>> [type(space).__name__ for space, _ in candidates("auto", "laplace", 3)]
    ['Sphere', 'Box', 'Euclidean']
    """
    spaces: list[Space]
    if isinstance(space, Space):
        spaces = [space]
    elif one_of("space", space, [*SPACES, "auto"]) == "auto":
        spaces = [kind(n) for kind in SPACES.values() if kind is not Sphere or n > 1]
    else:
        spaces = [SPACES[space](n)]
    for known in spaces:
        if known.dim != n:
            raise InputError(f"network must give {known.dim} codes for {known}, got {n}")
    pairs = [(s, f) for s in spaces for f in _families(s, conditional)]
    if not pairs:
        raise InputError(f"conditional {conditional} is not defined on the space {space}")
    if learn_precision:
        # a dot product has no precisions; with equal precisions the normal is equivalent to it
        pairs = [(s, Normal(1.0) if isinstance(f, VonMisesFisher) else f) for s, f in pairs]
    return pairs


def _families(space: Space, conditional: str | Family | None) -> list[Family]:
    sphere = isinstance(space, Sphere)
    if isinstance(conditional, Family):
        families = [conditional]
    elif conditional is None:
        families = [FAMILIES["vmf" if sphere else "normal"]]
    elif one_of("conditional", conditional, [*FAMILIES, "auto"]) == "auto":
        return [f for f in FAMILIES.values() if isinstance(f, VonMisesFisher) == sphere]
    else:
        families = [FAMILIES[conditional]]
    return [family for family in families if family.supports(space)]


@dataclass(frozen=True)
class Selection:
    """The selected space and family, with the evidence for them.

    Attributes:
        space, conditional: the selection.
        table: a record for each candidate, best first: `space`, `conditional`, `bits` (evidence of
            held-out pairs, see `identica.metrics.evidence`), `behind` (difference from the best) with its
            standard error `error`, and `unevenness` of the codes.
    """

    space: Space
    conditional: Family
    table: Sequence[dict[str, Any]]

    def __str__(self) -> str:
        lines = [f"chosen: {self.space}, {self.conditional}"]
        for record in self.table:
            lines.append(
                f"  {record['space']:10} {record['conditional']:40} {record['bits']:8.3f} bits, "
                f"{record['behind']:.3f} ± {record['error']:.3f} behind the best, "
                f"unevenness {record['unevenness']:.2f}"
            )
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        head = ["space", "conditional", "held-out bits", "behind the best", "unevenness"]
        rows = [
            (r["space"], r["conditional"], f"{r['bits']:.3f}", behind, f"{r['unevenness']:.2f}")
            for r in self.table
            for behind in [f"{r['behind']:.3f} ± {r['error']:.3f}"]
        ]
        title = f"Chosen: {self.conditional} on {self.space}"
        return _html.card(title, _html.table(head, rows))


def select(
    choices: Sequence[Candidate],
    sample: PairSampler,
    fit: Callable[[Space, Family, PairSampler, str, Path | None], Fit],
    *,
    seed: int = 0,
    folder: Path | None = None,
) -> Selection:
    """Fit every candidate briefly, and select one by the evidence of held-out pairs.

    The evidence measures how well a model, at its best temperature, distinguishes true positives from
    random ones. It is a probability of the same events in every space, so candidates are comparable. The
    family is that of the best candidate. R^n contains boxes and spheres and hence is never worse than they
    are, so the most restrictive space that is nearly as good is selected: a sphere; otherwise a box, if
    the codes in the box or in R^n fill one evenly, as the theory requires; otherwise R^n.

    Args:
        choices: candidates, as returned by `candidates`.
        sample: draws pairs; of an `ArrayPairs`, a fifth is held out.
        fit: fits a candidate briefly to the pairs of a sampler, given a label and a folder.
        folder: folder for checkpoints.
    """
    kept, held = sample.split() if isinstance(sample, ArrayPairs) else (sample, sample)
    # not `seed`, which draws the training batches
    pairs = held(HELD_OUT, generator=as_generator(seed + 1))
    records: list[dict[str, Any]] = []
    evidence: list[Tensor] = []
    for k, (space, family) in enumerate(choices):
        out = None if folder is None else folder / "candidates" / str(k)
        fitted = fit(space, family, kept, f"{k + 1} of {len(choices)}", out)
        evidence.append(fitted.log_likelihood(pairs) / math.log(2))
        records.append(
            {
                "space": space_name(space),
                "conditional": repr(family),
                "bits": float(evidence[-1].mean()),
                "unevenness": unevenness(encode(fitted.model, pairs.x)),
            }
        )
    best = max(range(len(records)), key=lambda k: records[k]["bits"])
    for record, value in zip(records, evidence, strict=True):
        gap = evidence[best] - value
        record["behind"] = float(gap.mean())
        record["error"] = float(gap.std() / math.sqrt(len(gap)))
    chosen = choose(choices, records)
    table = sorted(records, key=lambda record: -record["bits"])
    return Selection(*choices[chosen], table)


def count_components(fit: Callable[[int], float], most: int, *, least: int = 1) -> dict[int, float]:
    """Held-out bits by number of codes, which increases until further codes no longer help.

    Args:
        fit: fits a model with that many codes briefly, and returns its evidence.
        most: the largest number to try.
        least: the smallest number to try.
    """
    evidence: dict[int, float] = {}
    for n in (n for n in COMPONENTS if least <= n <= max(least, most)):
        evidence[n] = fit(n)
        last = list(evidence.values())[-3:]
        if len(last) == 3 and max(last[1:]) * NEARLY < last[0]:  # no gain in two steps
            break
    return evidence


def choose(choices: Sequence[Candidate], records: Sequence[dict[str, Any]]) -> int:
    """The index of the candidate to select, by the rule described in `select`."""
    best = max(range(len(choices)), key=lambda k: records[k]["bits"])
    near = [record["bits"] >= NEARLY * records[best]["bits"] for record in records]
    same = [family == choices[best][1] for _, family in choices]
    # bounded factors show in either space: codes in R^n may fill a box, too
    even = any(
        near[k] and same[k] and records[k]["unevenness"] < EVEN
        for k, (space, _) in enumerate(choices)
        if isinstance(space, (Box, Euclidean))
    )
    for kind in (Sphere, Box, Euclidean):
        for k, (space, _) in enumerate(choices):
            fits = {Sphere: near[k], Box: same[k] and even, Euclidean: same[k] and near[k]}[kind]
            if isinstance(space, kind) and fits:
                return k
    return best


def unevenness(codes: Tensor) -> float:
    """Distance of codes N×n from uniform: the Kolmogorov–Smirnov distance, averaged over the codes.

    >>> round(unevenness(torch.linspace(0, 1, 1000)[:, None]), 2)
    0.0
    """
    low, high = torch.quantile(codes, torch.tensor([0.005, 0.995]).to(codes), dim=0)
    places = ((codes - low) / (high - low).clamp(min=1e-30)).clamp(0, 1).sort(dim=0).values
    uniform = torch.linspace(0, 1, len(codes)).to(codes)[:, None]
    return float((places - uniform).abs().amax(0).mean())


def space_name(space: Space) -> str:
    """The name of a space as an option of the estimator."""
    return next((name for name, kind in SPACES.items() if isinstance(space, kind)), repr(space))
