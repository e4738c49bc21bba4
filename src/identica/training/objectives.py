"""Training objectives: the contrastive one, and the supervised one as an upper bound."""

from __future__ import annotations

from typing import Protocol

from torch import Tensor, nn

from identica.encoders import ContrastiveModel
from identica.errors import InputError
from identica.losses import InfoNCE
from identica.process import Labelled, Pairs


class PairBatch(Protocol):
    """Observations that hold pairs, such as `Pairs`, `Pool` and `Walk`."""

    @property
    def observed(self) -> Tensor: ...

    def split(self, codes: Tensor, /) -> tuple[Tensor, Tensor]: ...


class Contrastive(nn.Module):
    """The contrastive objective: the loss of the codes of each pair.

    Args:
        model: from observations to codes; its potential, if it has one, is handed to the loss.
        loss: of codes and their positives, such as `InfoNCE`.
    """

    def __init__(self, model: nn.Module, loss: nn.Module) -> None:
        super().__init__()
        self.model, self.loss = model, loss
        if potential_of(model) is not None and not isinstance(loss, InfoNCE):
            raise InputError(f"loss must be InfoNCE for a model with a potential, got {loss}")

    def forward(self, batch: PairBatch) -> Tensor:
        h, h_pos = batch.split(self.model(batch.observed))
        potential = potential_of(self.model)
        return self.loss(h, h_pos) if potential is None else self.loss(h, h_pos, potential)


def potential_of(model: nn.Module) -> nn.Module | None:
    """The potential of a model, if it has one."""
    return model.potential if isinstance(model, ContrastiveModel) else None


class Supervised(nn.Module):
    """The supervised objective, an upper bound: mean squared error of the codes from the factors."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, batch: Pairs | Labelled) -> Tensor:
        return nn.functional.mse_loss(self.model(batch.x), batch.z)
