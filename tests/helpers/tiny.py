"""A study that takes seconds: the tables' own machinery with two factors and a handful of steps."""

import math

from identica.families import Laplace, Normal, Uniform, VonMisesFisher
from identica.recipes import Recipe
from identica.spaces import Box, Euclidean, Sphere
from identica.studies.published import Published, Row
from identica.studies.synthetic import SyntheticExperiment, SyntheticTable
from identica.training import Training


def recipe(steps=60, batch=32):
    training = Training(
        steps=steps, batch=batch, optimizer="adam", score_every=20, checkpoint_every=5
    )
    return Recipe(training, network=(8,), bound=3.0)


def experiment(row, kind="contrastive", seed=0, steps=60):
    return SyntheticExperiment(row, kind, seed, recipe(steps))


def row(number, space, conditional, model_space, model, score, **more):
    figures = {
        "identity": Published(0.7, 0.05),
        "supervised": Published(0.99, 0.01),
        "contrastive": Published(0.5, 0.4),
    }
    return Row(
        number, space, Uniform(), conditional, model_space, model, score, True, figures, **more
    )


ROWS = [
    row(1, Sphere(2), VonMisesFisher(5.0), Sphere(2), VonMisesFisher(5.0), "r2"),
    row(2, Sphere(2), VonMisesFisher(9.0), Sphere(2), VonMisesFisher(5.0), "r2"),
    row(3, Box(2), Laplace(0.1), Box(2), Laplace(1.0), "mcc"),
    row(
        4,
        Box(2),
        Normal(0.1),
        Euclidean(2),
        Normal(math.sqrt(0.5)),
        "mcc",
        must_fail=True,
    ),
]


def study():
    return SyntheticTable("tiny", "A tiny table", ROWS)


class Quick(SyntheticTable):
    """A table whose presets are all the same short training."""

    steps = 200

    def experiment(self, row, kind, seed, preset):
        return super().experiment(row, kind, seed, recipe(self.steps))
