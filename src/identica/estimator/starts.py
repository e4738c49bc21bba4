"""Networks before training, and what they are trained on: a start for every recipe and seed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import nn

from identica._random import Device
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
WIDE = 1024  # units of a layer beyond which SOAP, which decomposes matrices of that size, is slow


class Starts:
    """Starts of the networks for some pairs: of one that is given, or else of our own.

    Args:
        sample: draws pairs of observations.
        shape: of an observation.
        network: as the estimator takes it.
        given: settings of the training that are given, in place of ours.
        learn_precision, device: as the estimator takes them.
        potential: whether a learnt potential absorbs the marginal.
        progress: show progress bars.
        seed: of the first start; of a network that is given, it has the weights as they are.
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
        self.given, self.learn_precision, self.potential = given, learn_precision, potential
        self.device, self.progress = device, progress
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
        """The best fit of all recipes; of two of them and a few steps, if it is to be short."""
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

    def worth(self, n: int) -> float:
        """How many independent pairs there are, as far as n codes can tell."""
        look, sample = self.rows.look, self.sample
        if look is None or not isinstance(sample, ArrayPairs) or sample.within is None:
            return self.rows.pairs
        apart = (sample.within.low + sample.within.high) / 2
        return independent_pairs(self.rows.pairs, apart, look.correlations, n)

    def most_codes(self) -> int:
        """The largest number of codes that may be worth trying."""
        directions = self.rows.look.matrix.shape[1] if self.rows.look is not None else math.inf
        return max(1, int(min(directions, self.rows.pairs / 100)))

    def codes(self) -> int | None:
        """The number of codes, if a network that is given says it."""
        if not isinstance(self.network, nn.Module):
            return None
        return width(Encoder(self.rows.enter, self.network), self.shape)

    def recipes(self, space: Space, conditional: Family) -> list[Recipe]:
        """What is tried, with the settings of the training that are given in place of ours."""
        learn_precision = self.learn_precision
        if self.network is None:
            found = for_observations(
                space, conditional, self.rows.pairs, learn_precision=learn_precision
            )
            if convolutional(self.shape, space.dim, seed=0) is not None:
                found += for_images(space, conditional, learn_precision=learn_precision)
        else:
            made = given_network(self.network, self.shape, space.dim, seed=self.seed)
            wide = any(max(p.shape) > WIDE for p in made.parameters() if p.ndim > 1)
            found = for_network(space, conditional, wide=wide, learn_precision=learn_precision)
        return list(dict.fromkeys(map(self._completed, found)))

    def easy(self, space: Space, conditional: Family) -> Recipe | None:
        """What is tried where the others find pairs too easy; nothing for images and given networks."""
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
        """A network of n codes before training."""
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
                initialise(module, seed)  # else it would start from the same weights
        else:
            module = row_network(ready, recipe, n, seed)
        return Start(recipe, Encoder(ready.enter, module), ready.sample, ready.held)


def row_network(ready: Prepared, recipe: Recipe, n: int, seed: int) -> RowNetwork:
    """The network for rows by a recipe."""
    assert ready.look is not None
    assert not isinstance(recipe.network, str)
    matrix = ready.look.matrix
    made = RowNetwork(matrix.shape, n, recipe.network, raw=recipe.raw, seed=seed)
    return made.start(matrix, seed)
