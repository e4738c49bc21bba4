"""A recipe: network, optimisation, and the options of loss and head that a model leaves open."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from identica._validate import one_of
from identica.encoders import MLP
from identica.families import Family
from identica.heads import BoxHead, Head, SphereHead, make_head
from identica.losses import InfoNCE
from identica.potential import Potential
from identica.spaces import Box, Space, Sphere
from identica.training import Training

PRESETS = ("fast", "paper")
SOFT = 0.5  # fraction of the training over which codes are gradually normalised (`soften`)
WARM = 0.7  # fraction of the training over which the temperature is annealed (`tau_start`)
PULLING = 0.25, 0.6  # fractions of the training at which a pull starts, and is complete


@dataclass(frozen=True)
class Recipe:
    """How to train: network, optimisation, and the options of loss and head that a model leaves open.

    Attributes:
        training: steps, batch, optimiser and learning rate.
        network: widths of the hidden layers of an MLP, or the name of a network for images.
        self_negative: each anchor counts among its own negatives, as published. This fixes the scale of the
            solution, except on a sphere, where it hardly matters.
        symmetric: both members of a pair are anchors, which learns more from the same observations.
        negatives: negatives per anchor; all if None.
        effective_negatives: number of negatives to weight those of the batch as; None for no weighting.
        negatives_from: "anchors", as published, or the other "positives" of the batch.
        potential: whether a learnt term of the loss absorbs the marginal (`Potential`).
        curved: whether that term is a smooth network with a quadratic function beside it.
        potential_lr: the learning rate of that term; that of the encoder if None.
        refine: further steps at the end, of that term alone, with fixed codes.
        pull: gain of the attraction between positives that are close together on a sphere (`InfoNCE`). It
            starts after a quarter of the steps, when codes have spread, and is complete after three fifths.
        positives: positives per anchor; more than one come from a pool (`GenerativeProcess.pool`).
        tau, learn_tau: temperature, and whether it is learnt.
        tau_start: initial temperature, annealed to `tau` over the first 70 % of the steps.
        soften: normalise codes gradually over the first half of the steps (`SphereHead`).
        radius: initial value of the learnt radius of a sphere; None for a fixed radius.
        bound, bound_lr: initial value of the learnt side of a box, and the learning rate of the logarithm of
            the side or radius; with None, the side is fixed if the model is the process.
        alpha_start: initial α of L_AU if α is above .99, with which training is slow.
        dropout: fraction of the inputs of an MLP that is dropped in training.
        whiten: a study whitens the observations for its MLP, as `ContrastiveICA` always does.
        handicap: fraction of its held-out evidence that a candidate loses when it is compared with others.
        raw: the MLP takes the columns of the observations, not their predictable directions.
        walking: training of an image model on walks, instead of `training`.
    """

    training: Training
    network: tuple[int, ...] | str = (128, 128, 128)
    self_negative: bool = True
    symmetric: bool = False
    negatives_from: str = "anchors"
    negatives: int | None = None
    effective_negatives: int | None = None
    potential: bool = False
    curved: bool = False
    potential_lr: float | None = None
    refine: int = 0
    pull: float | None = None
    positives: int = 1
    tau: float = 1.0
    learn_tau: bool = False
    tau_start: float | None = None
    soften: bool = False
    radius: float | None = None
    bound: float | None = 1.0
    bound_lr: float | None = None
    alpha_start: float | None = None
    dropout: float = 0.0
    whiten: bool = False
    handicap: float = 0.0
    raw: bool = False
    walking: Walking | None = None

    def mlp(self, n_in: int, n_out: int, *, seed: int) -> MLP:
        """The network for rows."""
        assert not isinstance(self.network, str)
        return MLP(n_in, n_out, self.network, seed=seed)

    def head(self, space: Space) -> Head:
        """The output head for a space."""
        if isinstance(space, Box) and self.bound is not None:
            return BoxHead(space, learnable=True, start=self.bound, lr=self.bound_lr)
        if isinstance(space, Sphere):
            start = space if self.radius is None else replace(space, radius=self.radius)
            soften = round(SOFT * self.training.steps) if self.soften else None
            learnt, lr = self.radius is not None, self.bound_lr
            return SphereHead(start, learnable=learnt, soften=soften, lr=lr)
        return make_head(space)

    def absorbing(self, n: int, *, seed: int) -> Potential | None:
        """The potential of n codes, if there is one."""
        if not self.potential:
            return None
        return Potential(n, seed=seed, lr=self.potential_lr, curved=self.curved)

    def loss(
        self,
        conditional: Family,
        *,
        apart: int = 1,
        warm: float = WARM,
        learn_precision: int | None = None,
    ) -> InfoNCE:
        """The contrastive loss of a family; `warm` is the fraction of the training with annealing."""
        anneal = None
        if self.tau_start is not None:
            anneal = self.tau_start, round(warm * self.training.steps)
        start, stop = (round(part * self.training.steps) for part in PULLING)
        return InfoNCE(
            conditional,
            self.tau,
            self_negative=self.self_negative,
            negatives=self.negatives,
            negatives_from=self.negatives_from,
            effective_negatives=self.effective_negatives,
            positive_in_denominator=self.positives == 1,
            symmetric=self.symmetric,
            apart=apart,
            learn_tau=self.learn_tau,
            learn_precision=learn_precision,
            anneal=anneal,
            pull=None if self.pull is None else (self.pull, start, max(stop, start + 1)),
        )


Preset = str | Recipe  # the name of a preset, or a custom recipe


@dataclass(frozen=True)
class Walking:
    """Training of an image model on walks, in stages.

    Attributes:
        start: initial training of each of `starts` networks, on narrower pairs, from which networks learn
            faster. The network with the lowest loss continues: some fold a factor in the middle, which
            further training does not undo.
        starts: number of networks that start.
        narrow: second stage, also on narrower pairs.
        narrower: width of these pairs, relative to the process. With even narrower pairs, the seven easy
            factors alone would identify a pair within a batch, so the angles would not be learnt.
        wide: third stage, on the pairs of the process.
        apart: distance along a walk at which two images count as independent.
        head: last stage, of the head alone, on precomputed features of each image. Its steps are cheap, so
            there can be many. Its pairs do not come from walks, in which images near the walls are rare.
        heat: initial temperature of the last stage. In a box, a high temperature pushes all codes towards
            the walls, which identify the axes. At a temperature of 1, codes of factors that are hard to see
            gather in the middle, far from the walls, and may stay mixed. Without walls it makes no
            difference.
        cooling: fraction of the last stage over which the temperature falls.
    """

    start: Training
    narrow: Training
    wide: Training
    head: Training
    starts: int = 3
    narrower: float = 0.7
    apart: int = 3
    heat: float = 12.0
    cooling: float = 0.9

    def on_images(self) -> list[Training]:
        """The stages that train on images; that of the head is short in comparison."""
        return [*[self.start] * self.starts, self.narrow, self.wide]


def pick(preset: Preset, *, fast: Recipe, paper: Recipe) -> Recipe:
    """The recipe of a preset by name; one that was given stays."""
    if isinstance(preset, Recipe):
        return preset
    return fast if one_of("preset", preset, PRESETS) == "fast" else paper


def from_config(config: Mapping[str, Any]) -> Recipe:
    """The recipe of a finished run, from its config.json."""
    settings: dict[str, Any] = {**config, **config.get("preset", {})}
    training = settings.get("contrastive") or settings.get("supervised") or settings.get("training")
    options = {
        field.name: settings[field.name] for field in fields(Recipe) if field.name in settings
    }
    options["training"] = Training() if training is None else Training(**training)
    if "hidden" in settings:
        options["network"] = tuple(settings["hidden"])
    if "anneal" in settings:
        options["alpha_start"] = settings["anneal"][0]
    if "walking" in settings:
        parts: dict[str, Any] = {
            name: Training(**value) if isinstance(value, dict) else value
            for name, value in settings["walking"].items()
        }
        options["walking"] = Walking(**parts)
    return Recipe(**options)
