"""What matters for the fast preset: one change at a time, scored after a fixed number of steps.

    python -m benchmarks.ablation [NAME …]      # all, or those whose name holds one of the words

Every variant is a line of results/ablation.jsonl; a variant that has its line is not run again.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from identica.studies import load
from identica.studies.experiment import run
from identica.studies.presets import choose

RESULTS = Path(__file__).parent.parent / "results" / "ablation.jsonl"


@dataclass(frozen=True)
class Variant:
    """A row with changes to its fast preset (`preset`) and to its training (`training`)."""

    name: str
    study: str
    row: int
    preset: dict[str, Any] = field(default_factory=dict)
    training: dict[str, Any] = field(default_factory=dict)
    seed: int = 0


def sphere(name: str, preset: dict[str, Any] | None = None, **training: Any) -> Variant:
    return Variant(f"sphere: {name}", "icml-table1", 2, preset or {}, {"steps": 2000, **training})


def box(row: int, name: str, preset: dict[str, Any] | None = None, **training: Any) -> Variant:
    kinds = {1: "Laplace", 2: "GenNorm(3)", 3: "Normal"}
    label = f"box {kinds[row]}: {name}"
    return Variant(label, "icml-table2", row, preset or {}, {"steps": 2000, **training})


VARIANTS = [
    # optimiser and learning rate
    *(sphere(f"Adam, lr {lr:g}", optimizer="adam", lr=lr) for lr in (1e-3, 3e-3)),
    *(sphere(f"Muon, lr {lr:g}", optimizer="muon", lr=lr) for lr in (5e-3, 2e-2)),
    *(sphere(f"SOAP, lr {lr:g}", lr=lr) for lr in (3e-3, 1e-2, 2e-2)),
    # network
    *(
        sphere(f"SOAP, hidden {hidden}", {"hidden": hidden}, lr=1e-2)
        for hidden in ((128, 128), (64, 64, 64), (256, 256, 256))
    ),
    # batch, negatives per anchor, both members as anchors
    *(sphere(f"SOAP, batch {batch}", lr=1e-2, batch=batch) for batch in (512, 2048)),
    *(sphere(f"SOAP, {m} negatives", {"negatives": m}, lr=1e-2) for m in (64, 256)),
    sphere("SOAP, one way", {"symmetric": False}, lr=1e-2),
    # the scale of the box: what the negatives are weighed as, where the bound starts, its rate
    *(
        box(row, f"weighed as {m}", {"effective_negatives": m, "bound": bound}, lr=1e-2)
        for row in (1, 2)
        for m, bound in ((None, 5.0), (6144, 5.0), (60_000, 6.0), (1_000_000, 8.0))
    ),
    *(
        box(
            row,
            f"bound from {bound:g} at rate {rate:g}",
            {"effective_negatives": 6144, "bound": bound, "bound_lr": rate},
            lr=1e-2,
        )
        for row in (2, 3)
        for bound, rate in ((1.0, 2e-3), (2.0, 2e-3), (5.0, 1e-2))
    ),
]


def main(words: list[str]) -> None:
    done = set()
    if RESULTS.exists():
        done = {json.loads(line)["name"] for line in RESULTS.read_text().splitlines()}
    torch.set_num_threads(1)
    for variant in VARIANTS:
        chosen = not words or any(word in variant.name for word in words)
        if variant.name in done or not chosen:
            continue
        row = load(variant.study)[variant.row - 1]
        preset = replace(choose("fast", row), **variant.preset)
        preset = replace(preset, contrastive=replace(preset.contrastive, **variant.training))
        result, history = run(row, "contrastive", variant.seed, preset, progress=variant.name)
        record = {**vars(variant), **result, "curve": history.records}
        RESULTS.parent.mkdir(exist_ok=True)
        with RESULTS.open("a") as file:
            file.write(json.dumps(record) + "\n")
        print(f"{variant.name}: {result['scores']} in {result['seconds']:.0f} s", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
