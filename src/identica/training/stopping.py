"""Early stopping: averaged weights, of which those with the highest held-out score are kept."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from identica._validate import count, nonnegative
from identica.errors import InputError


@dataclass(frozen=True)
class Stopping:
    """Early stopping on a held-out score.

    An exponential moving average of the weights is evaluated, and the average with the highest score
    is kept.

    Args:
        score: name of the score; higher is better.
        patience: steps without improvement before training stops.
        memory: decay of the moving average per step.
    """

    score: str
    patience: int
    memory: float = 0.99

    def __post_init__(self) -> None:
        count("patience", self.patience)
        if not 0 <= nonnegative("memory", self.memory) < 1:
            raise InputError(f"memory must lie between 0 and 1, got {self.memory!r}")


class Best:
    """The average of the weights of an objective, and its best state so far."""

    def __init__(self, objective: nn.Module, stopping: Stopping) -> None:
        self.objective, self.stopping = objective, stopping
        self.parameters: list[Tensor] = [p for p in objective.parameters() if p.requires_grad]
        self.average = [p.detach().clone() for p in self.parameters]
        self.score, self.step = -math.inf, 0
        self.weights: dict[str, Tensor] | None = None

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Update the average with the weights after a step; early steps decay faster."""
        memory = min(self.stopping.memory, step / (step + 10))
        torch._foreach_lerp_(self.average, self.parameters, 1 - memory)

    @contextmanager
    def averaged(self) -> Iterator[None]:
        """Temporarily replace the weights of the objective by their average."""
        self._swap()
        try:
            yield
        finally:
            self._swap()

    def take(self, record: dict[str, float]) -> None:
        """Keep the averaged weights if their score is the highest so far."""
        if self.stopping.score not in record:
            raise InputError(f"score must return {self.stopping.score!r}, got {sorted(record)}")
        if not record[self.stopping.score] > self.score:
            return
        self.score, self.step = record[self.stopping.score], int(record["step"])
        with self.averaged():
            state = self.objective.state_dict()
            self.weights = {name: value.detach().clone() for name, value in state.items()}

    def exhausted(self, step: int) -> bool:
        """Whether the score has not improved for too long."""
        return step - self.step >= self.stopping.patience

    def restore(self) -> None:
        """Load the best weights into the objective."""
        if self.weights is not None:
            self.objective.load_state_dict(self.weights)

    def state(self) -> dict[str, Any]:
        """The state for a checkpoint."""
        state = {name: getattr(self, name) for name in ("average", "step", "weights")}
        return state | {"score": self.score if math.isfinite(self.score) else None}

    def load(self, state: dict[str, Any]) -> None:
        """Restore the result of `state`."""
        for mine, saved in zip(self.average, state["average"], strict=True):
            mine.copy_(saved)
        self.step, self.weights = int(state["step"]), state["weights"]
        self.score = -math.inf if state["score"] is None else float(state["score"])

    @torch.no_grad()
    def _swap(self) -> None:
        for mine, other in zip(self.parameters, self.average, strict=True):
            kept = mine.clone()
            mine.copy_(other)
            other.copy_(kept)
