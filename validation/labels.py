"""Codes trained by labels, beside CEBRA-Behavior: how well they tell the position of a rat.

    python -m validation.labels [NAME …]       # writes results/labels.json and .md

Labels are position and direction of the first four fifths of a recording; the last fifth is decoded from
codes alone, by the decoder of the study `recordings`. A recording that is measured again replaces its old
figures; the others stay, and so do those of CEBRA where it is not installed. One thread.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from identica import ContrastiveICA
from identica._io import write_json, write_text
from identica.datasets import recordings
from identica.studies import decoding, peers
from identica.studies.recordings import RecordingRow, RecordingRun

RESULTS = Path(__file__).parent.parent / "results" / "labels.json"
TABLE = RESULTS.with_suffix(".md")
RATS = {"achilles": "rat Achilles", "gatsby": "rat Gatsby"}
CODES = 8
ITERATIONS = 2000  # of CEBRA

Labels = peers.Counts


def by_labels(counts: peers.Counts, labels: Labels, *, seed: int) -> peers.Encode:
    """Codes by `fit(X, labels=…)`, with the defaults."""
    ica = ContrastiveICA(CODES, random_state=seed).fit(counts, labels=labels)
    return lambda rows: np.asarray(ica.transform(rows), float)


def cebra_behavior(counts: peers.Counts, labels: Labels, *, seed: int) -> peers.Encode:
    """Codes of CEBRA-Behavior."""
    return peers.cebra(counts, CODES, labels=labels, iterations=ITERATIONS, seed=seed)


# what is fitted, and from how many seeds
MODELS: dict[str, tuple[Callable[..., peers.Encode], int]] = {
    "ContrastiveICA, labels": (by_labels, 3),
    "CEBRA-Behavior": (cebra_behavior, 1),
}


def measure(name: str, encoder: Callable[..., peers.Encode], seed: int) -> dict[str, float]:
    """Median errors of the decoded position in centimetres, of codes as they are and smoothed."""
    data = recordings.load(name)
    assert data.direction is not None
    known = slice(decoding.train_rows(len(data)))
    labels = np.column_stack([data.label[known], data.direction[known]]).astype(float)
    start = time.perf_counter()
    encode = encoder(data.counts[known], labels, seed=seed)
    seconds = time.perf_counter() - start
    run = RecordingRun(RecordingRow(0, name, "position", CODES), "labels", seed)
    scores, _ = decoding.scores("position", run.coded(encode, data))
    errors = {key: round(100 * recordings.TRACK * value, 3) for key, value in scores.items()}
    return {"seed": seed, **errors, "seconds": round(seconds, 1)}


def table(results: dict[str, dict[str, list[dict[str, float]]]]) -> str:
    """The figures as Markdown: means, and the largest errors."""
    lines = [
        "| recording | model | seeds | median error | greatest | smoothed | greatest | seconds |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, words in RATS.items():
        for model, runs in results.get(name, {}).items():
            cells = [words, model, str(len(runs))]
            for key in ("position_error", "position_error_smoothed"):
                values = [run[key] for run in runs]
                cells += [f"{np.mean(values):.2f} cm", f"{max(values):.2f} cm"]
            lines.append(f"| {' | '.join(cells)} | {np.mean([r['seconds'] for r in runs]):.0f} |")
    return "\n".join(lines) + "\n"


def main(names: list[str]) -> int:
    unknown = [name for name in names if name not in RATS]
    if unknown:
        print(f"unknown recording {unknown[0]!r}: choose from {', '.join(RATS)}", file=sys.stderr)
        return 2
    torch.set_num_threads(1)
    results: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name in names or RATS:
        for model, (encoder, seeds) in MODELS.items():
            if encoder is cebra_behavior and not peers.cebra_is_installed():
                continue
            runs = []
            for seed in range(seeds):
                runs.append(measure(name, encoder, seed))
                print(name, model, runs[-1], flush=True)
            results.setdefault(name, {})[model] = runs
            write_json(RESULTS, results)
            write_text(TABLE, table(results))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
