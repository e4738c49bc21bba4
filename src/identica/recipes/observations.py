"""Candidate recipes for observations of an unknown process, which held-out pairs select from."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from identica.families import Family, Joint
from identica.recipes.recipe import Recipe
from identica.spaces import Box, Space, Sphere
from identica.training import Training

FEW, MANY = 3000, 10_000  # pairs below which networks are small, and above which they may be large


def for_observations(
    space: Space, conditional: Family, pairs: float, *, learn_precision: bool = False
) -> list[Recipe]:
    """Candidate recipes for rows with an unknown process and unknown noise.

    Each is the best for some kind of data: the first without noise; dropout with noise, either on predictable
    directions or on the columns themselves; SOAP with many factors.

    Args:
        space, conditional: assumptions of the model; the scale of the family is ignored, and training
            starts from unit precision.
        pairs: number of pairs.
        learn_precision: whether to learn a precision for each dimension.
    """
    small = (32, 32) if pairs < FEW else (64, 64)
    large = (128, 128) if pairs >= MANY else (64, 64)
    adam = Training(steps=3000, batch=512, lr=3e-3, optimizer="adamw", warmup=30, decay=0)
    careful = replace(adam, lr=2e-3)
    options = _options(space, conditional, learn_precision=learn_precision)
    recipes = [
        Recipe(adam, network=small, **options),
        Recipe(careful, network=large, dropout=0.3, **options),
        Recipe(replace(adam, lr=1e-2, optimizer="soap"), network=small, **options),
        Recipe(careful, network=large, dropout=0.5, raw=True, **options),
    ]
    if pairs < FEW:  # enough for little more than a linear map
        recipes.append(Recipe(replace(adam, lr=1e-2), network=(), **options))
    return recipes


def for_easy_pairs(space: Space, conditional: Family, *, learn_precision: bool = False) -> Recipe:
    """The recipe for rows that predict their positives so well that the evidence of a batch saturates.

    Each anchor is among its own negatives, and the others are weighted as if there were very many, so that
    the loss keeps resolving small distances. There is no early stopping: held-out evidence is close to its
    maximum long before the map is straight.
    """
    training = Training(steps=4000 if isinstance(space, Box) else 3000)
    if isinstance(conditional, Joint):
        return Recipe(training, learn_tau=True, bound=None)
    tau, p = conditional.precision, conditional.p
    if isinstance(space, Sphere):
        # positives close together hardly move a loss of unit precision, so begin at ten; but with a
        # high precision for each dimension the codes can make do with a corner of the sphere
        tau *= (1.0 if learn_precision else 0.1) * space.radius ** (2 if p is None else p)
        return Recipe(
            training,
            self_negative=False,
            symmetric=p is None or p == 2,
            tau=tau,
            learn_tau=not learn_precision,
        )
    weighed = {1.0: 20_000, 2.0: 6144} if isinstance(space, Box) else {1.0: 1_000_000}
    # walls identify the axes: start small, so that codes reach them, and grow slowly, at most e⁴-fold
    bound, bound_lr = {1.0: 1.0, 2.0: 2.0}.get(p or 0, 5.0), 8 / training.steps
    return Recipe(
        training,
        effective_negatives=weighed.get(p or 0),
        tau=tau,
        bound=bound,
        bound_lr=bound_lr,
    )


def for_network(
    space: Space, conditional: Family, *, wide: bool, learn_precision: bool = False
) -> list[Recipe]:
    """Candidate recipes for a custom network.

    Args:
        wide: the network has layers so wide that a step of SOAP takes many times as long as one of Adam.
    """
    adam = Training(steps=3000, batch=512, lr=2e-3, optimizer="adamw", warmup=30, decay=0)
    options = _options(space, conditional, learn_precision=learn_precision)
    recipes = [Recipe(adam, network="given", **options)]
    if not wide:
        recipes.append(Recipe(replace(adam, lr=1e-2, optimizer="soap"), network="given", **options))
    return recipes


def for_images(
    space: Space, conditional: Family, pairs: float, *, learn_precision: bool = False
) -> list[Recipe]:
    """Candidate recipes for images: networks of their principal directions, and a convolutional one.

    With few pairs the convolutional network must lead by far: it resolves small changes better, which counts
    as evidence, but its map is less straight. A linear map of pixels is left out then, for the same reason.
    """
    rows = for_observations(space, conditional, pairs, learn_precision=learn_precision)
    training = Training(steps=2500, batch=64, lr=1e-3, optimizer="adamw", warmup=20, decay=0)
    options = _options(space, conditional, learn_precision=learn_precision)
    conv = Recipe(training, network="conv", **options)
    if pairs >= FEW:
        return [*rows, conv]
    first, *others = (recipe for recipe in rows if recipe.network)
    return [replace(first, dropout=0.1), *others, replace(conv, handicap=0.25)]


def _options(space: Space, conditional: Family, *, learn_precision: bool) -> dict[str, Any]:
    """Options of the loss and the head.

    The other positives of a batch are the negatives: their density is the one that matters. The size of
    the codes is learnt. In a box it starts small, so that its walls and the whole are seen first; large
    ones begin with details, and some end in bad solutions.
    """
    options: dict[str, Any] = {"self_negative": False, "negatives_from": "positives"}
    if isinstance(conditional, Joint):
        return options | {"learn_tau": True, "bound": None}
    options |= {"tau": conditional.precision, "bound": 1.0, "bound_lr": 1e-2}
    # with learnt precisions the codes could make do with a corner of a large sphere
    return options | {"radius": None if learn_precision else 3.0}
