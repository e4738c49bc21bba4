"""Untrained networks and their data: a start for each recipe and seed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import nn

from identica._random import Device
from identica._validate import flag
from identica.encoders import initialise
from identica.estimator.fit import Fit, Start, fit
from identica.estimator.networks import (
    Encoder,
    Network,
    Pixels,
    RowNetwork,
    Shape,
    Whiten,
    convolutional,
    given_network,
    width,
)
from identica.estimator.pairs import ArrayPairs, PairSampler
from identica.estimator.predictable import independent_pairs
from identica.estimator.prepare import Prepared, prepare, row_columns
from identica.families import Family
from identica.recipes import Recipe, for_easy_pairs, for_images, for_network, for_observations
from identica.spaces import Space

SHORT = 400  # steps after which candidates can be distinguished
WIDE = 1024  # units per layer above which SOAP, with its eigendecompositions, is slow


class Starts:
    """Makes untrained networks for the given pairs: copies of the user's network, or the default ones.

    Args:
        sample: draws pairs of observations.
        shape: shape of an observation.
        network: as in `ContrastiveICA`.
        given: training settings that override those of the recipes.
        learn_precision, device: as in `ContrastiveICA`.
        potential: whether a learnt potential absorbs the marginal.
        progress: show progress bars.
        seed: seed of the first start, which keeps the weights of a network module as they are.
    """

    def __init__(
        self,
        sample: PairSampler,
        shape: Shape,
        network: Network,
        given: Mapping[str, Any],
        *,
        learn_precision: bool = False,
        potential: bool = False,
        device: Device = "cpu",
        progress: bool = False,
        seed: int = 0,
    ) -> None:
        self.sample, self.shape, self.network, self.seed = sample, shape, network, seed
        self.given, self.potential, self.device = given, potential, device
        self.learn_precision = flag("learn_precision", learn_precision)
        self.progress = flag("progress", progress)
        if network is None:
            self.rows = prepare(sample, row_columns(sample, shape), seed=seed)
        else:
            enter = Whiten(shape[0]) if len(shape) == 1 else Pixels()
            self.rows = prepare(sample, enter, seed=seed, look=False)
        self._images: Prepared | None = None

    def fit(
        self,
        space: Space,
        conditional: Family,
        label: str = "fit",
        out: Path | None = None,
        *,
        short: bool = False,
        tensorboard: bool = False,
    ) -> Fit:
        """Fit with all recipes; if `short`, with two of them and at most `SHORT` steps."""
        recipes = self.recipes(space, conditional)
        if short:
            steps = min(SHORT, recipes[0].training.steps)
            recipes = [replace(r, training=replace(r.training, steps=steps)) for r in recipes[:2]]
        return fit(
            lambda recipe, seed: self(recipe, space.dim, seed),
            recipes,
            space,
            conditional,
            easy=None if short else self.easy(space, conditional),
            learn_precision=self.learn_precision,
            device=self.device,
            seed=self.seed,
            out=out,
            progress=label if self.progress else None,
            tensorboard=tensorboard,
        )

    def effective_pairs(self, n: int) -> float:
        """The effective number of independent pairs for n codes."""
        look, sample = self.rows.look, self.sample
        if look is None or not isinstance(sample, ArrayPairs) or sample.within is None:
            return self.rows.pairs
        apart = (sample.within.low + sample.within.high) / 2
        return independent_pairs(self.rows.pairs, apart, look.correlations, n)

    def most_codes(self) -> int:
        """The largest number of codes to try."""
        directions = self.rows.look.matrix.shape[1] if self.rows.look is not None else math.inf
        return max(1, int(min(directions, self.rows.pairs / 100)))

    def codes(self) -> int | None:
        """The number of outputs of the user's network, if it is a module."""
        if not isinstance(self.network, nn.Module):
            return None
        return width(Encoder(self.rows.enter, self.network), self.shape)

    def recipes(self, space: Space, conditional: Family) -> list[Recipe]:
        """The candidate recipes, with the user's training settings."""
        learn_precision = self.learn_precision
        if self.network is None:
            images = convolutional(self.shape, space.dim, seed=0) is not None
            found = (for_images if images else for_observations)(
                space, conditional, self.rows.pairs, learn_precision=learn_precision
            )
        else:
            made = given_network(self.network, self.shape, space.dim, seed=self.seed)
            wide = any(max(p.shape) > WIDE for p in made.parameters() if p.ndim > 1)
            found = for_network(space, conditional, wide=wide, learn_precision=learn_precision)
        return list(dict.fromkeys(map(self._completed, found)))

    def easy(self, space: Space, conditional: Family) -> Recipe | None:
        """The recipe for saturated evidence; None for images and for a network of the user's."""
        if self.network is not None or len(self.shape) > 1:
            return None
        return self._completed(
            for_easy_pairs(space, conditional, learn_precision=self.learn_precision)
        )

    def _completed(self, recipe: Recipe) -> Recipe:
        training = replace(recipe.training, **self.given)
        if math.isfinite(self.rows.pairs):
            training = replace(training, batch=min(training.batch, int(self.rows.pairs)))
        return replace(recipe, training=training, potential=self.potential)

    def __call__(self, recipe: Recipe, n: int, seed: int) -> Start:
        """Make an untrained network with n codes."""
        ready, network = self.rows, self.network
        if recipe.network == "conv":
            made = convolutional(self.shape, n, seed=seed)
            assert made is not None
            if self._images is None:
                self._images = prepare(self.sample, made[0], seed=self.seed, look=False)
            ready, module = self._images, made[1]
        elif network is not None:
            module = given_network(network, self.shape, n, seed=seed)
            if isinstance(network, nn.Module) and seed != self.seed:
                initialise(module, seed)  # otherwise every start has the same weights
        else:
            module = row_network(ready, recipe, n, seed)
        return Start(recipe, Encoder(ready.enter, module), ready.sample, ready.held)


def row_network(ready: Prepared, recipe: Recipe, n: int, seed: int) -> RowNetwork:
    """The default network for rows, as the recipe describes it."""
    assert ready.look is not None
    assert not isinstance(recipe.network, str)
    matrix = ready.look.matrix
    made = RowNetwork(matrix.shape, n, recipe.network, raw=recipe.raw, seed=seed)
    return made.start(matrix, seed)
