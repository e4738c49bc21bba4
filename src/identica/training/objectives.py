"""What is minimised: the contrastive objective, and the supervised one as an upper bound."""

from __future__ import annotations

from typing import Protocol

from torch import Tensor, nn

from identica.process import Labelled, Pairs


class PairBatch(Protocol):
    """Observations that hold pairs, such as `Pairs`, `Pool` and `Walk`."""

    @property
    def observed(self) -> Tensor: ...

    def split(self, codes: Tensor, /) -> tuple[Tensor, Tensor]: ...


class Contrastive(nn.Module):
    """The contrastive objective: the loss of the codes of each pair.

    Args:
        model: from observations to codes.
        loss: of codes and their positives, such as `InfoNCE`.
    """

    def __init__(self, model: nn.Module, loss: nn.Module) -> None:
        super().__init__()
        self.model, self.loss = model, loss

    def forward(self, batch: PairBatch) -> Tensor:
        return self.loss(*batch.split(self.model(batch.observed)))


class Supervised(nn.Module):
    """The supervised objective, an upper bound: mean squared error of the codes from the factors."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, batch: Pairs | Labelled) -> Tensor:
        return nn.functional.mse_loss(self.model(batch.x), batch.z)
