"""Does `guarantee` keep its word, and does `counterexample` say why there is no promise?

    python -m validation.guarantees [--pairs N]      # writes results/guarantees.json; finished pairs stay

Pairs of a process and a model with three factors, drawn from all combinations below. Where something is
promised, a model is trained on pairs of observations and has to reach the score, and no counterexample may be
found. Where nothing is promised, one is looked for.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from identica import (
    MLP,
    Box,
    BoxHead,
    Contrastive,
    ContrastiveModel,
    Euclidean,
    GeneralizedNormal,
    GenerativeProcess,
    InfoNCE,
    InvertibleMLP,
    Laplace,
    Normal,
    Potential,
    Sphere,
    SphereHead,
    Training,
    Uniform,
    VonMisesFisher,
    guarantee,
    train,
)
from identica.families import Family
from identica.heads import Head
from identica.metrics import linear_r2, mcc
from identica.spaces import Space
from identica.theory import counterexample

RESULTS = Path(__file__).parent.parent / "results" / "guarantees.json"
N, REACHED, STEPS = 3, 0.99, 800
S, B, R = Sphere(N), Box(N), Euclidean(N)
PROCESSES: list[tuple[Space, Family, Family]] = [
    *itertools.product([S], [Uniform(), Normal(1.0)], [VonMisesFisher(5.0), Normal(0.3)]),
    *itertools.product(
        [B], [Uniform(), Normal(0.25)], [Laplace(0.25), Normal(0.25), GeneralizedNormal(3.0, 0.5)]
    ),
    *itertools.product(
        [R], [Normal(1.0), Laplace(1.0)], [Laplace(1.0), Normal(1.0), GeneralizedNormal(3.0, 1.5)]
    ),
]


class Model(NamedTuple):
    """A model: its space, its family, whether the size of its codes is learnt, and its potential."""

    space: Space
    family: Family
    learnt: bool
    potential: bool

    def make(self, seed: int, *, soften: int | None = None) -> ContrastiveModel:
        """The model, untrained; for training, a sphere closes in on the codes in some steps."""
        head: Head | None = None
        if isinstance(self.space, Sphere):
            start = Sphere(N, 2.0) if self.learnt else self.space
            head = SphereHead(start, learnable=self.learnt, soften=soften)
        if isinstance(self.space, Box):
            head = BoxHead(self.space, learnable=True, start=4.0, lr=2e-3)
        potential = Potential(N, seed=seed) if self.potential else None
        encoder = MLP(N, N, (64, 64, 64), seed=seed)
        return ContrastiveModel(self.space, self.family, encoder, head=head, potential=potential)


DISTANCES: list[Family] = [Laplace(1.0), Normal(math.sqrt(0.5)), GeneralizedNormal(3.0)]
MODELS = [
    *(Model(S, VonMisesFisher(1.0), learnt, b) for learnt in (True, False) for b in (True, False)),
    *(Model(R, family, False, b) for family in DISTANCES for b in (True, False)),
    *(Model(B, family, True, b) for family in DISTANCES for b in (True, False)),
]


def pairs() -> list[tuple[tuple[Space, Family, Family], Model]]:
    """All pairs, in an order in which any number of the first ones is a fair sample."""
    every = list(itertools.product(PROCESSES, MODELS))
    return [every[k] for k in np.random.default_rng(0).permutation(len(every))]


def name(assumptions: tuple[Space, Family, Family], model: Model) -> str:
    space, marginal, conditional = assumptions
    parts = [space, marginal, conditional, "|", model.space, model.family]
    learnt = ["learnt size"] if model.learnt else []
    return " ".join(map(str, [*parts, *learnt, *(["potential"] if model.potential else [])]))


def examine(
    assumptions: tuple[Space, Family, Family], model: Model, seed: int = 0
) -> dict[str, Any]:
    """What is promised for a pair, what training reaches, and whether there is a counterexample."""
    process = GenerativeProcess(*assumptions, InvertibleMLP(N, seed=seed))
    found = guarantee(process, model.make(seed))
    record: dict[str, Any] = {"pair": name(assumptions, model), "up_to": found.up_to}
    if found:
        record |= trained(process, model.make(seed, soften=STEPS // 2), seed)
        score = record["mcc" if found.up_to == "permutation" else "r2"]
        record["kept"] = score >= REACHED
    began = time.perf_counter()
    against = counterexample(process, model.make(seed), seed=seed)
    record["counterexample"] = None if against is None else str(against)
    return record | {"seconds": round(time.perf_counter() - began, 1)}


def trained(process: GenerativeProcess, model: ContrastiveModel, seed: int) -> dict[str, float]:
    """The scores of the model after training."""
    source = "positives" if model.potential is not None else "anchors"
    loss = InfoNCE(model.conditional, negatives_from=source, symmetric=model.potential is not None)
    train(Contrastive(model, loss), process.sample, Training(steps=STEPS, batch=512), seed=2 * seed)
    z = process.latents(4096, generator=2 * seed + 1)
    with torch.no_grad():
        codes = model(process.mixing(z))
    return {"r2": round(linear_r2(z, codes), 4), "mcc": round(mcc(z, codes), 4)}


def summary(records: list[dict[str, Any]]) -> dict[str, Any]:
    """What the records come down to."""
    promised = [r for r in records if r["up_to"] is not None]
    open_ones = [r for r in records if r["up_to"] is None]
    return {
        "pairs": len(records),
        "promised": len(promised),
        "kept": sum(r["kept"] for r in promised),
        "promised with a counterexample": sum(r["counterexample"] is not None for r in promised),
        "without a promise": len(open_ones),
        "with a counterexample": sum(r["counterexample"] is not None for r in open_ones),
        "longest search, seconds": max((r["seconds"] for r in records), default=0.0),
    }


def missing(records: list[dict[str, Any]], number: int) -> Iterator[Any]:
    """The first pairs that have no record yet."""
    done = {record["pair"] for record in records}
    return (pair for pair in pairs()[:number] if name(*pair) not in done)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=len(pairs()), help="how many of the pairs")
    number = parser.parse_args().pairs
    records = json.loads(RESULTS.read_text())["records"] if RESULTS.exists() else []
    for pair in missing(records, number):
        records.append(examine(*pair))
        print(records[-1], flush=True)
        RESULTS.write_text(
            json.dumps({"summary": summary(records), "records": records}, indent=1) + "\n"
        )
    print(summary(records))


if __name__ == "__main__":
    main()
