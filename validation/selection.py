"""Does "auto" find the right space and family? Ten known processes, and some unseen ones.

    python -m validation.selection [NUMBER …]     # all, or some of them

The rule of choice was made with the first ten in view; those that are marked `unseen` were added
and run once, afterwards. Writes results/selection.json; a process that is in it already is not run
again.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import torch

from identica import (
    Box,
    ContrastiveICA,
    CouplingFlow,
    Euclidean,
    GeneralizedNormal,
    GenerativeProcess,
    InvertibleMLP,
    Laplace,
    Normal,
    Sphere,
    Uniform,
    VonMisesFisher,
)
from identica._io import write_json
from identica.estimator.selection import space_name
from identica.families import Family
from identica.metrics import linear_r2, mcc
from identica.mixing import Mixing
from identica.spaces import Space

RESULTS = Path(__file__).parent.parent / "results" / "selection.json"
PAIRS, STEPS = 30_000, 2000


class Known(NamedTuple):
    """A process with the answer."""

    space: Space
    marginal: Family
    conditional: Family
    mixing: Mixing
    unseen: bool = False

    @property
    def answer(self) -> tuple[str, float | None]:
        """The space and the exponent of the distance."""
        return space_name(self.space), self.conditional.p


def known() -> list[Known]:
    def mixed(n: int, seed: int) -> Mixing:
        return InvertibleMLP(n, seed=seed, draws=5000)

    normal, uniform = Normal(1.0), Uniform()
    return [
        Known(Box(3), uniform, Laplace(0.05), mixed(3, 0)),
        Known(Box(4), uniform, Laplace(0.1), CouplingFlow(4, seed=1)),
        Known(Box(3), uniform, Normal(0.07), mixed(3, 2)),
        Known(Box(4), uniform, Normal(0.1), mixed(4, 3)),
        Known(Box(3), uniform, GeneralizedNormal(3.0, 0.1), mixed(3, 4)),
        Known(Sphere(3), uniform, VonMisesFisher(30.0), mixed(3, 5)),
        Known(Sphere(4), uniform, VonMisesFisher(50.0), mixed(4, 6)),
        Known(Euclidean(3), normal, Laplace(0.2), mixed(3, 7)),
        Known(Euclidean(3), normal, Normal(0.3), mixed(3, 8)),
        Known(Euclidean(3), Laplace(1.0), Normal(0.3), mixed(3, 9)),
        Known(Box(3), uniform, Laplace(0.1), CouplingFlow(3, seed=10), unseen=True),
        Known(Euclidean(4), normal, Normal(0.2), mixed(4, 11), unseen=True),
        Known(Sphere(3), uniform, VonMisesFisher(15.0), CouplingFlow(3, seed=12), unseen=True),
    ]


def run(case: Known, seed: int) -> dict[str, Any]:
    """What is chosen for a process, and what comes of it."""
    process = GenerativeProcess(case.space, case.marginal, case.conditional, case.mixing)
    pairs = process.sample(PAIRS, generator=seed)
    start = time.process_time()
    ica = ContrastiveICA(
        space="auto", conditional="auto", steps=STEPS, random_state=seed, progress=True
    )
    ica.fit(pairs.x, pairs.x_pos)
    seconds = time.process_time() - start
    held_out = process.sample(4096, generator=seed + 1000)
    codes = ica.transform(held_out.x)
    chosen = ica.selection_
    space, p = space_name(chosen.space), chosen.conditional.p
    return {
        "process": f"{case.space}, {case.marginal}, {case.conditional}",
        "chosen": f"{chosen.space}, {chosen.conditional}",
        "right_family": p == case.answer[1],
        "right_space": space == case.answer[0],
        "r2": round(linear_r2(held_out.z, codes), 4),
        "mcc": round(mcc(held_out.z, codes), 4),
        "cpu_seconds": round(seconds, 1),
        "table": chosen.table,
    }


def main(wanted: list[int]) -> None:
    done = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for number, case in enumerate(known()):
        if (wanted and number not in wanted) or str(number) in done:
            continue
        done[str(number)] = record = run(case, seed=number)
        RESULTS.parent.mkdir(exist_ok=True)
        write_json(RESULTS, {key: done[key] for key in sorted(done, key=int)})
        print(f"{number}: {record['process']} -> {record['chosen']}", flush=True)
    for unseen in (False, True):
        numbers = [str(k) for k, case in enumerate(known()) if case.unseen == unseen]
        these = [done[number] for number in numbers if number in done]
        families, spaces = (sum(r[name] for r in these) for name in ("right_family", "right_space"))
        kind = "unseen" if unseen else "known"
        print(f"{kind}: right family {families}, right space {spaces} of {len(these)}")


if __name__ == "__main__":
    torch.set_num_threads(1)
    main([int(number) for number in sys.argv[1:]])
