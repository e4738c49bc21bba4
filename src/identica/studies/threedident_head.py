"""The head of a network by itself, on what the rest of the network makes of each image once."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from identica._check import InputError
from identica.datasets.threedident.pairs import as_images
from identica.datasets.threedident.storage import ImageSet
from identica.encoders import ContrastiveModel
from identica.process import Pairs
from identica.resnet import SmallResNet
from identica.studies.trained import fit
from identica.training import Contrastive, Training

BATCH = 256  # images read at a time
Codes = NDArray[np.float64]


def train_head(
    objective: Contrastive,
    pairs: tuple[ImageSet, ImageSet],
    training: Training,
    *,
    seed: int,
    test: ImageSet,
    score: Callable[[Codes], dict[str, float]],
    tick: Callable[[int], None],
) -> list[dict[str, float]]:
    """Train the head alone; what was recorded on the way, with scores of the codes of `test`.

    It takes minutes, so there are no checkpoints: `tick(step)` may end it, and it is then done again.
    """
    began = time.perf_counter()
    model = objective.model
    network = model.encoder
    if not isinstance(model, ContrastiveModel) or not isinstance(network, SmallResNet):
        raise InputError('head must be None unless network is "small": no other has a head apart')
    x, x_pos, x_test = (_read(network, data, lambda: tick(0)) for data in (*pairs, test))
    alone = ContrastiveModel(model.space, model.conditional, network.head, head=model.head)

    def sample(size: int, /, *, generator: torch.Generator) -> Pairs:
        rows = torch.randint(len(x), (size,), generator=generator)
        return Pairs(rows, rows, x[rows], x_pos[rows])

    @torch.no_grad()
    def scores() -> dict[str, float]:
        return score(alone(x_test).double().numpy())

    reading = time.perf_counter() - began
    history = fit(
        Contrastive(alone, objective.loss),
        sample,
        training,
        seed=seed,
        score=scores,
        tick=lambda step, _: tick(step),
    )
    return [record | {"seconds": record["seconds"] + reading} for record in history.records]


@torch.no_grad()
def _read(network: SmallResNet, data: ImageSet, tick: Callable[[], None]) -> Tensor:
    """What the head is given of all images of a data set."""
    network.eval()
    parts = []
    for start in range(0, len(data), BATCH):
        tick()
        parts.append(
            network.read(as_images(data.images(np.arange(start, min(start + BATCH, len(data))))))
        )
    return torch.cat(parts)
