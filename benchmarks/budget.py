"""How the R² of each factor of 3DIdent grows with the budget.

    python -m benchmarks.budget [STUDY]     # STUDY: results/icml-table4

Reads the histories of the finished runs of the study's first row and writes `budget.md` beside its
table: means over seeds, and what the last part does to each seed.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from identica.datasets.threedident import FACTORS
from identica.recipes.studies import THREEDIDENT
from identica.studies import find
from identica.studies.study import Finished, read_metrics
from identica.studies.table import finished, registered
from identica.studies.threedident_experiment import r2_of

STUDY = Path(__file__).parent.parent / "results" / "icml-table4"


Records = list[dict[str, float]]


def matched_runs(folder: Path) -> list[Finished]:
    """The finished runs of the first row with the fast preset, by seed."""
    study = find("icml-table4")
    row, found = study.rows[0], []
    for (number, kind, seed), name in sorted(registered(folder)[1].items()):
        if number == row.row and study.experiment(row, kind, seed, "fast").name == name:
            run = finished(folder, name, seed)
            found += [] if run is None else [run]
    if not found:
        sys.exit(f"{folder}: no finished run of row 1: `identica reproduce icml-table4 --rows 1`")
    return found


def table(runs: list[Records]) -> str:
    """Means over seeds in Markdown, every other record."""
    lines = [
        "# R² of each factor on unseen images, by budget",
        "",
        f"| steps | minutes | all | {' | '.join(FACTORS)} | MCC |",
        "| --- " * (len(FACTORS) + 4) + "|",
    ]
    for records in list(zip(*runs, strict=True))[1::2]:
        means = {key: float(np.mean([record[key] for record in records])) for key in records[0]}
        scores = [means["r2"], *(means[r2_of(name)] for name in FACTORS), means["mcc"]]
        cells = [f"{means['step']:.0f}", f"{means['seconds'] / 60:.1f}"]
        lines.append(f"| {' | '.join(cells + [f'{score:.3f}' for score in scores])} |")
    words = f"Means of {len(runs)} seeds. {parts()}"
    return "\n".join([*lines, "", words, ""])


def by_seed(runs: dict[int, Records]) -> str:
    """What training the head alone, from a high temperature, does to each seed."""
    joint = before_the_head()
    lines = [
        "| seed | R² before the head is trained alone | after | MCC before | after |",
        "| --- " * 5 + "|",
    ]
    for seed, records in runs.items():
        (before,) = (record for record in records if record["step"] == joint)
        cells = [f"{r[key]:.3f}" for key in ("r2", "mcc") for r in (before, records[-1])]
        lines.append(f"| {seed} | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def before_the_head() -> int:
    """The steps in which the whole network is trained."""
    assert THREEDIDENT.walking is not None
    return sum(training.steps for training in THREEDIDENT.walking.on_images())


def parts() -> str:
    """Where the parts of a run begin."""
    how, joint = THREEDIDENT.walking, before_the_head()
    assert how is not None
    return (
        f"In the first {how.starts * how.start.steps} steps, {how.starts} networks start, and the best one "
        f"continues; up to step {joint - how.wide.steps} the pairs are narrower; after step {joint} the "
        f"head is trained alone, from a temperature of {how.heat:g} down to 1."
    )


def main(study: Path) -> None:
    runs = {run.seed: read_metrics(run.folder) for run in matched_runs(study)}
    text = f"{table(list(runs.values()))}\n{by_seed(runs)}"
    (study / "budget.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else STUDY)
