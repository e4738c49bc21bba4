"""Recipes for observations of an unknown process: held-out pairs decide between them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from identica.families import Family, Joint
from identica.recipes.recipe import Recipe
from identica.spaces import Box, Space, Sphere
from identica.training import Training

FEW, MANY = 3000, 10_000  # pairs up to which networks are small, and from which they may be large


def for_observations(
    space: Space, conditional: Family, pairs: float, *, learn_precision: bool = False
) -> list[Recipe]:
    """Recipes for rows whose process and noise are not known; held-out pairs decide between them.

    Each has won on some kind of data: the first where there is no noise; dropout of inputs where there is,
    be it of predictable directions or of the columns themselves; SOAP with many factors.

    Args:
        space, conditional: what the model assumes; it starts from unit precision, whatever the scale of
            the family.
        pairs: number of pairs.
        learn_precision: whether each dimension has a precision of its own.
    """
    small = (32, 32) if pairs < FEW else (64, 64)
    large = (128, 128) if pairs >= MANY else (64, 64)
    adam = Training(steps=3000, batch=512, lr=3e-3, optimizer="adamw", warmup=30, decay=0)
    careful = replace(adam, lr=2e-3)
    options = _options(space, conditional, learn_precision=learn_precision)
    found = [
        Recipe(adam, network=small, **options),
        Recipe(careful, network=large, dropout=0.3, **options),
        Recipe(replace(adam, lr=1e-2, optimizer="soap"), network=small, **options),
        Recipe(careful, network=large, dropout=0.5, raw=True, **options),
    ]
    if pairs < FEW:  # they may determine no more than a linear map
        found.append(Recipe(replace(adam, lr=1e-2), network=(), **options))
    return found


def for_easy_pairs(space: Space, conditional: Family, *, learn_precision: bool = False) -> Recipe:
    """The recipe for rows that predict their positives so well that any batch is too easy.

    Each anchor is among its own negatives, and the others are weighted as very many, so that the loss keeps
    resolving small distances. Training is never stopped early: held-out evidence is near its maximum long
    before the map is straight.
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
    # walls single out the axes: start where they are felt and grow slowly, at most e⁴-fold
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
    """Recipes for a given network; held-out pairs decide between them.

    Args:
        wide: it has layers so wide that a step with SOAP takes many times as long as one with Adam.
    """
    adam = Training(steps=3000, batch=512, lr=2e-3, optimizer="adamw", warmup=30, decay=0)
    options = _options(space, conditional, learn_precision=learn_precision)
    found = [Recipe(adam, network="given", **options)]
    if not wide:
        found.append(Recipe(replace(adam, lr=1e-2, optimizer="soap"), network="given", **options))
    return found


def for_images(space: Space, conditional: Family, *, learn_precision: bool = False) -> list[Recipe]:
    """Recipes for a convolutional network on images."""
    training = Training(steps=2500, batch=64, lr=1e-3, optimizer="adamw", warmup=20, decay=0)
    options = _options(space, conditional, learn_precision=learn_precision)
    return [Recipe(training, network="conv", **options)]


def _options(space: Space, conditional: Family, *, learn_precision: bool) -> dict[str, Any]:
    """How loss and head start.

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
