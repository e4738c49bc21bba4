"""What `ContrastiveICA` recovers with its defaults, where the answer is known.

    python -m validation.own_data [NAME …]       # writes results/own_data.json and .md

five-factors: the README's lines. ten-factors: the paper's number of them. sequences: a slow random walk
in a box. kitti-masks: real masks in motion. The others are walks of few factors as a recording has them: in
a table, in sessions, by sensors of whole numbers, in many noisy columns, in frames, in too few rows. A part
that is measured again replaces its old figures; the others stay. One thread.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from identica import Box, ContrastiveICA, GenerativeProcess, InvertibleMLP, Laplace, Uniform
from identica._io import write_json, write_text
from identica.datasets import kitti_masks
from identica.errors import TrustWarning
from identica.metrics import linear_r2, mcc

RESULTS = Path(__file__).parent.parent / "results" / "own_data.json"
TABLE = RESULTS.with_suffix(".md")
SEEDS = (0, 1, 2, 3, 4)


def pairs(n: int, space: str, seed: int, **options: Any) -> dict[str, float]:
    """100,000 pairs of factors in a box, scored on 5,000 others."""
    process = GenerativeProcess(Box(n), Uniform(), Laplace(0.05), InvertibleMLP(n, seed=seed))
    seen, unseen = process.sample(100_000, generator=0), process.sample(5000, generator=1)
    ica = ContrastiveICA(n, space=space, conditional="laplace", random_state=seed, **options)
    codes = ica.fit(seen.x, seen.x_pos).transform(unseen.x)
    return {"r2": linear_r2(unseen.z, codes), "mcc": mcc(unseen.z, codes)}


def sequences(seed: int, **options: Any) -> dict[str, float]:
    """Five factors walk slowly between the walls of a box, 20,000 steps, seen through a hidden mixing;
    scored on the sequence itself."""
    steps = np.random.default_rng(seed).laplace(0, 0.05, (20_000, 5))
    walk = np.abs(np.cumsum(steps, axis=0) % 2 - 1)
    series = InvertibleMLP(5, seed=seed)(torch.from_numpy(walk).float())
    ica = ContrastiveICA(5, space="box", conditional="laplace", random_state=seed, **options)
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


def walk(rng: np.random.Generator, rows: int, n: int = 3) -> NDArray[np.float64]:
    """Factors in a box, each with Laplace steps of scale 0.05 that stay inside."""
    z = np.empty((rows, n))
    z[0] = rng.random(n)
    for now, before in zip(z[1:], z, strict=False):
        steps = before + rng.laplace(0, 0.05, (20, n))  # the first that stays, of enough
        inside = (steps >= 0) & (steps <= 1)
        first = inside.argmax(0)
        now[:] = np.where(inside.any(0), steps[first, np.arange(n)], before)
    return z


def mixed(rng: np.random.Generator, z: NDArray[np.float64], columns: int) -> NDArray[np.float64]:
    """Observations of factors: orthogonal layers with leaky ReLUs, injective."""
    h = 2 * z - 1
    for _ in range(2):
        turn = np.linalg.qr(rng.normal(size=(columns, columns)))[0]
        h = h @ turn[: h.shape[1]] * np.sqrt(columns / h.shape[1]) + 0.3 * rng.normal(size=columns)
        h = np.where(h > 0, h, 0.2 * h)
    return h @ np.linalg.qr(rng.normal(size=(columns, columns)))[0]


def recording(kind: str, seed: int, **options: Any) -> dict[str, float]:
    """A walk as a recording has it, fitted with the defaults; scored on its last fifth."""
    rng = np.random.default_rng([zlib.crc32(kind.encode()), seed])
    rows = {"table": 6000, "sessions": 6000, "frames": 3000, "short": 300}
    clean = kind in ("clean", "invertible")
    n, total = 5 if clean else 3, 20_000 if clean else rows.get(kind, 10_000)
    groups = np.repeat(np.arange(5), 1200) if kind == "sessions" else None
    parts = 1 if groups is None else 5
    z = np.concatenate([walk(rng, total // parts, n) for _ in range(parts)])
    if kind == "sensors":  # of gains and offsets of their own
        x = mixed(rng, z, 8)
        gain = 10 ** rng.uniform(1.5, 3.5, 8)
        x = x / x.std(0) * gain + rng.uniform(-8, 8, 8) * gain + rng.normal(0, 1, x.shape)
        x = np.clip(np.round(x), -32768, 32767).astype(np.int16)
    elif kind == "noisy":  # a third of each column's standard deviation
        x = mixed(rng, z, 10) @ rng.normal(size=(10, 200))
        x = x / x.std(0) + 0.3 * rng.normal(size=x.shape)
    elif kind == "frames":  # a disc at some place, of some size
        grid = np.arange(64) + 0.5
        across, down = ((grid - 14 - 36 * z[:, k, None]) ** 2 for k in (0, 1))
        edge = np.sqrt(across[:, None, :] + down[:, :, None]) - (4 + 8 * z[:, 2, None, None])
        x = np.round(255 / (1 + np.exp(edge / 0.7))).astype(np.uint8)
    elif kind == "invertible":  # the mixing of the paper, in more columns than factors
        x = InvertibleMLP(n, seed=seed)(torch.from_numpy(z).float()).numpy()
        x = x @ rng.normal(size=(n, 20))
    else:
        x = mixed(rng, z, 20 if clean else 6)
    past, future = slice(0, total * 4 // 5), slice(total * 4 // 5, None)
    ica = ContrastiveICA(n, space="box", conditional="laplace", random_state=seed, **options)
    own = (None, None) if groups is None else (groups[past], groups[future])
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", TrustWarning)
        ica.fit(x[past], groups=own[0])
    codes = ica.transform(x[future], groups=own[1])
    order = rng.permutation(len(codes))  # as `linear_r2` asks of rows that are a sequence
    codes, factors = codes[order], z[future][order]
    scores = {"r2": linear_r2(factors, codes), "mcc": mcc(factors, codes)}
    return {**scores, "bits": ica.bits_, "refused": float(bool(said))}


PARTS: dict[str, tuple[str, Callable[[int], dict[str, float]]]] = {
    "five-factors": ('100,000 pairs of 5 factors, `space="box"`', partial(pairs, 5, "box")),
    "ten-factors": ("100,000 pairs of 10 factors", partial(pairs, 10, "unbounded")),
    "sequences": ('a walk of 20,000 steps of 5 factors, `space="box"`', sequences),
    "clean": ("a walk of 20,000 steps of 5 factors in 20 columns", partial(recording, "clean")),
    "invertible": (
        "the same walk through an invertible network, in 20 columns",
        partial(recording, "invertible"),
    ),
    "table": ("a walk of 6,000 steps of 3 factors in 6 columns", partial(recording, "table")),
    "sessions": ("the same in five sessions", partial(recording, "sessions")),
    "sensors": ("10,000 steps by 8 sensors of 16 bits", partial(recording, "sensors")),
    "noisy": ("10,000 steps in 200 noisy columns", partial(recording, "noisy")),
    "frames": ("3,000 frames of 64×64", partial(recording, "frames")),
    "short": ("300 steps in 6 columns", partial(recording, "short")),
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
        if any(run.get("refused") for run in results.get(name, [])):
            cells[0] += ": `fit` warns not to trust the codes"
        if name in results:
            seconds = max(run["seconds"] for run in results[name])
            lines.append(f"| {' | '.join(cells)} | {seconds:.0f} |")
    return "\n".join(lines) + f"\n\n{len(SEEDS)} seeds each; one thread.\n"


def main(names: list[str]) -> int:
    unknown = [name for name in names if name not in PARTS]
    if unknown:
        print(f"unknown part {unknown[0]!r}: choose from {', '.join(PARTS)}", file=sys.stderr)
        return 2
    torch.set_num_threads(1)
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
