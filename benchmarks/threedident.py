"""The ray caster of 3DIdent: images per second beside the matrix product's rate, PSNR from Cycles.

    python -m benchmarks.threedident [PICTURE.png]      # also: ours, Cycles', ten times the difference

Writes results/raycaster.md. That needs `3dident_cycles/renders.npz` under `IDENTICA_DATA`, and
`identica[blender]` for our own scene in Blender; without them, what can be measured is only printed.
"""

from __future__ import annotations

import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from benchmarks._measure import matmul_rate, seconds
from identica._io import write_text
from identica.datasets.root import data_root
from identica.datasets.threedident import blender, render
from identica.datasets.threedident.pictures import psnr
from identica.errors import InputError

SAMPLES = (4, 8, 16, 64)
RESULTS = Path(__file__).parent.parent / "results" / "raycaster.md"
CYCLES = data_root() / "3dident_cycles" / "renders.npz"
COMPARED = {name: f"PSNR from {name}, dB" for name in ("Cycles", "our scene in Blender")}


def cycles() -> tuple[NDArray[np.float64], NDArray[np.uint8]] | None:
    """Latents and 128×128 renders of Cycles, where they are at hand."""
    if not CYCLES.is_file():
        return None
    with np.load(CYCLES, allow_pickle=False) as data:
        return data["raw_latents"], data["images"]


def references() -> tuple[NDArray[np.float64] | None, dict[str, NDArray[np.uint8]]]:
    """Latents, and what there is to compare with at 128×128."""
    found = cycles()
    if found is None:
        return None, {}
    latents, images = found
    others = {"Cycles": images}
    try:
        blender.require()
    except InputError as error:
        print(error, file=sys.stderr)
    else:
        others["our scene in Blender"] = blender.render(latents, 128, 256)
    return latents, others


def measure(n: int = 256, repeat: int = 5) -> list[dict[str, Any]]:
    """A record for each number of samples: speed at 64×64, PSNR at 128×128."""
    latents = np.random.default_rng(0).uniform(-1, 1, (n, 10))
    records = []
    for samples in SAMPLES:
        wall = seconds(partial(render, latents, 64, samples), repeat=repeat)
        start = time.process_time()
        render(latents, 64, samples)
        record: dict[str, Any] = {
            "samples": samples,
            "images per second": f"{n / wall:.0f}",
            "CPU ms per image": f"{1e3 * (time.process_time() - start) / n:.2f}",
        }
        records.append(record)
    shown, others = references()
    for record in records:
        for name, images in others.items():
            score = psnr(render(shown, 128, record["samples"]), images)
            record[COMPARED[name]] = f"{score.mean():.2f} (at least {score.min():.2f})"
    return records


def picture(path: str, samples: int = 8, n: int = 6) -> None:
    """Ours, Cycles' and ten times the difference, side by side."""
    from matplotlib.image import imsave

    reference = cycles()
    if reference is None:
        raise SystemExit(f"{CYCLES} does not exist")
    latents, theirs = reference[0][:n], reference[1][:n]
    ours = render(latents, 128, samples)
    gap = np.clip(128 + 10 * (ours.astype(int) - theirs), 0, 255).astype(np.uint8)
    imsave(path, np.concatenate([np.concatenate(part, axis=1) for part in (ours, theirs, gap)]))


def main() -> None:
    """Measure, print the table, and write it if nothing is missing from it."""
    rates = [matmul_rate() / 1e9]
    records = measure()
    rates.append(matmul_rate() / 1e9)
    lines = ["# The ray caster at 64×64, and against Cycles at 128×128", ""]
    lines += [f"| {' | '.join(records[0])} |", "| --- " * len(records[0]) + "|"]
    lines += [f"| {' | '.join(map(str, record.values()))} |" for record in records]
    before, after = (f"{rate:.0f}" for rate in rates)
    lines += [
        "",
        f"On {numba.get_num_threads()} threads, beside a matrix product of {before} GFLOP/s in single "
        f"precision before and {after} after.",
        "",
    ]
    print("\n".join(lines))
    missing = [column for column in COMPARED.values() if column not in records[0]]
    if missing:
        print(
            f"{RESULTS} is left as it is: there is no {' and no '.join(missing)}", file=sys.stderr
        )
    else:
        write_text(RESULTS, "\n".join(lines))
    if len(sys.argv) > 1:
        picture(sys.argv[1])


if __name__ == "__main__":
    main()
