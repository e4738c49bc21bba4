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
from identica.studies import threedident_run as runs
from identica.studies.threedident import ROWS
from identica.studies.threedident_settings import FAST, as_trained, r2_of
from identica.studies.trained import WEIGHTS

LATENTS = 20261118  # the seed of the latents; runs are trained on those of seed 0 and scored on those of 1


def table(study: Path, folder: Path) -> str:
    """Both scores of each run in Markdown; images are rendered into a folder."""
    row = as_trained(ROWS[0], FAST)
    process = runs.make_process(row, FAST.images)
    z = process.latents(FAST.images.test, generator=LATENTS, dtype=torch.float64)
    data = rendered(folder, process, z)
    found = []
    for seed, run in finished(study).items():
        if (run / WEIGHTS).exists():
            objective, encode = runs.make_objective(row, FAST, seed)
            checkpoints.load_weights(run / WEIGHTS, objective)
            new = runs.scores(data.raw_latents, runs.codes_of(encode.eval(), data))
            old = json.loads((run / "result.json").read_text(encoding="utf-8"))["scores"]
            worst = min(new[r2_of(name)] for name in FACTORS)
            found.append([seed, old["r2"], new["r2"], old["mcc"], new["mcc"], worst])
    lines = [
        "# The matched row on images by which nothing was chosen",
        "",
        "| seed | R² in the table | on other images | MCC in the table | on other images | lowest R² |",
        "| --- " * 6 + "|",
        *(
            f"| {seed} | {' | '.join(f'{score:.3f}' for score in scores)} |"
            for seed, *scores in found
        ),
        f"| mean | {' | '.join(f'{score:.3f}' for score in np.mean(found, axis=0)[1:])} |",
    ]
    words = f"{len(data)} images each. Lowest: of the ten factors, on other images."
    return "\n".join([*lines, "", words, ""])


def main(study: Path) -> None:
    with TemporaryDirectory() as folder:
        text = table(study, Path(folder) / "images")
    (study / "fresh.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else STUDY)
