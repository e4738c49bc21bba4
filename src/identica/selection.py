"""Which space and which family fit the data: short fits of each, judged on pairs held out."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from identica import fitting
from identica._check import InputError, one_of
from identica._random import Device, as_generator
from identica.families import Family, GeneralizedNormal, Laplace, Normal, VonMisesFisher
from identica.pairing import ArrayPairs, PairSampler
from identica.spaces import Box, Euclidean, Space, Sphere
from identica.training import Training

Candidate = tuple[Space, Family]
HELD_OUT = 4096


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
    """The spaces and families that names stand for, several where one of them is "auto".

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
    found = [(s, f) for s in spaces for f in _families(s, conditional)]
    if not found:
        raise InputError(f"conditional {conditional} is not defined on the space {space}")
    if learn_precision:
        # a dot product has no precisions, and the normal says the same where they agree
        found = [(s, Normal(1.0) if isinstance(f, VonMisesFisher) else f) for s, f in found]
    return found


def _families(space: Space, conditional: str | Family | None) -> list[Family]:
    sphere = isinstance(space, Sphere)
    if isinstance(conditional, Family):
        found = [conditional]
    elif conditional is None:
        found = [FAMILIES["vmf" if sphere else "normal"]]
    elif one_of("conditional", conditional, [*FAMILIES, "auto"]) == "auto":
        return [f for f in FAMILIES.values() if isinstance(f, VonMisesFisher) == sphere]
    else:
        found = [FAMILIES[conditional]]
    return [family for family in found if family.supports(space)]


@dataclass(frozen=True)
class Selection:
    """A choice and the evidence for it.

    Attributes:
        space, conditional: the choice.
        table: a record for each candidate, the best first.
    """

    space: Space
    conditional: Family
    table: list[dict[str, Any]]


def select(
    candidates: Sequence[Candidate],
    start: Callable[[], nn.Module],
    sample: PairSampler,
    *,
    batch: int = 1024,
    device: Device = "cpu",
    seed: int = 0,
    folder: Path | None = None,
    progress: bool = False,
) -> Selection:
    kept, held = sample.split() if isinstance(sample, ArrayPairs) else (sample, sample)
    pairs = held(HELD_OUT, generator=as_generator(seed + 1))
    table: list[dict[str, Any]] = []
    values: list[Tensor] = []
    for space, family in candidates:
        began = time.perf_counter()
        training = Training(steps=600, batch=min(512, batch))
        fit = fitting.fit(kept, start(), space, family, training, device=device, seed=seed)
        values.append(fit.log_likelihood(pairs) / math.log(2))
        table.append(
            {
                "space": space,
                "conditional": family,
                "bits": float(values[-1].mean()),
                "seconds": time.perf_counter() - began,
            }
        )
    best = max(range(len(table)), key=lambda i: table[i]["bits"])
    for record, value in zip(table, values, strict=True):
        gap = values[best] - value
        record["error"] = float(gap.std() / math.sqrt(len(gap)))
    return Selection(*candidates[best], table)
