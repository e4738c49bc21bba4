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
    contrastive=Training(),
    supervised=Training(steps=600, score_every=100, checkpoint_every=200),
)


def choose(name: str, row: Row) -> Preset:
    """The preset of a name for a row.

    Why the fast one takes what it takes is in docs/speed.md; `python -m benchmarks.ablation` tries
    the alternatives.
    """
    if one_of("preset", name, PRESETS) == "paper":
        return PAPER
    model, p = row.model, None if isinstance(row.model, VonMisesFisher) else row.model.p
    bounded = isinstance(row.model_space, Box)
    if isinstance(model, VonMisesFisher):
        return replace(FAST, symmetric=True)
    if p == 1:
        # weighed as a million, the self-pair hardly bends the solution any more
        weighed = replace(FAST, effective_negatives=1_000_000)
        return replace(weighed, bound=8.0, bound_lr=1e-2) if bounded else weighed
    longer = replace(FAST, contrastive=replace(FAST.contrastive, steps=4000))
    if bounded and p == 2:
        # only the walls of the box single out its axes: start where they are felt and grow slowly
        return replace(longer, effective_negatives=6144, bound=2.0, bound_lr=2e-3)
    if bounded:
        return replace(longer, bound=5.0, bound_lr=2e-3)
    return longer
