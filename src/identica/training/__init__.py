"""One training loop for everything: supervised or contrastive, from the start or from a checkpoint."""

from __future__ import annotations

from identica.training.loop import History, Sampler, Training, train, write_metrics
from identica.training.objectives import Contrastive, Supervised
from identica.training.stopping import Stopping

__all__ = [
    "Contrastive",
    "History",
    "Sampler",
    "Stopping",
    "Supervised",
    "Training",
    "train",
    "write_metrics",
]
