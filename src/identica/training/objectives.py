"""What is minimised: the contrastive objective, and the supervised one as an upper bound."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from identica.process import Labelled, Pairs, Pool, Walk


class Contrastive(nn.Module):
    """The contrastive objective: the loss of the codes of each pair.

    Args:
        model: from observations to codes.
        loss: of codes and their positives, such as `InfoNCE`.
        autocast: run the model in bfloat16 where torch deems it safe, and the loss in float32. It
            helps on GPUs and on CPUs with such units.
    """

    def __init__(self, model: nn.Module, loss: nn.Module, *, autocast: bool = False) -> None:
        super().__init__()
        self.model, self.loss, self.autocast = model, loss, autocast

    def forward(self, batch: Pairs | Pool | Walk) -> Tensor:
        x = batch.x if isinstance(batch, Pool | Walk) else torch.cat([batch.x, batch.x_pos])
        with torch.autocast(x.device.type, torch.bfloat16, enabled=self.autocast):
            codes = self.model(x)
        codes = codes.float() if self.autocast else codes
        if isinstance(batch, Pool):
            return self.loss(codes, nn.functional.embedding(batch.positives, codes))
        if isinstance(batch, Walk):
            return self.loss(codes[:-1], codes[1:])
        return self.loss(*codes.chunk(2))


class Supervised(nn.Module):
    """The supervised objective, an upper bound: mean squared error of the codes from the factors."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, batch: Pairs | Labelled) -> Tensor:
        return nn.functional.mse_loss(self.model(batch.x), batch.z)
