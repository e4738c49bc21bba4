"""Recipes: how a model with given assumptions is trained well on given data.

What was learnt about training stands here, once, with its reason; the estimator, the studies and the demo
all ask for their `Recipe` here. `python -m benchmarks.ablation` tries the alternatives, and docs/speed.md
shows what they give.
"""

from __future__ import annotations

from identica.recipes.observations import (
    for_easy_pairs,
    for_images,
    for_network,
    for_observations,
)
from identica.recipes.recipe import PRESETS, Recipe, Walking, from_config, pick
from identica.recipes.studies import (
    DEMO,
    DEMO_SUPERVISED,
    MASKS,
    MASKS_VAE,
    NATURAL,
    NATURAL_VAE,
    PAPER,
    PAPER_IMAGES,
    PAPER_SUPERVISED,
    PAPER_THREEDIDENT,
    SPRITES,
    SPRITES_VAE,
    SUPERVISED,
    THREEDIDENT,
    THREEDIDENT_SUPERVISED,
    any_marginal,
    for_process,
)

__all__ = [
    "DEMO",
    "DEMO_SUPERVISED",
    "MASKS",
    "MASKS_VAE",
    "NATURAL",
    "NATURAL_VAE",
    "PAPER",
    "PAPER_IMAGES",
    "PAPER_SUPERVISED",
    "PAPER_THREEDIDENT",
    "PRESETS",
    "SPRITES",
    "SPRITES_VAE",
    "SUPERVISED",
    "THREEDIDENT",
    "THREEDIDENT_SUPERVISED",
    "Recipe",
    "Walking",
    "any_marginal",
    "for_easy_pairs",
    "for_images",
    "for_network",
    "for_observations",
    "for_process",
    "from_config",
    "pick",
]
