"""What a potential costs where factors are uniform, and what it gains where they are not.

    python -m validation.any_marginal [NAME …]       # writes results/any_marginal.json and .md

`ContrastiveICA` with `marginal="uniform"` and "any", by the same seeds: on data of `validation.own_data`,
whose factors are uniform, and on others. `density` is the correlation of `log_density` with the truth,
where that is known, and `slope` the factor between them. Finished runs are not repeated. One thread.
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

from identica import (
    Box,
    ContrastiveICA,
    Euclidean,
    GenerativeProcess,
    InvertibleMLP,
    Laplace,
    Normal,
    Uniform,
)
from identica._io import write_json, write_text
from identica.families import Family
from identica.metrics import linear_r2, mcc
from identica.spaces import Space
from identica.studies.marginals import log_density_of_positives
from identica.studies.shapes import Shape
from validation import own_data
from validation._walks import autoregressive

RESULTS = Path(__file__).parent.parent / "results" / "any_marginal.json"
TABLE = RESULTS.with_suffix(".md")
SEEDS = (10, 11, 12)  # others than those the rate of the potential was chosen on
PLACES = 500  # at which densities are compared


def scores(ica: ContrastiveICA, x: Any, z: Any, log_density: Any = None) -> dict[str, float]:
    codes = ica.transform(x)
    order = np.random.default_rng(0).permutation(len(codes))  # as `linear_r2` asks of sequences
    found = {"r2": linear_r2(z[order], codes[order]), "mcc": mcc(z, codes)}
    if log_density is not None and ica.marginal == "any":
        estimate, truth = ica.log_density(x)[:PLACES], np.asarray(log_density)
        found["density"] = float(np.corrcoef(estimate, truth)[0, 1])
        found["slope"] = float(np.polyfit(truth, estimate, 1)[0])
    return found


def pairs(
    space: Space, law: Family, conditional: Family, codes: str, seed: int, **options: Any
) -> dict[str, float]:
    """20,000 pairs of factors with a marginal law, and a model of their form."""
    process = GenerativeProcess(space, law, conditional, InvertibleMLP(space.dim, seed=seed))
    seen, unseen = process.sample(20_000, generator=0), process.sample(4000, generator=1)
    family = "laplace" if isinstance(conditional, Laplace) else "normal"
    ica = ContrastiveICA(
        space.dim, space=codes, conditional=family, random_state=seed, **options
    ).fit(seen.x, seen.x_pos)
    truth = None
    if not isinstance(law, Uniform):
        truth = log_density_of_positives(process, unseen.z[:PLACES], generator=7)
    return scores(ica, unseen.x.numpy(), unseen.z.numpy(), truth)


def sequence(memory: float, codes: str, seed: int, **options: Any) -> dict[str, float]:
    """A normal autoregressive sequence of 3 factors in 6 columns; its last fifth is unseen."""
    rng = np.random.default_rng([5, seed])
    z = autoregressive(10_000, 3, memory)(rng)
    x = own_data.mixed(rng, z / 4 + 0.5, 6)
    ica = ContrastiveICA(3, space=codes, random_state=seed, **options).fit(x[:8000])
    return scores(ica, x[8000:], z[8000:], -0.5 * (z[8000:][:PLACES] ** 2).sum(1))


def recording(kind: str) -> Callable[..., dict[str, float]]:
    return partial(own_data.recording, kind)


PARTS: dict[str, tuple[str, Callable[..., dict[str, float]]]] = {
    "five-factors": ("uniform: 100,000 pairs of 5 factors", partial(own_data.pairs, 5, "box")),
    "sequences": ("uniform: a reflected walk of 20,000 steps", own_data.sequences),
    "table": ("uniform: a walk of 6,000 steps in 6 columns", recording("table")),
    "sessions": ("uniform: the same in five sessions", recording("sessions")),
    "sensors": ("uniform: 8 sensors of 16 bits", recording("sensors")),
    "noisy": ("uniform: 200 noisy columns", recording("noisy")),
    "box-normal": (
        "uniform: pairs in a box, normal steps",
        partial(pairs, Box(3), Uniform(), Normal(0.1), "box"),
    ),
    "skewed": (
        "skewed, Laplace steps, unbounded",
        partial(pairs, Euclidean(3), Shape("skewed"), Laplace(1.0), "unbounded"),
    ),
    "frames": ("uniform: 3,000 frames of 64×64", partial(own_data.recording, "frames")),
    "skewed-box": (
        "skewed in a box, normal steps",
        partial(pairs, Box(3), Shape("skewed"), Normal(0.15), "box"),
    ),
    "bimodal-box": (
        "two modes in a box, Laplace steps",
        partial(pairs, Box(3), Shape("bimodal"), Laplace(0.25), "box"),
    ),
    "autoregressive": ("normal sequence, unbounded", partial(sequence, 0.9, "unbounded")),
    "autoregressive-box": ("normal sequence, defaults (a box)", partial(sequence, 0.9, "box")),
}


def table(results: dict[str, list[dict[str, Any]]]) -> str:
    """Means over seeds as Markdown, "uniform" beside "any"."""
    lines = [
        "| data | seeds | R², uniform | any | MCC, uniform | any | density | slope | s, uniform | any |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, (words, _) in PARTS.items():
        if name not in results:
            continue
        by = {m: [r for r in results[name] if r["marginal"] == m] for m in ("uniform", "any")}
        if not by["any"]:
            continue
        both = {run["seed"] for run in by["any"]}
        by["uniform"] = [run for run in by["uniform"] if run["seed"] in both]
        cells = [words, str(len(by["any"]))]
        for key, digits in (("r2", 4), ("mcc", 4), ("density", 3), ("slope", 2), ("seconds", 0)):
            for marginal in ("any",) if key in ("density", "slope") else ("uniform", "any"):
                values = [run[key] for run in by[marginal] if key in run]
                cells.append(f"{np.mean(values):.{digits}f}" if values else "–")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main(names: list[str]) -> int:
    unknown = [name for name in names if name not in PARTS]
    if unknown:
        print(f"unknown part {unknown[0]!r}: choose from {', '.join(PARTS)}", file=sys.stderr)
        return 2
    torch.set_num_threads(1)
    results: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for seed in SEEDS:
        for name in names or PARTS:
            runs = results.setdefault(name, [])
            for marginal in ("uniform", "any"):
                if any((run["seed"], run["marginal"]) == (seed, marginal) for run in runs):
                    continue
                start = time.process_time()
                found = PARTS[name][1](seed=seed, marginal=marginal)
                seconds = round(time.process_time() - start, 1)
                found = {key: round(value, 5) for key, value in found.items()}
                runs.append({"seed": seed, "marginal": marginal, **found, "seconds": seconds})
                print(name, runs[-1], flush=True)
                write_json(RESULTS, results)
                write_text(TABLE, table(results))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
