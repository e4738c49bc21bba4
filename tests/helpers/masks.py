"""A small data set like KITTI Masks, and short trainings on it."""

import numpy as np

from identica import Training
from identica.datasets import kitti_masks
from identica.recipes import Recipe
from identica.studies.kitti import KittiTable
from identica.studies.published import WORKSHOP_TABLE5

TINY = Recipe(
    Training(steps=3, batch=4, lr=1e-3, optimizer="adam", warmup=0, checkpoint_every=2),
    network="conv",
    bound=3.0,
)


def boxes(sequences=12, frames=8, seed=0):
    """Masks of a rectangle that now and then jumps or grows."""
    rng = np.random.default_rng(seed)
    packed = []
    for _ in range(sequences):
        masks = np.zeros((frames, 64, 64), np.uint8)
        y, x, side = rng.integers(4, 40, 3) // [1, 1, 2]
        for mask in masks:
            step = rng.integers(-3, 4, 3) * (rng.random(3) < 0.3)
            y, x, side = np.clip(np.add([y, x, side], step), [0, 0, 4], [44, 44, 20])
            mask[y : y + side, x : x + side + 2] = 1
        packed.append(np.packbits(masks.reshape(frames, -1), axis=1))
    return kitti_masks._assemble(packed)


def study(*numbers):
    chosen = [WORKSHOP_TABLE5[n - 1] for n in numbers]
    return KittiTable("workshop-table5", "KITTI Masks", chosen)
