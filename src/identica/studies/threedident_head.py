"""The head of a network by itself, on what the rest of the network makes of each image once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from identica._check import InputError
from identica.datasets.threedident.pairs import as_images
from identica.datasets.threedident.storage import ImageSet
from identica.encoders import ContrastiveModel
from identica.resnet import SmallResNet

BATCH = 256  # images read at a time


def head_alone(model: nn.Module) -> tuple[ContrastiveModel, Callable[..., Tensor]]:
    """The model of the head alone, which is shared, and how to get its input.

    `read(data, tick)` gives what the rest of the network makes of the images of a data set.
    """
    network = getattr(model, "encoder", None)
    if not isinstance(model, ContrastiveModel) or not isinstance(network, SmallResNet):
        raise InputError('head must be None unless network is "small": no other has a head apart')
    alone = ContrastiveModel(model.space, model.conditional, network.head, head=model.head)

    @torch.no_grad()
    def read(data: ImageSet, tick: Callable[[], None]) -> Tensor:
        network.eval()
        parts = []
        for start in range(0, len(data), BATCH):
            tick()
            rows = np.arange(start, min(start + BATCH, len(data)))
            parts.append(network.read(as_images(data.images(rows))))
        return torch.cat(parts)

    return alone, read
