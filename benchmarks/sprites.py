"""dSprites re-rendered: real frames bit for bit, images per second, pairs beside steps.

    python -m benchmarks.sprites        # writes results/sprites.json (a minute)

The frames need `dsprites/real_frames.npz` under `IDENTICA_DATA`.
"""

from __future__ import annotations

import json
import platform
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks._measure import matmul_rate, seconds
from identica.datasets import dsprites
from identica.datasets.root import data_root
from identica.studies import find
from identica.studies.sprites import load, sampler
from identica.training.optimizers import make_optimizer

RESULTS = Path(__file__).parent.parent / "results" / "sprites.json"
FRAMES = data_root() / "dsprites" / "real_frames.npz"


def real_frames() -> dict[str, int] | None:
    """How many real frames are drawn bit for bit, and how many pixels are off, where at hand."""
    if not FRAMES.is_file():
        return None
    with np.load(FRAMES, allow_pickle=False) as frames:
        real, classes = dsprites.unpack(frames["images_packed"]), frames["latents_classes"]
    off = (dsprites.render(classes) != real).sum(axis=(1, 2))
    return {
        "frames": len(real),
        "bit_exact": int((off == 0).sum()),
        "pixels_off": int(off.sum()),
        "white_pixels": int(real.sum()),
    }


def rendering(n: int = 20_000) -> dict[str, float]:
    """Images of random factors per second, on one core."""
    wall = seconds(partial(dsprites.render, dsprites.sample(n, rng=0)))
    return {"images": n, "images_per_second": round(n / wall)}


def pairs_beside_steps() -> list[dict[str, Any]]:
    """Time to draw a batch of pairs, and to take a step of training with it, by method."""
    study: Any = find("workshop-table2")
    records = []
    for row in (study.rows[4], study.rows[7]):
        experiment = study.experiment(row, row.kind, 0, "fast")
        training = experiment.recipe.training
        objective, _ = experiment.objective()
        optimizer = make_optimizer(objective, training)
        generator = torch.Generator().manual_seed(0)
        sample = partial(sampler(load(row)), training.batch, generator=generator)
        batch = sample()

        def step(
            objective: Any = objective, batch: Any = batch, optimizer: Any = optimizer
        ) -> None:
            optimizer.zero_grad()
            objective(batch).backward()
            optimizer.step()

        drawn, trained = seconds(sample, repeat=20), seconds(step, repeat=10, warm_up=3)
        records.append(
            {
                "method": row.method,
                "pairs": training.batch,
                "draw_ms": round(1e3 * drawn, 2),
                "step_ms": round(1e3 * trained, 2),
                "draw_per_step": round(drawn / trained, 4),
            }
        )
    return records


def main() -> None:
    """Measure, print and write."""
    found = {
        "matmul_gflops": round(matmul_rate() / 1e9, 1),
        "threads": torch.get_num_threads(),
        "machine": f"{platform.machine()}, {platform.system()}, torch {torch.__version__}",
        "real_frames": real_frames(),
        "rendering": rendering(),
        "pairs": pairs_beside_steps(),
    }
    text = json.dumps(found, indent=1)
    print(text)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(text + "\n")


if __name__ == "__main__":
    main()
