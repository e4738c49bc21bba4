"""Construction of the optimisers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from identica.errors import InputError
from identica.heads import Head
from identica.potential import Potential

if TYPE_CHECKING:
    from identica.training import Training


def _soap(groups: list[dict[str, Any]]) -> torch.optim.Optimizer:
    from pytorch_optimizer import SOAP

    return SOAP(groups, weight_decay=0.0, precondition_frequency=10)


def _muon(groups: list[dict[str, Any]]) -> torch.optim.Optimizer:
    """Muon for the matrices, Adam at a tenth of the rate for the rest."""
    from pytorch_optimizer import Muon

    split = []
    for group in groups:
        for matrices in (True, False):
            params = [p for p in group["params"] if (p.ndim == 2) == matrices]
            lr = group["lr"] if matrices else group["lr"] / 10
            if params:
                split.append({"params": params, "lr": lr, "peak": lr, "use_muon": matrices})
    return Muon(split)


OPTIMIZERS: dict[str, Callable[[list[dict[str, Any]]], torch.optim.Optimizer]] = {
    "soap": _soap,
    "muon": _muon,
    # one operation for all parameters: a third of the time of a loop over them
    "adam": partial(torch.optim.Adam, fused=True),
    "adamw": partial(torch.optim.AdamW, weight_decay=0.01, fused=True),
}


def make_optimizer(objective: nn.Module, training: Training) -> torch.optim.Optimizer:
    """The optimiser of all parameters; heads and potentials may have learning rates of their own."""
    own = {
        id(p): module.lr
        for module in objective.modules()
        if isinstance(module, (Head, Potential)) and module.lr is not None
        for p in module.parameters()
    }
    rates: dict[float, list[nn.Parameter]] = {}
    for parameter in objective.parameters():
        if parameter.requires_grad:
            rates.setdefault(own.get(id(parameter), training.lr), []).append(parameter)
    if not rates:
        raise InputError("objective has no parameters to learn")
    groups = [{"params": params, "lr": lr, "peak": lr} for lr, params in rates.items()]
    return OPTIMIZERS[training.optimizer](groups)
