"""Recipes of the studies: the settings of the tables, on both sides of each limit."""

import math
from dataclasses import replace

import pytest

from identica import (
    Box,
    Euclidean,
    GeneralizedNormal,
    Laplace,
    Normal,
    Sphere,
    Training,
    Uniform,
    VonMisesFisher,
)
from identica.recipes import Recipe, from_config
from identica.recipes import studies as presets
from identica.recipes.recipe import Walking


@pytest.mark.parametrize(
    ("marginal", "conditional", "space", "model", "steps", "options"),
    [
        (
            *(Uniform(), VonMisesFisher(2.0), Sphere(3), VonMisesFisher(2.0), 2000),
            {"positives": 32, "negatives": 512, "soften": True, "network": (64, 64, 64)},
        ),
        (
            *(Uniform(), VonMisesFisher(2.1), Sphere(3), VonMisesFisher(2.1), 2000),
            {"symmetric": True, "tau_start": 0.1},
        ),
        (
            *(Uniform(), Normal(0.1), Sphere(3), VonMisesFisher(1.0), 4500),
            {"symmetric": True, "tau_start": 0.01, "whiten": True},
        ),
        (
            *(Uniform(), Laplace(0.1), Sphere(3), VonMisesFisher(1.0), 3000),
            {"symmetric": True, "tau_start": 0.01},
        ),
        (
            *(Normal(1.0), Normal(0.1), Sphere(3), VonMisesFisher(1.0), 3000),
            {"symmetric": True, "tau_start": 0.01, "whiten": True},
        ),
        (
            *(Uniform(), Laplace(0.1), Box(3), Laplace(1.0), 4000),
            {"bound": 1.0, "bound_lr": 2e-3, "effective_negatives": 20_000},
        ),
        (
            *(Uniform(), Laplace(0.1), Euclidean(3), Laplace(1.0), 2000),
            {"effective_negatives": 1_000_000},
        ),
        (
            *(Uniform(), Normal(0.1), Box(3), Normal(1.0), 3000),
            {"bound": 2.0, "bound_lr": 2e-3, "effective_negatives": 6144, "whiten": True},
        ),
        (Normal(1.0), Normal(0.1), Euclidean(3), Normal(1.0), 2000, {}),
        (
            *(Uniform(), Normal(0.1), Euclidean(3), Normal(1.0), 6000),
            {"effective_negatives": 100_000},
        ),
        (
            *(Uniform(), Normal(0.1), Box(3), GeneralizedNormal(3.0), 6000),
            {"bound": 5.0, "bound_lr": 2e-3},
        ),
        (
            *(Uniform(), GeneralizedNormal(3.0, 0.1), Box(3), Laplace(1.0), 4000),
            {"bound": 1.0, "bound_lr": 2e-3, "effective_negatives": 60_000, "whiten": True},
        ),
        (Uniform(), Normal(0.1), Euclidean(3), GeneralizedNormal(3.0), 3500, {"whiten": True}),
        (Uniform(), Laplace(0.1), Euclidean(3), GeneralizedNormal(3.0), 6000, {}),
    ],
)
def test_synthetic_pairs(marginal, conditional, space, model, steps, options):
    found = presets.for_process(marginal, conditional, space, model)
    batch = {"batch": 4096} if "positives" in options else {}
    decay = {"decay": 0.5} if options.get("effective_negatives") == 100_000 else {}
    rate = {"lr": 5e-3} if steps == 3500 else {}
    assert found == Recipe(Training(steps=steps, **batch, **decay, **rate), **options)


@pytest.mark.parametrize(
    ("space", "conditional", "codes", "expected"),
    [
        (Euclidean(3), Normal(0.5), Euclidean(3), {"steps": 1000}),
        (Euclidean(3), Laplace(0.5), Euclidean(3), {"steps": 2000}),
        (Box(3), Normal(0.5), Euclidean(3), {"steps": 2000}),
        (
            *(Sphere(3), VonMisesFisher(5.0), Sphere(3)),
            {"steps": 1200, "radius": math.sqrt(5), "soften": True},
        ),
        (Sphere(3), Normal(0.1), Sphere(3), {"steps": 2500, "tau": 0.1, "pull": 0.5}),
    ],
)
def test_pairs_with_any_marginal(space, conditional, codes, expected):
    found = presets.any_marginal(space, conditional, codes)
    options = {name: value for name, value in expected.items() if name != "steps"}
    options |= {"self_negative": False, "negatives_from": "positives"}
    options |= {"symmetric": True, "potential": True}
    assert found == Recipe(Training(steps=expected["steps"]), **options)


def test_a_precise_density_takes_longer_off_the_sphere():
    extra = {"curved": True, "potential_lr": 0.03, "refine": 1000}
    for space, conditional, steps in (
        (Euclidean(3), Normal(0.5), 3000),
        (Euclidean(3), Laplace(0.5), 2000),
        (Box(3), Normal(0.5), 2000),
    ):
        usual = presets.any_marginal(space, conditional, Euclidean(3))
        found = presets.any_marginal(space, conditional, Euclidean(3), precise=True)
        assert found == replace(usual, training=Training(steps=steps), **extra)
    on_sphere = Sphere(3), VonMisesFisher(5.0), Sphere(3)
    assert presets.any_marginal(*on_sphere, precise=True) == presets.any_marginal(*on_sphere)


