"""How the R² of each factor of 3DIdent grows with the budget.

    python -m benchmarks.budget [STUDY]     # STUDY: results/icml-table4

Reads the histories of the finished runs of the study's first row and writes `budget.md` beside its
table: means over seeds.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

from identica.datasets.threedident import FACTORS
from identica.studies.threedident import ROWS
from identica.studies.threedident_run import FAST, describe, r2_of
from identica.studies.trained import read_metrics

STUDY = Path(__file__).parent.parent / "results" / "icml-table4"


def histories(study: Path) -> list[list[dict[str, float]]]:
    """What was recorded during each finished run of the first row with the fast preset."""
    found = []
    for folder in sorted((study / "runs").iterdir()):
        if not (folder / "result.json").exists():
            continue
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        if config.items() >= describe(ROWS[0], config["seed"], FAST).items():
            found.append(read_metrics(folder))
    return found


def table(runs: list[list[dict[str, float]]]) -> str:
    """The table in Markdown, every other record; a run that stopped early ends it for all."""
    lines = [
        "# R² of each factor on unseen images, by budget",
        "",
        f"| steps | minutes | all | {' | '.join(FACTORS)} | MCC |",
        "| --- " * (len(FACTORS) + 4) + "|",
    ]
    for records in list(zip(*runs, strict=False))[1::2]:
        means = {key: float(np.mean([record[key] for record in records])) for key in records[0]}
        scores = [means["r2"], *(means[r2_of(name)] for name in FACTORS), means["mcc"]]
        cells = [f"{means['step']:.0f}", f"{means['seconds'] / 60:.1f}"]
        lines.append(f"| {' | '.join(cells + [f'{score:.3f}' for score in scores])} |")
    words = f"Means of {len(runs)} seeds, one core each. {parts()}"
    return "\n".join([*lines, "", words, ""])


def parts() -> str:
    """Where the parts of a run begin."""
    assert FAST.start is not None
    assert FAST.narrow is not None
    starts = FAST.starts * FAST.start.steps
    narrow = starts + FAST.narrow.steps
    return (
        f"The first {starts} steps are those of {FAST.starts} networks of which one goes on; up to step "
        f"{narrow} the pairs are narrower; after step {narrow + FAST.contrastive.steps} the head is "
        "trained alone."
    )


def main(study: Path) -> None:
    runs = histories(study)
    if not runs:
        sys.exit(f"{study}: no finished run of row 1: `identica reproduce icml-table4 --rows 1`")
    (study / "budget.md").write_text(table(runs), encoding="utf-8")
    print(table(runs))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else STUDY)
