"""Does a potential do the same behind a mixing that nothing was tuned on?

Rows of the study `marginals` with affine coupling layers in place of the paper's mixing, and seeds of their
own. Writes results/mixings.json and results/mixings.md; finished runs are not repeated.

    python -m validation.mixings
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from identica._io import write_json, write_text
from identica.mixing import CouplingFlow
from identica.process import GenerativeProcess
from identica.studies import load
from identica.studies.catalogue import STUDIES
from identica.studies.marginals import MarginalExperiment

RESULTS, TABLE = Path("results/mixings.json"), Path("results/mixings.md")
ROWS = (3, 4, 5, 10, 12, 24)  # rows 11 and 12 of the paper's table, and a cell of each space
SEEDS = (100, 101, 102)


@dataclass(frozen=True)
class Coupled(MarginalExperiment):
    """A row behind affine coupling layers."""

    def process(self) -> GenerativeProcess:
        row = self.row
        mixing = CouplingFlow(row.space.dim, seed=self.seed)
        return GenerativeProcess(row.space, row.marginal, row.conditional, mixing)


def run(number: int, kind: str, seed: int) -> dict[str, float]:
    """The scores of one run, and its seconds."""
    study = STUDIES["marginals"]
    row = next(row for row in load("marginals") if row.row == number)
    usual = study.experiment(row, kind, seed, "fast")
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        result = Coupled(row, kind, seed, usual.recipe).run(Path(folder))
    return {**result["scores"], "seconds": round(time.perf_counter() - start, 1)}


def table(results: dict[str, list[dict[str, Any]]]) -> str:
    lines = ["| row | loss | R² | least | MCC | seeds |", "|---|---|---|---|---|---|"]
    for name, runs in results.items():
        row, kind = name.split()
        r2, mcc = ([r[score] for r in runs if score in r] for score in ("r2", "mcc"))
        shown = f"{np.mean(mcc):.4f}" if mcc else "–"
        lines.append(
            f"| {row} | {kind} | {np.mean(r2):.4f} | {min(r2):.4f} | {shown} | {len(runs)} |"
        )
    return "\n".join(lines) + "\n"


def main() -> int:
    torch.set_num_threads(1)
    results: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for seed in SEEDS:
        for number in ROWS:
            for kind in ("plain" if number < 5 else "published", "potential"):
                done = results.setdefault(f"{number} {kind}", [])
                if any(each["seed"] == seed for each in done):
                    continue
                done.append({"seed": seed, **run(number, kind, seed)})
                print(number, kind, done[-1], flush=True)
                write_json(RESULTS, results)
                write_text(TABLE, table(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