def test_a_pull_starts_after_a_quarter_and_is_complete_after_three_fifths():
    for steps, expected in ((1000, (250, 600)), (1, (0, 1))):
        loss = Recipe(Training(steps=steps), pull=0.5).loss(VonMisesFisher(1.0))
        assert loss.pull == (0.5, *expected)
    assert Recipe(Training(steps=9)).loss(Normal(1.0)).pull is None
    several = Recipe(Training(steps=9), positives=2).loss(Normal(1.0))
    assert not several.positive_in_denominator
    assert Recipe(Training(steps=9)).loss(Normal(1.0)).positive_in_denominator


def test_settings_that_are_left_open():
    plain = Recipe(Training())
    assert plain.network == (128, 128, 128)
    assert (plain.self_negative, plain.symmetric, plain.potential) == (True, False, False)
    assert (plain.positives, plain.tau, plain.bound) == (1, 1.0, 1.0)
    assert (plain.dropout, plain.handicap, plain.raw, plain.learn_tau) == (0.0, 0.0, False, False)
    walks = Walking(*[Training(steps=k) for k in (1, 2, 3, 4)])
    assert (walks.starts, walks.narrower, walks.apart) == (3, 0.7, 3)
    assert (walks.heat, walks.cooling) == (12.0, 0.9)
    assert [training.steps for training in walks.on_images()] == [1, 1, 1, 2, 3]
    found = from_config({"walking": {"starts": 2, **{name: {} for name in STAGES}}})
    assert found.walking == Walking(*[Training()] * 4, starts=2)


STAGES = ("start", "narrow", "wide", "head")


@pytest.mark.parametrize(
    ("recipe", "expected"),
    [
        (presets.SUPERVISED, {"steps": 2000, "score_every": 250, "checkpoint_every": 250}),
        (presets.DEMO, {"steps": 1500}),
        (presets.DEMO_SUPERVISED, {"steps": 600, "score_every": 100, "checkpoint_every": 200}),
        (presets.PAPER_SUPERVISED, {"steps": 100_000, "batch": 6144, "checkpoint_every": 100}),
        (presets.PAPER, {"steps": 300_000, "batch": 6144, "checkpoint_every": 100}),
        (presets.PAPER_IMAGES, {"batch": 32, "score_every": 5000, "checkpoint_every": 500}),
        (presets.PAPER_THREEDIDENT, {"batch": 512, "score_every": 500, "checkpoint_every": 50}),
        (presets.MASKS, {"steps": 600, "batch": 32, "lr": 2e-3, "warmup": 20, "decay": 0.4}),
        (presets.MASKS, {"score_every": 100, "optimizer": Training().optimizer}),
        (presets.MASKS_VAE, {"steps": 900, "batch": 32, "lr": 1e-3, "warmup": 20, "decay": 0.2}),
        (presets.MASKS_VAE, {"score_every": 150, "optimizer": "adam"}),
        (presets.SPRITES, {"steps": 1500, "batch": 256, "lr": 1e-2, "warmup": 20, "decay": 0.7}),
        (presets.SPRITES_VAE, {"steps": 2000, "batch": 32, "lr": 5e-3, "warmup": 20}),
        (presets.SPRITES_VAE, {"decay": 0.5}),
        (presets.NATURAL, {"steps": 400, "batch": 256, "decay": 0.7}),
        (presets.NATURAL_VAE, {"steps": 1000, "batch": 32, "decay": 0.5}),
        (presets.THREEDIDENT_SUPERVISED, {"steps": 3600, "batch": 128, "lr": 1e-2, "warmup": 50}),
        (presets.THREEDIDENT_SUPERVISED, {"score_every": 250, "checkpoint_every": 100}),
    ],
)
def test_training_of_the_tables(recipe, expected):
    found = {name: getattr(recipe.training, name) for name in expected}
    assert found == expected


def test_options_of_the_tables():
    assert (presets.DEMO.symmetric, presets.DEMO.radius) == (True, 2.0)
    assert (presets.MASKS.bound, presets.MASKS.bound_lr) == (20.0, 1e-2)
    assert presets.SPRITES.alpha_start == presets.NATURAL.alpha_start == 0.9
    images = presets.THREEDIDENT
    assert (images.self_negative, images.symmetric, images.bound) == (False, True, None)
    stages = {name: getattr(images.walking, name) for name in STAGES}
    shared = {"batch": 256, "warmup": 50, "score_every": 250, "checkpoint_every": 100}
    assert stages["start"] == Training(steps=250, lr=1e-2, decay=0, **shared)
    assert stages["narrow"] == Training(steps=1200, lr=1e-2, decay=0, **shared)
    assert stages["wide"] == Training(steps=3200, lr=7.5e-3, **shared)
    assert stages["head"] == Training(
        steps=4000,
        batch=512,
        lr=1e-3,
        optimizer="adam",
        decay=0.6,
        score_every=500,
        checkpoint_every=200,
    )
    assert images.training == Training(steps=1000, lr=1e-2, **shared)
