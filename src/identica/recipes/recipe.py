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
from identica.spaces import Box, Space, Sphere
from identica.training import Training

PRESETS = ("fast", "paper")
SOFT = 0.5  # part of the training in which a soft sphere closes in
WARM = 0.7  # part of the training in which the temperature rises, where it does
PULLING = 0.25, 0.6  # parts of the training at which a pull sets in, and is complete


@dataclass(frozen=True)
class Recipe:
    """How to train: network, optimisation, and the options of loss and head that a model leaves open.

    Attributes:
        training: steps, batch, optimiser and learning rate.
        network: widths of the hidden layers of an MLP, or the name of a network for images.
        self_negative: each anchor counts among its own negatives, as published. Off the sphere that
            fixes the scale of the solution; on it, it hardly matters.
        symmetric: both members of a pair are anchors: more is learnt from the same observations.
        negatives: negatives per anchor; all if None.
        effective_negatives: the number that the negatives are weighed as; their own if None.
        negatives_from: "anchors", as published, or the other "positives" of the batch.
        potential: whether a learnt term of the loss absorbs the marginal (`Potential`).
        pull: gain of the attraction of positives that are close together on a sphere (`InfoNCE`); it sets
            in after a quarter of the steps, when codes have spread, and is complete after three fifths.
        positives: more than one share a pool of observations (`GenerativeProcess.pool`).
        tau, learn_tau: temperature, and whether it is learnt.
        tau_start: temperature at the start, from where it moves to `tau` in the first 70 % of the steps.
        soften: the sphere closes in on the codes in the first half of the steps (`SphereHead`).
        radius: where the learnt radius of a sphere starts; None keeps that of the space.
        bound, bound_lr: where the learnt side of a box starts, and the learning rate of its logarithm or
            that of the radius; a `bound` of None fixes the side where the model is the process.
        alpha_start: where the α of L_AU starts, if it is above .99, which learns slowly by itself.
        dropout: part of the inputs of an MLP that is dropped in training, so that it relies on no single one.
        raw: the MLP reads the columns of the observations, not their predictable directions.
        walking: how a model of images is trained on walks, in place of `training`.
    """

    training: Training
    network: tuple[int, ...] | str = (128, 128, 128)
    self_negative: bool = True
    symmetric: bool = False
    negatives_from: str = "anchors"
    negatives: int | None = None
    effective_negatives: int | None = None
    potential: bool = False
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

    def loss(
        self,
        conditional: Family,
        *,
        apart: int = 1,
        warm: float = WARM,
        learn_precision: int | None = None,
    ) -> InfoNCE:
        """The contrastive loss of a family; the temperature moves in a part `warm` of the training."""
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


Preset = str | Recipe  # the name of a preset, or a recipe of one's own


@dataclass(frozen=True)
class Walking:
    """Training on walks among images, stage by stage.

    Attributes:
        start: how each of `starts` networks is trained first, on narrower pairs: wide ones take long to
            show that a code is worth having. The one with the lowest loss continues: some networks fold a
            factor in the middle, which further training does not undo.
        starts: number of networks that start.
        narrow: how training continues, still on narrower pairs.
        narrower: their width, relative to that of the process. Pairs that are narrower still differ from
            the rest of a batch in the seven easy factors already, so that the angles are not needed.
        wide: how training continues, on the pairs of the process.
        apart: how far apart two images of a walk count as independent.
        head: how the head is trained in the end, by itself, on features of each image that are computed
            once. That is cheap, so steps can be many. Its pairs do not form walks, in which images near the
            walls are too few.
        heat: the temperature at which training of the head starts, and cools down from. In a box, all codes
            are then driven to its walls, so that its axes stand out. At a temperature of 1, factors that
            are hard to see are drawn to the middle, feel no walls, and may stay mixed. Where there are no
            walls, it makes no difference.
        cooling: the part of its training in which it cools down.
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
        """The trainings on images, in turn; that of the head is short in comparison."""
        return [*[self.start] * self.starts, self.narrow, self.wide]


def pick(preset: Preset, *, fast: Recipe, paper: Recipe) -> Recipe:
    """The recipe of a preset by name; one that was given stays."""
    if isinstance(preset, Recipe):
        return preset
    return fast if one_of("preset", preset, PRESETS) == "fast" else paper


def from_config(config: Mapping[str, Any]) -> Recipe:
    """The recipe of a finished run, from its config.json."""
    found: dict[str, Any] = {**config, **config.get("preset", {})}
    training = found.get("contrastive") or found.get("supervised") or found.get("training")
    options = {field.name: found[field.name] for field in fields(Recipe) if field.name in found}
    options["training"] = Training() if training is None else Training(**training)
    if "hidden" in found:
        options["network"] = tuple(found["hidden"])
    if "anneal" in found:
        options["alpha_start"] = found["anneal"][0]
    if "walking" in found:
        parts: dict[str, Any] = {
            name: Training(**value) if isinstance(value, dict) else value
            for name, value in found["walking"].items()
        }
        options["walking"] = Walking(**parts)
    return Recipe(**options)
