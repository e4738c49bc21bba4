"""How a model with given assumptions is trained well on given data.

What was learnt about training stands here, once, with its reason; the estimator, the studies and the demo
all ask for their `Recipe` here. `python -m benchmarks.ablation` tries the alternatives, and docs/speed.md
shows what they give.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from identica._validate import one_of
from identica.encoders import MLP
from identica.families import Family, Joint, Uniform, VonMisesFisher
from identica.heads import BoxHead, Head, SphereHead, make_head
from identica.losses import InfoNCE
from identica.spaces import Box, Space, Sphere
from identica.training import Training

PRESETS = ("fast", "paper")
SOFT = 0.5  # part of the training in which a soft sphere closes in
WARM = 0.7  # part of the training in which the temperature rises, where it does
PULLING = 0.25, 0.6  # parts of the training at which a pull sets in, and is complete
WIDE = 2.0  # concentration up to which a third or more of the candidates in a pool are accepted


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
        bound, bound_lr: where the learnt side of a box starts, and the learning rate of its logarithm; a
            `bound` of None fixes the side where the model is the process.
        alpha_start: where the α of L_AU starts, if it is above .99, which learns slowly by itself.
        walking: how a model of images is trained on walks, in place of `training`.
    """

    training: Training
    network: tuple[int, ...] | str = (128, 128, 128)
    self_negative: bool = True
    symmetric: bool = False
    negatives: int | None = None
    effective_negatives: int | None = None
    negatives_from: str = "anchors"
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
            return SphereHead(start, learnable=self.radius is not None, soften=soften)
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
            effective_negatives=self.effective_negatives,
            positive_in_denominator=self.positives == 1,
            negatives_from=self.negatives_from,
            symmetric=self.symmetric,
            apart=apart,
            learn_tau=self.learn_tau,
            learn_precision=learn_precision,
            anneal=anneal,
            pull=None if self.pull is None else (self.pull, start, max(stop, start + 1)),
        )


