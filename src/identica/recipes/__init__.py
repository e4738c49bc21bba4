"""Recipes: training settings for a model with given assumptions on given data.

The estimator, the studies (see `identica.recipes.studies`) and the demo all take their `Recipe` from here,
and each setting comes with its reason. `python -m benchmarks.ablation` compares alternatives; the results
are in docs/speed.md.
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
