"""Recipes for the studies: as published, and those for processes and images that are known."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from identica.families import Family, Uniform, VonMisesFisher
from identica.recipes.recipe import Recipe, Walking
from identica.spaces import Box, Space, Sphere
from identica.training import Training

WIDE = 2.0  # concentration up to which a third or more of the candidates in a pool are accepted

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


# With a learnt radius the model can match the concentration of the process, and its guarantee holds. It also
# learns faster, because the loss then resolves the distances of positives.
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
        # a pair says little about the factors, but an observation can serve in many pairs
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
        # The narrower they are, the less the loss resolves them at the final temperature: for a normal it
        # rises more slowly than for a Laplace, and observations are whitened, so that no direction is slow
        # (a marginal that is not uniform bends the codes in any case).
        normal = conditional.p == 2
        training = Training(steps=4500 if normal and isinstance(marginal, Uniform) else 3000)
        return Recipe(training, symmetric=True, tau_start=0.01, whiten=normal)
    p = model.p
    assert p is not None
    # only the walls of a box identify its axes: start small, so that codes reach them, and grow slowly
    walls: dict[str, Any] = {"bound": {1.0: 1.0, 2.0: 2.0, 3.0: 5.0}[p], "bound_lr": 2e-3}
    # Positives closer than those of a Laplace take longer to resolve, most of all in directions that the
    # mixing compresses: whitening leaves none.
    closer = conditional.p != 1
    if p == 1:
        # weighed as very many, the self-pair hardly bends the solution; in a box it then takes long
        if not bounded:
            return Recipe(Training(steps=2000), effective_negatives=1_000_000)
        # beside closer positives, the same self-pair bends the solution more
        many = 60_000 if closer else 20_000
        return Recipe(Training(steps=4000), effective_negatives=many, whiten=closer, **walls)
    if p == 2:
        if bounded:
            return Recipe(Training(steps=3000), effective_negatives=6144, whiten=closer, **walls)
        if not isinstance(marginal, Uniform):
            return Recipe(Training(steps=2000))  # the marginal bends the codes in any case
        # A self-pair of much weight bends the codes near the walls of the process. Directions that the mixing
        # compresses are learnt slowly, and faster at the peak of the learning rate.
        return Recipe(Training(steps=6000, decay=0.5), effective_negatives=100_000)
    if conditional.p == 2 and not bounded:
        # only the nearest neighbours in a batch count: a lower rate averages their noise, and is no slower
        # once the observations are whitened
        return Recipe(Training(steps=3500, lr=5e-3), whiten=True)
    options = walls if bounded else {}
    return Recipe(Training(steps=6000), **options)  # linear maps are found soon, the axes late


def any_marginal(
    space: Space, conditional: Family, codes: Space, *, precise: bool = False
) -> Recipe:
    """The recipe with a potential, for a model of the true form and a marginal that need not be uniform.

    The other positives of the batch are the negatives, in both directions: less is left to the potential
    than with anchors, whose law differs from that of the positives.

    Args:
        space, conditional: of the process.
        codes: the space of the model.
        precise: train for the density as well, off the sphere, at two to four times the cost.
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
        if precise:
            # Small errors of the codes cost more in the density than in R². While codes change, the potential
            # lags behind, so it is refined when they no longer do.
            options |= {"curved": True, "potential_lr": 0.03, "refine": 1000}
            return Recipe(Training(steps=3000 if quick else 2000), **options)
        return Recipe(Training(steps=1000 if quick else 2000), **options)
    if isinstance(conditional, VonMisesFisher):
        # The learnt radius takes on the concentration of the process. Some encoders start folded, and stay so
        # on a sphere, while the potential explains the uneven density of the folds. In R^n they unfold,
        # so codes are normalised gradually.
        return Recipe(Training(steps=1200), radius=math.sqrt(5), soften=True, **options)
    # Positives are some 17 nats closer than a batch can resolve. Negatives must keep the scale of their
    # distances, so only the attraction of positives is raised to half of their concentration: with .78 of it,
    # codes collapsed.
    return Recipe(Training(steps=2500), tau=0.1, pull=0.5, **options)


# --- images -----------------------------------------------------------------------------------------

# tuned on the MCC of L_AU(.5, 1), and of SlowVAE for autoencoders, with other seeds than those of the table
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
    # A learnt side outgrows that of the process before the angles are learnt, and nothing pushes it back:
    # codes then do not reach the walls, and factors stay mixed.
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