@dataclass(frozen=True)
class Walking:
    """Training on walks among images, stage by stage.

    Attributes:
        start: how each of `starts` networks is trained first, on narrower pairs: wide ones take long to
            show that a code is worth having. The one with the lowest loss continues: some networks fold a
            factor in the middle, which further training does not undo.
        starts: number of networks that start.
        narrow: how training continues, still on narrower pairs.
        narrower: their width, relative to that of the process. Pairs that are narrower still are told from
            the rest of a batch by the seven easy factors, so that nothing asks for the angles.
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


# --- as published -----------------------------------------------------------------------------------


def _published(steps: int, batch: int, **more: int) -> Training:
    return Training(steps, batch, lr=1e-4, optimizer="adam", warmup=0, decay=0, **more)


PAPER = Recipe(
    _published(300_000, 6144, checkpoint_every=100), network=(100, 500, 500, 500, 500, 100)
)
PAPER_SUPERVISED = replace(PAPER, training=_published(100_000, 6144, checkpoint_every=100))
PAPER_IMAGES = Recipe(
    _published(300_000, 32, score_every=5000, checkpoint_every=500), network="conv"
)
PAPER_THREEDIDENT = Recipe(
    _published(30_000, 512, score_every=500, checkpoint_every=50), network="resnet18"
)


# --- observations of a process that is known --------------------------------------------------------

SUPERVISED = Recipe(Training(steps=2000, score_every=250, checkpoint_every=250))


# With a learnt radius the model can take the concentration of the process, and has its guarantee; it also
# learns faster, as the loss then feels how close together positives are.
DEMO = Recipe(Training(steps=1500), symmetric=True, radius=2.0)
DEMO_SUPERVISED = Recipe(Training(steps=600, score_every=100, checkpoint_every=200))


def for_process(marginal: Family, conditional: Family, space: Space, model: Family) -> Recipe:
    """The recipe for synthetic pairs whose process is known.

    Args:
        marginal, conditional: of the process.
        space, model: what the model assumes, its space and its conditional.
    """
    bounded = isinstance(space, Box)
    if isinstance(conditional, VonMisesFisher) and conditional.kappa <= WIDE:
        # a pair says little of the factors, but an observation can serve in many pairs
        return Recipe(
            Training(steps=2000, batch=4096),
            network=(64, 64, 64),
            positives=32,
            negatives=512,
            soften=True,
        )
    if isinstance(model, VonMisesFisher):
        # positives close together hardly move a loss with the temperature 1: start near their own
        if isinstance(conditional, VonMisesFisher):
            return Recipe(Training(steps=2000), symmetric=True, tau_start=0.1)
        # the narrower they are, the less the final temperature feels them (a marginal that is not
        # uniform bends the codes in any case)
        narrow = conditional.p == 2 and conditional.precision > 300
        narrow = narrow and isinstance(marginal, Uniform)
        return Recipe(Training(steps=6000 if narrow else 3000), symmetric=True, tau_start=0.01)
    p = model.p
    assert p is not None
    # only the walls of a box single out its axes: start where they are felt and grow slowly
    walls: dict[str, Any] = {"bound": {1.0: 1.0, 2.0: 2.0, 3.0: 5.0}[p], "bound_lr": 2e-3}
    options = walls if bounded else {}
    if p == 1:
        # weighed as very many, the self-pair hardly bends the solution; in a box it then takes long
        options |= {"effective_negatives": 20_000 if bounded else 1_000_000}
        return Recipe(Training(steps=4000 if bounded else 2000), **options)
    if p == 2:
        settled = 3000 if isinstance(marginal, Uniform) else 2000  # it bends all the same
        options |= {"effective_negatives": 6144 if bounded else None}
        return Recipe(Training(steps=settled), **options)
    return Recipe(Training(steps=6000), **options)  # linear maps are found soon, the axes late


def any_marginal(space: Space, conditional: Family, codes: Space) -> Recipe:
    """The recipe with a potential, for a model of the true form and a marginal that need not be uniform.

    The other positives of the batch are the negatives, in both directions: less is left to the potential
    than with anchors, whose law differs from that of the positives.

    Args:
        space, conditional: of the process.
        codes: the space of the model.
    """
    options: dict[str, Any] = {
        "self_negative": False,
        "negatives_from": "positives",
        "symmetric": True,
        "potential": True,
    }
    if not isinstance(codes, Sphere):
        # longer where there are axes to find, or walls, near which the conditional is cut off
        quick = conditional.p == 2 and not isinstance(space, Box)
        return Recipe(Training(steps=1000 if quick else 2000), **options)
    if isinstance(conditional, VonMisesFisher):
        # the learnt radius takes on the concentration of the process
        return Recipe(Training(steps=1000), radius=math.sqrt(5), **options)
    # Positives are some 17 nats closer than what a batch can tell apart. Negatives have to stay as broad as
    # their distances, so only the attraction of positives is brought to their concentration, or half of it:
    # with .78 of it codes collapsed.
    return Recipe(Training(steps=2500), tau=0.1, pull=0.5, **options)


# --- observations of an unknown process ------------------------------------------------------------


def usual_training(shape: tuple[int, ...], space: Space) -> Training:
    """How long and with what, for observations of a shape, by default."""
    if len(shape) > 1:
        return Training(steps=600, batch=32, lr=2e-3, warmup=20, decay=0.4)
    return Training(steps=4000 if isinstance(space, Box) else 3000)


def recipe(
    space: Space, conditional: Family, training: Training, *, learn_precision: bool = False
) -> Recipe:
    """The recipe for pairs whose process is not known.

    All start from unit precision, whatever the scale of the family.
    """
    if isinstance(conditional, Joint):
        return Recipe(training, learn_tau=True, bound=None)
    tau, p = conditional.precision, conditional.p
    if isinstance(space, Sphere):
        # positives close together hardly move a loss of unit precision, so begin at ten; but with a
        # high precision of its own for each dimension the codes can do with a corner of the sphere
        tau *= (1.0 if learn_precision else 0.1) * space.radius ** (2 if p is None else p)
        return Recipe(
            training,
            self_negative=False,
            symmetric=p is None or p == 2,
            tau=tau,
            learn_tau=not learn_precision,
        )
    weighed = {1.0: 20_000, 2.0: 6144} if isinstance(space, Box) else {1.0: 1_000_000}
    # a small batch (of images) says too little of its neighbourhood to be weighed as a large one
    effective = weighed.get(p or 0) if training.batch >= 512 else None
    # walls single out the axes: start where they are felt and grow slowly, at most e⁴-fold
    bound, bound_lr = {1.0: 1.0, 2.0: 2.0}.get(p or 0, 5.0), 8 / training.steps
    return Recipe(training, effective_negatives=effective, tau=tau, bound=bound, bound_lr=bound_lr)


# --- images -----------------------------------------------------------------------------------------

# chosen by the MCC of L_AU(.5, 1), and of SlowVAE for autoencoders, with seeds beyond those of the table
MASKS = Recipe(
    Training(steps=600, batch=32, lr=2e-3, warmup=20, decay=0.4, score_every=100),
    network="conv",
    bound=20.0,
    bound_lr=1e-2,
)
MASKS_VAE = Recipe(
    Training(steps=900, batch=32, lr=1e-3, optimizer="adam", warmup=20, decay=0.2, score_every=150),
    network="conv",
)
# Shape and angle are found last. An encoder that describes an object in the same way wherever it stands
# finds them with a fraction of the pairs that the published one needs.
SPRITES = Recipe(
    Training(steps=1500, batch=256, lr=1e-2, warmup=20, decay=0.7), network="small", alpha_start=0.9
)
SPRITES_VAE = Recipe(Training(steps=2000, batch=32, lr=5e-3, warmup=20, decay=0.5), network="small")
# On Natural Sprites, whose shape and angle never change within a pair, scores are as high as they get after
# a few hundred steps.
NATURAL = replace(SPRITES, training=replace(SPRITES.training, steps=400))
NATURAL_VAE = replace(SPRITES_VAE, training=replace(SPRITES_VAE.training, steps=1000))

_quick = Training(steps=1000, batch=256, lr=1e-2, warmup=50, score_every=250, checkpoint_every=100)
THREEDIDENT = Recipe(
    _quick,
    network="small",
    # the pairs are so wide that the task is hard without the self-pair
    self_negative=False,
    # near the walls of a box the reversed conditional is a little off the assumed one
    symmetric=True,
    # A learnt side outgrows that of the process while the angles are not known yet, and nothing pushes it
    # back: its walls are then not felt, and factors stay mixed.
    bound=None,
    walking=Walking(
        start=replace(_quick, steps=250, decay=0),
        narrow=replace(_quick, steps=1200, decay=0),
        wide=replace(_quick, steps=3200, lr=7.5e-3),
        head=Training(
            steps=4000,
            batch=512,
            lr=1e-3,
            optimizer="adam",
            decay=0.6,
            score_every=500,
            checkpoint_every=200,
        ),
    ),
)
THREEDIDENT_SUPERVISED = Recipe(replace(_quick, steps=3600, batch=128), network="small")


# --- recipes and files ------------------------------------------------------------------------------


def pick(preset: str | Recipe, *, fast: Recipe, paper: Recipe) -> Recipe:
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
