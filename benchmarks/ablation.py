"""What matters for the fast preset: one change at a time, scored after a fixed number of steps.

    python -m benchmarks.ablation [NAME …]      # all, or those whose name holds one of the words

Every variant is a line of results/ablation.jsonl, and of the table results/ablation.md; a variant that
has its line is not run again.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from benchmarks._measure import trained
from identica import Normal, Sphere
from identica.studies import find
from identica.studies.synthetic import SyntheticExperiment

RESULTS = Path(__file__).parent.parent / "results" / "ablation.jsonl"


@dataclass(frozen=True)
class Variant:
    """A row with changes to its fast recipe (`preset`), its training, or the row itself (`process`)."""

    name: str
    study: str
    row: int
    preset: dict[str, Any] = field(default_factory=dict)
    training: dict[str, Any] = field(default_factory=dict)
    process: dict[str, Any] = field(default_factory=dict)
    seed: int = 0


def sphere(name: str, preset: dict[str, Any] | None = None, **training: Any) -> Variant:
    """Table 1 row 2, vMF(10)."""
    changes = {"steps": 1500, **training}
    return Variant(f"sphere vMF(10): {name}", "icml-table1", 2, preset or {}, changes)


def box(row: int, name: str, preset: dict[str, Any]) -> Variant:
    """The matched rows of table 2 and the one with a normal model."""
    kinds = {1: "Laplace", 2: "GenNorm(3)", 3: "Normal"}
    return Variant(f"box {kinds[row]}: {name}", "icml-table2", row, preset, {"steps": 2000})


VARIANTS = [
    # optimiser and learning rate
    *(sphere(f"Adam, lr {lr:g}", optimizer="adam", lr=lr) for lr in (1e-3, 3e-3)),
    sphere("Muon, lr 0.02", optimizer="muon", lr=2e-2),
    *(sphere(f"SOAP, lr {lr:g}", lr=lr) for lr in (3e-3, 1e-2, 2e-2)),
    # network, batch, negatives per anchor, both members as anchors
    *(sphere(f"hidden {h}", {"network": h}) for h in ((128, 128), (64, 64, 64), (256, 256, 256))),
    *(sphere(f"batch {batch}", batch=batch) for batch in (512, 2048)),
    sphere("64 negatives", {"negatives": 64}),
    sphere("one way", {"symmetric": False}),
    # the temperature at the start
    sphere("temperature 1 from the start", {"tau_start": None}),
    *(
        Variant(
            f"sphere Normal(.05): temperature from {start or 1:g}",
            "icml-table1",
            4,
            {"tau_start": start},
        )
        for start in (None, 0.1, 0.01)
    ),
    # how many pairs share the observations of a batch
    *(
        Variant(
            f"sphere vMF(1): {k} positives", "icml-table1", 1, {"positives": k}, {"steps": 1000}
        )
        for k in (1, 8, 32)
    ),
    # the scale of the box: what the negatives are weighed as, where the bound starts, its rate
    *(
        box(1, f"weighed as {m or 'they are'}", {"effective_negatives": m})
        for m in (None, 6144, 20_000, 1_000_000)
    ),
    *(
        box(row, f"bound from {bound:g} at rate {rate:g}", {"bound": bound, "bound_lr": rate})
        for row in (2, 3)
        for bound, rate in ((1.0, 2e-3), (2.0, 2e-3), (5.0, 2e-3), (5.0, 1e-2))
    ),
    # normal factors without bounds, with positives as far apart as printed and as the authors' program
    # takes them if it is not told otherwise
    *(
        Variant(
            f"unbounded row {row}: conditional {conditional}, seed {seed}",
            "icml-table1",
            row,
            training={"steps": 4000},
            process={"conditional": conditional},
            seed=seed,
        )
        for row in (11, 12)
        for conditional, seeds in ((Normal(1.0), (0,)), (Normal(0.05), (0, 1, 2)))
        for seed in seeds
    ),
    *(
        Variant(
            f"unbounded row {row}: conditional {Normal(0.05)}, weighed as 6144",
            "icml-table1",
            row,
            {"effective_negatives": 6144},
            {"steps": 4000},
            {"conditional": Normal(0.05)},
        )
        for row in (11, 12)
    ),
]


def loss_of_the_truth(experiment: SyntheticExperiment) -> float:
    """The loss of the true factors themselves at their best scale, on one batch."""
    row, recipe = experiment.row, experiment.recipe
    loss = replace(recipe, tau_start=None).loss(row.model)
    process = replace(experiment, seed=0).process()
    z, z_pos = process.sample(recipe.training.batch, generator=1)[:2]
    fixed = isinstance(row.model_space, Sphere)
    scales = torch.ones(1) if fixed else torch.logspace(-2, 2, 81)
    return min(loss(scale * z, scale * z_pos).item() for scale in scales)


def table() -> str:
    """All lines of the results as Markdown."""
    records = [json.loads(line) for line in RESULTS.read_text().splitlines()]
    lines = ["| variant | steps | R² | MCC | loss | loss of the true factors |", "|" + " --- |" * 6]
    for record in records:
        r2, mcc = (f"{record['scores'][name]:.4f}" for name in ("r2", "mcc"))
        steps, truth = record["steps"], f"{record['loss_of_the_truth']:.3f}"
        loss = f"{record['curve'][-1]['loss']:.3f}"
        lines.append(f"| {record['name']} | {steps} | {r2} | {mcc} | {loss} | {truth} |")
    return "\n".join(lines) + "\n"


def main(words: list[str]) -> None:
    done = set()
    if RESULTS.exists():
        done = {json.loads(line)["name"] for line in RESULTS.read_text().splitlines()}
    torch.set_num_threads(1)
    for variant in VARIANTS:
        chosen = not words or any(word in variant.name for word in words)
        if variant.name in done or not chosen:
            continue
        study: Any = find(variant.study)
        row = replace(study.rows[variant.row - 1], **variant.process)
        recipe = study.experiment(row, "contrastive", variant.seed, "fast").recipe
        training = replace(recipe.training, **variant.training)
        recipe = replace(recipe, **variant.preset, training=training)
        experiment = study.experiment(row, "contrastive", variant.seed, recipe)
        result, curve = trained(experiment, variant.name)
        process = {name: repr(value) for name, value in variant.process.items()}
        record = {**vars(variant), "process": process, **result, "curve": curve}
        record["steps"] = training.steps
        record["loss_of_the_truth"] = loss_of_the_truth(experiment)
        RESULTS.parent.mkdir(exist_ok=True)
        with RESULTS.open("a") as file:
            file.write(json.dumps(record) + "\n")
        RESULTS.with_suffix(".md").write_text(table(), encoding="utf-8")
        print(f"{variant.name}: {result['scores']} in {result['seconds']:.0f} s", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
