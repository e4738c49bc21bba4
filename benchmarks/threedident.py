"""The ray caster of 3DIdent: images per second beside the matrix product's rate, PSNR from Cycles.

    python -m benchmarks.threedident [PICTURE.png]      # also: ours, Cycles', ten times the difference

The PSNR needs `3dident_cycles/renders.npz` under `IDENTICA_DATA`.
"""

from __future__ import annotations

import sys
import time
from functools import partial
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from benchmarks._measure import matmul_rate, seconds
from identica.datasets._root import data_root
from identica.datasets.threedident import render

SAMPLES = (4, 8, 16, 64)
CYCLES = data_root() / "3dident_cycles" / "renders.npz"


def cycles() -> tuple[NDArray[np.float64], NDArray[np.uint8]] | None:
    """Latents and 128×128 renders of Cycles, where they are at hand."""
    if not CYCLES.is_file():
        return None
    with np.load(CYCLES, allow_pickle=False) as data:
        return data["raw_latents"], data["images"]


def psnr(images: NDArray[np.uint8], reference: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Peak signal to noise of each image, in dB."""
    error = np.mean((images.astype(float) - reference) ** 2, axis=(1, 2, 3))
    return np.asarray(10 * np.log10(255**2 / error))


def measure(n: int = 256, repeat: int = 5) -> list[dict[str, Any]]:
    """A record for each number of samples: speed at 64×64, PSNR at 128×128."""
    latents = np.random.default_rng(0).uniform(-1, 1, (n, 10))
    reference = cycles()
    records = []
    for samples in SAMPLES:
        wall = seconds(partial(render, latents, 64, samples), repeat=repeat)
        start = time.process_time()
        render(latents, 64, samples)
        record = {
            "samples": samples,
            "images_per_second": round(n / wall, 1),
            "cpu_ms_per_image": round(1e3 * (time.process_time() - start) / n, 2),
        }
        if reference:
            score = psnr(render(reference[0], 128, samples), reference[1])
            record |= {"psnr": round(score.mean(), 2), "psnr_min": round(score.min(), 2)}
        records.append(record)
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
    """Print the table."""
    print(f"matmul: {matmul_rate() / 1e9:.1f} GFLOP/s float32, {numba.get_num_threads()} threads")
    records = measure()
    print(" | ".join(records[0]))
    for record in records:
        print(" | ".join(map(str, record.values())))
    print(f"matmul: {matmul_rate() / 1e9:.1f} GFLOP/s float32")
    if len(sys.argv) > 1:
        picture(sys.argv[1])


if __name__ == "__main__":
    main()
