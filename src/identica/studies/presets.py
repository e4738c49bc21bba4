"""How a row is trained: the `paper` preset is the published recipe, the `fast` one takes minutes."""

from __future__ import annotations

from dataclasses import dataclass, replace

from identica._check import one_of
from identica.families import VonMisesFisher
from identica.spaces import Box
from identica.studies.tables import Row
from identica.training import Training

PRESETS = ("fast", "paper")


@dataclass(frozen=True)
class Preset:
    """Network, training and the options of loss and head that a table leaves open.

    Attributes:
        hidden: widths of the encoder's hidden layers.
        contrastive, supervised: how each is trained.
        symmetric: both members of a pair are anchors.
        negatives: negatives per anchor, all if None.
        effective_negatives: how many they are weighed as, their own number if None.
        bound, bound_lr: where the learnt side of a box starts, and the rate of its logarithm.
    """

    hidden: tuple[int, ...]
    contrastive: Training
    supervised: Training
    symmetric: bool = False
    negatives: int | None = None
    effective_negatives: int | None = None
    bound: float = 1.0
    bound_lr: float | None = None


PAPER = Preset(
    hidden=(100, 500, 500, 500, 500, 100),
    contrastive=Training(
        steps=300_000,
        batch=6144,
        lr=1e-4,
        optimizer="adam",
        warmup=0,
        decay=0,
        checkpoint_every=100,
    ),
    supervised=Training(
        steps=100_000,
        batch=6144,
        lr=1e-4,
        optimizer="adam",
        warmup=0,
        decay=0,
        checkpoint_every=100,
    ),
)

FAST = Preset(
    hidden=(128, 128, 128),
    contrastive=Training(steps=4000, batch=1024, lr=3e-3, checkpoint_every=250, score_every=200),
    supervised=Training(steps=1500, batch=1024, lr=3e-3, score_every=250),
)


def choose(name: str, row: Row) -> Preset:
    """The preset of a name for a row."""
    if one_of("preset", name, PRESETS) == "paper":
        return PAPER
    if isinstance(row.model, VonMisesFisher):
        return replace(FAST, symmetric=True)
    if isinstance(row.model_space, Box):
        return replace(FAST, bound=5.0, bound_lr=1e-2)
    return FAST
