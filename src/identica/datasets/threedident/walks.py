"""Pairs drawn among existing images, and walks from image to image: nothing is rendered for them."""

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
GROUP = 512  # images between two reports of progress
BLOCK = 256  # chances that are added up at a time
LEAST = -120.0  # logarithm to base 2 of the least chance: numbers whose bits run out are slow


def positives_among(
    process: GenerativeProcess,
    raw_latents: NDArray[np.float64],
    *,
    draws: int = DRAWS,
    seed: int,
    tick: Tick | None = None,
) -> Rows:
    """For each image, rows of other images that are its positives, N×draws: drawn among all of them
    with probabilities proportional to p(z̃ | z).

    The latents must be uniform, and dense enough for the conditional to reach many of them: the pairs
    then follow the distribution of the process.

    Args:
        process: its conditional.
        raw_latents: N×10, of the images.
        draws: positives of each image.
        seed: determines them.
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
    found = np.empty(shape, np.int32)
    for start in range(0, n, GROUP):
        rows = (start, min(start + GROUP, n))
        _draw(z, rows, np.float32(rate), float(family.p), levels, found)
        if tick is not None:
            tick(rows[1], n)
    return found


def draw_rows(positives: Rows, size: int, generator: torch.Generator) -> tuple[Rows, Rows]:
    """Rows of random pairs: images, and one of the `positives` (N×K) of each."""
    rows = torch.randint(len(positives), (size,), generator=generator).numpy()
    which = torch.randint(positives.shape[1], (size,), generator=generator).numpy()
    return rows, positives[rows, which]


def walks(data: ImageSet, positives: Rows) -> Sampler:
    """A sampler of walks from image to image, each a positive of the one before it.

    An image is then in two pairs, so that a network has to encode half as many. A walk visits the
    neighbourhood of the walls of a box less often than uniform latents do.
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
    """For each row, the columns of z where its running sum of chances passes each level, a part of all."""
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
