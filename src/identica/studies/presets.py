"""How a row is trained: the `paper` preset is the published recipe, the `fast` one takes minutes."""

from __future__ import annotations

from dataclasses import dataclass, replace

from identica._validate import one_of
from identica.families import Uniform, VonMisesFisher
from identica.spaces import Box
from identica.studies.tables import Row
from identica.training import Training

PRESETS = ("fast", "paper")
WIDE = 2.0  # concentration up to which a third or more of the candidates in a pool are accepted


@dataclass(frozen=True)
class Preset:
    """Network, training and the options of loss and head that a table leaves open.

    Attributes:
        hidden: widths of the encoder's hidden layers.
        contrastive, supervised: how each is trained.
        symmetric: both members of a pair are anchors.
        negatives: negatives per anchor, all if None.
        effective_negatives: how many they are weighed as, their own number if None.
        positives: more than one share a pool of observations (`GenerativeProcess.pool`).
        tau_start: temperature at the start, from where it rises to 1 over the first 70 % of the steps.
        soften: the sphere closes in on the codes over the first half of the steps (`SphereHead`).
        bound, bound_lr: where the learnt side of a box starts, and the rate of its logarithm.
    """

    hidden: tuple[int, ...]
    contrastive: Training
    supervised: Training
    symmetric: bool = False
    negatives: int | None = None
    effective_negatives: int | None = None
    positives: int = 1
    tau_start: float | None = None
    soften: bool = False
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
    supervised=Training(steps=2000, score_every=250, checkpoint_every=250),
)


def choose(name: str, row: Row) -> Preset:
    """The preset of a name for a row.

    Why the fast one takes what it takes is in docs/speed.md; `python -m benchmarks.ablation` tries
    the alternatives.
    """
    if one_of("preset", name, PRESETS) == "paper":
        return PAPER
    bounded = isinstance(row.model_space, Box)
    if isinstance(row.conditional, VonMisesFisher) and row.conditional.kappa <= WIDE:
        # a pair says little of the factors, but an observation can serve in many pairs
        wide = replace(FAST, hidden=(64, 64, 64), positives=32, negatives=512, soften=True)
        return _long(wide, 2000, batch=4096)
    if isinstance(row.model, VonMisesFisher):
        # positives close together hardly move a loss with the temperature 1: start near their own
        if isinstance(row.conditional, VonMisesFisher):
            return _long(replace(FAST, symmetric=True, tau_start=0.1), 2000)
        # the narrower they are, the less the final temperature feels them (a marginal that is not
        # uniform bends the codes in any case)
        narrow = row.conditional.p == 2 and row.conditional.precision > 300
        narrow = narrow and isinstance(row.marginal, Uniform)
        return _long(replace(FAST, symmetric=True, tau_start=0.01), 6000 if narrow else 3000)
    p = row.model.p
    assert p is not None
    # only the walls of a box single out its axes: start where they are felt and grow slowly
    walls = {1.0: 1.0, 2.0: 2.0, 3.0: 5.0}
    preset = replace(FAST, bound=walls[p], bound_lr=2e-3) if bounded else FAST
    if p == 1:
        # weighed as very many, the self-pair hardly bends the solution; in a box it then takes long
        weighed = replace(preset, effective_negatives=20_000 if bounded else 1_000_000)
        return _long(weighed, 4000 if bounded else 2000)
    if p == 2:
        settled = 3000 if isinstance(row.marginal, Uniform) else 2000  # it bends all the same
        return _long(replace(preset, effective_negatives=6144 if bounded else None), settled)
    return _long(preset, 6000)  # linear maps are found soon, the axes late


def _long(preset: Preset, steps: int, batch: int = 1024) -> Preset:
    return replace(preset, contrastive=replace(preset.contrastive, steps=steps, batch=batch))
