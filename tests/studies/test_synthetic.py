"""The synthetic experiments: what they are trained and scored on, and how codes are laid beside factors."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from helpers import tiny
from identica import (
    Box,
    Euclidean,
    GeneralizedNormal,
    GenerativeProcess,
    InvertibleMLP,
    Laplace,
    Normal,
    Product,
    Sphere,
    Uniform,
)
from identica.metrics import linear_r2, mcc
from identica.studies.experiment import Context
from identica.studies.study import Finished
from identica.studies.synthetic import (
    SyntheticExperiment,
    align,
    family_name,
    space_name,
)


@pytest.fixture
def mixed():
    """Factors, and codes that are a noisy linear map of them in another order."""
    rng = np.random.default_rng(0)
    z = rng.uniform(size=(200, 3))
    return z, 5 - 2 * z[:, [2, 0, 1]] + 0.1 * rng.normal(size=(200, 3))


def test_codes_after_the_best_linear_map(mixed):
    z, codes = mixed
    found, words = align(z, codes, "r2")
    np.testing.assert_allclose(found, LinearRegression().fit(codes, z).predict(codes))
    assert words == "after the best linear map"


@pytest.mark.parametrize("unit", [1.0, 1e-4])
def test_codes_after_the_best_order_sign_and_scale(mixed, unit):
    z, codes = mixed[0], unit * mixed[1]
    found, words = align(z, codes, "mcc")
    for factor, column, code in zip(z.T, found.T, codes[:, [1, 2, 0]].T, strict=True):
        slope, shift = np.polyfit(code, factor, 1)
        np.testing.assert_allclose(column, slope * code + shift)
    assert words == "after the best order, sign and scale"


@pytest.mark.parametrize(
    ("family", "name", "model"),
    [
        (Uniform(), "uniform", "uniform"),
        (Normal(0.05), "Normal(0.05)", "Normal"),
        (Laplace(0.5), "Laplace(0.5)", "Laplace"),
        (GeneralizedNormal(3.0, 0.05), "GenNorm(3; 0.05)", "GenNorm(3)"),
    ],
)
def test_families_as_tables_name_them(family, name, model):
    assert family_name(family) == name
    assert family_name(family, scale=False) == model


def test_spaces_as_tables_name_them():
    assert [space_name(space) for space in (Sphere(3), Box(3), Euclidean(3))] == [
        *("sphere", "box", "unbounded")
    ]
    assert space_name(Product(Box(1), Sphere(2))) == repr(Product(Box(1), Sphere(2)))


@pytest.mark.parametrize("seed", [0, 3])
def test_training_never_meets_the_held_out_factors(seed, tmp_path):
    """Batches come from even seeds, and held-out factors from odd ones."""
    row = tiny.ROWS[0]
    mixing = InvertibleMLP(row.space.dim, seed=seed)
    process = GenerativeProcess(row.space, row.marginal, row.conditional, mixing)
    z = process.latents(16_384, generator=2 * seed + 1)

    def scores(codes):
        return pytest.approx({"r2": linear_r2(z, codes), "mcc": mcc(z, codes)})

    stages = SyntheticExperiment(row, "identity", seed, tiny.recipe()).stages(Context(tmp_path))
    with pytest.raises(StopIteration) as end:
        next(stages)
    assert end.value.value == (None, scores(mixing(z)))
    for kind in ("supervised", "contrastive"):
        job = SyntheticExperiment(row, kind, seed, tiny.recipe())
        stages = job.stages(Context(tmp_path))
        stage = next(stages)
        assert stage.seed == 2 * seed
        _, model = job.objective()
        untrained = model(mixing(z)).detach()
        assert stage.score() == scores(untrained)
        with pytest.raises(StopIteration) as end:
            stages.send({})
        assert end.value.value == (stage.objective, scores(untrained))
        batch = stage.sample(8, generator=2 * seed)
        assert batch[-1].shape == (8, row.space.dim)


def test_an_mlp_takes_whitened_observations_if_its_recipe_says_so(tmp_path):
    job = SyntheticExperiment(tiny.ROWS[0], "contrastive", 3, replace(tiny.recipe(3), whiten=True))
    plain = SyntheticExperiment(tiny.ROWS[0], "contrastive", 3, tiny.recipe(3))
    assert job.config["preset"] == plain.config["preset"] | {"whiten": True}
    process, result = job.process(), job.run(tmp_path)
    _, model = job.trained(tmp_path)
    sample = process.labelled(16_384, generator=6).x  # that of the first batches
    white = model.encoder.enter(sample).double().numpy()
    np.testing.assert_allclose(np.cov(white.T), np.eye(2), atol=1e-3)
    z = process.latents(16_384, generator=7)
    found = model(process.mixing(z)).detach()
    assert result["scores"] == pytest.approx({"r2": linear_r2(z, found), "mcc": mcc(z, found)})


def test_a_finished_run_shows_factors_that_it_has_not_seen(tmp_path):
    job = SyntheticExperiment(tiny.ROWS[0], "contrastive", 2, tiny.recipe(3))
    result = job.run(tmp_path)
    z, codes = job.recovered(Finished(2, tmp_path, job.config, result), size=50)
    wanted = job.process().latents(50, generator=5)
    np.testing.assert_array_equal(z, wanted.double().numpy())
    _, model = job.trained(tmp_path)
    expected = model(job.process().mixing(wanted)).detach()
    np.testing.assert_allclose(codes, expected.double().numpy())
    assert result["pairs"] == 3 * job.recipe.training.batch
