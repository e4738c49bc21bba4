"""Scores of the first row of 3DIdent on images by which nothing was chosen.

    python -m validation.fresh [STUDY]     # STUDY: results/icml-table4

Renders as many images as the runs are scored on, from other latents, and writes `fresh.md` beside the
table of the study: both scores of each finished run whose weights are there.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from benchmarks.budget import STUDY, matched_runs

from identica.datasets.threedident import FACTORS
from identica.datasets.threedident.pairs import rendered
from identica.runs.folder import WEIGHTS
from identica.studies import find
from identica.studies.study import Finished
from identica.studies.threedident_experiment import make_process, r2_of, scored

LATENTS = 20261118  # the seed of the latents; runs are trained on those of seed 0 and scored on those of 1
CHOSEN_BY = (0, 1, 2)  # seeds by whose scores the preset was chosen


def table(runs: list[Finished], folder: Path) -> str:
    """Both scores of each run in Markdown; images are rendered into a folder."""
    study = find("icml-table4")
    experiments = {run.seed: study.read_back(study.rows[0], run) for run in runs}
    images = experiments[runs[0].seed].images
    process = make_process(images)
    z = process.latents(images.test, generator=LATENTS, dtype=torch.float64)
    data = rendered(folder, process, z)
    found = {}
    for run in runs:
        _, model = experiments[run.seed].trained(run.folder)
        old, new = run.result["scores"], scored(model, data)
        worst = min(new[r2_of(name)] for name in FACTORS)
        found[run.seed] = [old["r2"], new["r2"], old["mcc"], new["mcc"], worst]
    rows = {str(seed): scores for seed, scores in found.items()}
    for name, chosen in (("seeds the preset was chosen by", True), ("other seeds", False)):
        group = [scores for seed, scores in found.items() if (seed in CHOSEN_BY) is chosen]
        if group:
            rows[f"mean of {name}"] = np.mean(group, axis=0).tolist()
    lines = [
        "# The matched row on images by which nothing was chosen",
        "",
        "| seed | R² in the table | on other images | MCC in the table | on other images | lowest R² |",
        "| --- " * 6 + "|",
    ]
    for name, scores in rows.items():
        lines.append(f"| {name} | {' | '.join(f'{score:.3f}' for score in scores)} |")
    words = f"{len(data)} images each. Lowest: of the ten factors, on other images."
    return "\n".join([*lines, "", words, ""])


def main(study: Path) -> None:
    trained = [run for run in matched_runs(study) if (run.folder / WEIGHTS).exists()]
    if not trained:
        sys.exit(
            f"{study}: no weights of row 1, which git does not keep: "
            "`identica reproduce icml-table4 --rows 1 --out DIR`, and give DIR"
        )
    with TemporaryDirectory() as folder:
        text = table(trained, Path(folder) / "images")
    (study / "fresh.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else STUDY)
