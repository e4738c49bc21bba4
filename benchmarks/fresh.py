"""Scores of the first row of 3DIdent on images by which nothing was chosen.

    python -m benchmarks.fresh [STUDY]     # STUDY: results/icml-table4

Renders as many images as the runs are scored on, from other latents, and writes `fresh.md` beside the
table of the study: both scores of each finished run whose weights are there.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch

from benchmarks.budget import STUDY, finished
from identica import checkpoints
from identica.datasets.threedident import FACTORS
from identica.datasets.threedident.pairs import rendered
from identica.runs.folder import WEIGHTS
from identica.studies import threedident_run as runs
from identica.studies.threedident import ROWS
from identica.studies.threedident_settings import FAST, as_trained, r2_of

LATENTS = 20261118  # the seed of the latents; runs are trained on those of seed 0 and scored on those of 1
CHOSEN_BY = (0, 1, 2)  # seeds by whose scores the preset was chosen


def table(trained: dict[int, Path], folder: Path) -> str:
    """Both scores of each run in Markdown; images are rendered into a folder."""
    row = as_trained(ROWS[0], FAST)
    process = runs.make_process(row, FAST.images)
    z = process.latents(FAST.images.test, generator=LATENTS, dtype=torch.float64)
    data = rendered(folder, process, z)
    found = {}
    for seed, run in trained.items():
        objective, encode = runs.make_objective(row, FAST, seed)
        checkpoints.load_weights(run / WEIGHTS, objective)
        new = runs.scores(data.raw_latents, runs.codes_of(encode.eval(), data))
        old = json.loads((run / "result.json").read_text(encoding="utf-8"))["scores"]
        worst = min(new[r2_of(name)] for name in FACTORS)
        found[seed] = [old["r2"], new["r2"], old["mcc"], new["mcc"], worst]
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
    found = finished(study).items()
    trained = {seed: run for seed, run in found if (run / WEIGHTS).exists()}
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
