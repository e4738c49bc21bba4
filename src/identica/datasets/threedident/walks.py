"""Positives drawn among existing images, and walks from image to image, without rendering."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numba import njit
from numpy.typing import NDArray

from identica._powers import exp2
from identica._random import as_generator
from identica._validate import count
from identica.datasets.threedident.pairs import Rows, Sampler, check_pairs, take
from identica.datasets.threedident.storage import ImageSet, Tick
from identica.errors import InputError
from identica.families import Uniform
from identica.process import GenerativeProcess, Walk
from identica.spaces import Box

DRAWS = 16  # positives stored for each image
GROUP = 512  # images between progress reports
BLOCK = 256  # probabilities summed in one block
LEAST = -120.0  # log₂ of the smallest probability: subnormal numbers are slow


def positives_among(
    process: GenerativeProcess,
    raw_latents: NDArray[np.float64],
    *,
    draws: int = DRAWS,
    seed: int,
    tick: Tick | None = None,
) -> Rows:
    """Draw positives of each image, N×draws rows, among all images with probabilities proportional to
    p(z̃ | z).

    The latents must be uniform, and dense enough for the conditional to reach many of them: the pairs
    then follow the distribution of the process.

    Args:
        process: process with the conditional.
        raw_latents: latents of the images, N×10.
        draws: number of positives per image.
        seed: seed of the draws.
        tick: progress callback, called with the number of images so far and in total.
    """
    n, family = len(raw_latents), process.conditional
    check_pairs(process, n)
    if not isinstance(process.space, Box) or not isinstance(process.marginal, Uniform):
        raise InputError(f"process must have uniform latents in a box, got {process}")
    if family.p is None:
        raise InputError(f"process must have a conditional with a distance, got {family}")
    shape = (n, count("draws", draws))
    levels = torch.rand(shape, generator=as_generator(seed), dtype=torch.float64).numpy()
    rate = family.precision / math.log(2)
    z = np.ascontiguousarray(raw_latents.T, np.float32)  # a factor's values side by side
    candidates = np.empty(shape, np.int32)
    for start in range(0, n, GROUP):
        rows = (start, min(start + GROUP, n))
        _draw(z, rows, np.float32(rate), float(family.p), levels, candidates)
        if tick is not None:
            tick(rows[1], n)
    return candidates


def draw_rows(positives: Rows, size: int, generator: torch.Generator) -> tuple[Rows, Rows]:
    """Rows of random pairs: images, and one of the `positives` (N×K) of each."""
    rows = torch.randint(len(positives), (size,), generator=generator).numpy()
    which = torch.randint(positives.shape[1], (size,), generator=generator).numpy()
    return rows, positives[rows, which]


def walks(data: ImageSet, positives: Rows) -> Sampler:
    """A sampler of walks, in which each image is a positive of the previous one.

    Each image is in two pairs, so a network encodes half as many images. Walks visit the neighbourhood of
    the walls of a box less often than uniform latents do.
    """

    def sample(size: int, /, *, generator: torch.Generator) -> Walk:
        rows = np.empty(size, np.intp)
        (row,) = torch.randint(len(positives), (1,), generator=generator).tolist()
        which = torch.randint(positives.shape[1], (size,), generator=generator).tolist()
        for step, turn in enumerate(which):
            rows[step] = row
            row = positives[row, turn]
        return Walk(*take(data, rows))

    return sample


@njit(fastmath={"reassoc", "contract", "nsz", "arcp"}, error_model="numpy", nogil=True, cache=True)
def _draw(
    z: NDArray[np.float32],
    rows: tuple[int, int],
    rate: Any,
    p: float,
    levels: NDArray[np.float64],
    found: NDArray[np.int32],
) -> None:
    """For each row, the columns of z at which the cumulative probability passes each level."""
    n = z.shape[1]
    chances, sums = np.empty(n, np.float32), np.empty(-(-n // BLOCK))
    for row in range(rows[0], rows[1]):
        chances[:] = 0
        for d in range(len(z)):
            here, there = z[d, row], z[d]
            if p == 1:
                for j in range(n):
                    chances[j] += abs(there[j] - here)
            elif p == 2:
                for j in range(n):
                    chances[j] += (there[j] - here) ** 2
            else:
                for j in range(n):
                    chances[j] += abs(there[j] - here) ** np.float32(p)
        chances[row] = np.inf
        nearest = chances.min()
        for j in range(n):
            chances[j] = exp2(max(rate * (nearest - chances[j]), np.float32(LEAST)))
        chances[row] = 0
        for block in range(len(sums)):
            part = np.float32(0)
            for j in range(block * BLOCK, min(n, (block + 1) * BLOCK)):
                part += chances[j]
            sums[block] = part
        total = sums.sum()
        for k in range(levels.shape[1]):
            left, block = levels[row, k] * total, 0
            while block < len(sums) - 1 and left >= sums[block]:
                left -= sums[block]
                block += 1
            j, last = block * BLOCK, min(n, (block + 1) * BLOCK) - 1
            while j < last and (left >= chances[j] or j == row):
                left -= chances[j]
                j += 1
            found[row, k] = j if j != row else j - 1
