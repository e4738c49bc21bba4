"""Recipes: how a model with given assumptions is trained well on given data.

Everything learnt about training is kept here, once, with its reason; the estimator, the studies (see
`identica.recipes.studies`) and the demo all take their `Recipe` from here. `python -m benchmarks.ablation`
tries the alternatives, and docs/speed.md shows what they give.
"""

from __future__ import annotations

from identica.recipes.observations import for_easy_pairs, for_images, for_network, for_observations
from identica.recipes.recipe import PRESETS, Preset, Recipe, Walking, from_config, pick

__all__ = [
    "PRESETS",
    "Preset",
    "Recipe",
    "Walking",
    "for_easy_pairs",
    "for_images",
    "for_network",
    "for_observations",
    "from_config",
    "pick",
]
