"""What `ContrastiveICA` recovers with its defaults, where the answer is known.

    python -m validation.own_data [NAME …]       # writes results/own_data.json and .md

five-factors: the README's lines. ten-factors: the paper's number of them. sequences: a slow random walk
in a box. kitti-masks: real masks in motion. A part that is measured again replaces its old figures; the
others stay.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from identica import Box, ContrastiveICA, GenerativeProcess, InvertibleMLP, Laplace, Uniform
from identica._io import write_json, write_text
from identica.datasets import kitti_masks
from identica.metrics import linear_r2, mcc

RESULTS = Path(__file__).parent.parent / "results" / "own_data.json"
TABLE = RESULTS.with_suffix(".md")
SEEDS = (0, 1, 2)


def pairs(n: int, space: str, seed: int) -> dict[str, float]:
    """100,000 pairs of factors in a box, scored on 5,000 others."""
    process = GenerativeProcess(Box(n), Uniform(), Laplace(0.05), InvertibleMLP(n, seed=seed))
    seen, unseen = process.sample(100_000, generator=0), process.sample(5000, generator=1)
    ica = ContrastiveICA(n, space=space, conditional="laplace", random_state=seed)
    codes = ica.fit(seen.x, seen.x_pos).transform(unseen.x)
    return {"r2": linear_r2(unseen.z, codes), "mcc": mcc(unseen.z, codes)}


def sequences(seed: int) -> dict[str, float]:
    """Five factors walk slowly between the walls of a box, 20,000 steps, seen through a hidden mixing;
    scored on the sequence itself."""
    steps = np.random.default_rng(seed).laplace(0, 0.05, (20_000, 5))
    walk = np.abs(np.cumsum(steps, axis=0) % 2 - 1)
    series = InvertibleMLP(5, seed=seed)(torch.from_numpy(walk).float())
    ica = ContrastiveICA(5, space="box", conditional="laplace", random_state=seed)
    codes = ica.fit_transform(series)
    return {"r2": linear_r2(walk, codes), "mcc": mcc(walk, codes)}


def kitti(seed: int) -> dict[str, float]:
    """Masks up to five frames apart, scored as in the study `workshop-table5`."""
    data = kitti_masks.load()
    groups = np.repeat(np.arange(len(data.seq_lengths)), data.seq_lengths)
    masks = data.frames(np.arange(len(data)))
    ica = ContrastiveICA(10, space="unbounded", conditional="laplace", random_state=seed)
    ica.fit(255 * masks, lag=(1, 5), groups=groups)
    chosen = np.random.default_rng(seed).permutation(len(data))[:10_000]
    codes = ica.transform(255 * masks[chosen])
    return {"mcc": mcc(data.latents[chosen], codes, method="spearman")}


PARTS: dict[str, tuple[str, Callable[[int], dict[str, float]]]] = {
    "five-factors": ('100,000 pairs of 5 factors, `space="box"`', partial(pairs, 5, "box")),
    "ten-factors": ("100,000 pairs of 10 factors", partial(pairs, 10, "unbounded")),
    "sequences": ('a walk of 20,000 steps of 5 factors, `space="box"`', sequences),
    "kitti-masks": ("KITTI Masks, lags of 1 to 5, 10 codes", kitti),
}


def table(results: dict[str, list[dict[str, float]]]) -> str:
    """The figures as Markdown: means, the least R² and MCC, and the longest time."""
    lines = ["| data | R² | least | MCC | least | seconds, at most |", "|---|---|---|---|---|---|"]
    for name, (words, _) in PARTS.items():
        cells = [words]
        for score in ("r2", "mcc"):
            values = [run[score] for run in results.get(name, []) if score in run]
            cells += [f"{np.mean(values):.3f}", f"{min(values):.3f}"] if values else ["–", "–"]
        if name in results:
            seconds = max(run["seconds"] for run in results[name])
            lines.append(f"| {' | '.join(cells)} | {seconds:.0f} |")
    return "\n".join(lines) + f"\n\n{len(SEEDS)} seeds each; both cores of the machine.\n"


def main(names: list[str]) -> int:
    unknown = [name for name in names if name not in PARTS]
    if unknown:
        print(f"unknown part {unknown[0]!r}: choose from {', '.join(PARTS)}", file=sys.stderr)
        return 2
    results: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name in names or PARTS:
        runs = []
        for seed in SEEDS:
            start = time.perf_counter()
            scores = {key: round(value, 5) for key, value in PARTS[name][1](seed).items()}
            runs.append({"seed": seed, **scores, "seconds": round(time.perf_counter() - start, 1)})
            print(name, runs[-1], flush=True)
        results[name] = runs
        write_json(RESULTS, results)
        write_text(TABLE, table(results))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
