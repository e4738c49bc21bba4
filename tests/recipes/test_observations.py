"""Candidates for observations: the settings behind the figures of results/, with numbers of pairs on both
sides of each limit."""

import pytest

from identica import (
    Box,
    Euclidean,
    GeneralizedNormal,
    Joint,
    Laplace,
    Normal,
    Product,
    Sphere,
    VonMisesFisher,
)
from identica.recipes import for_easy_pairs, for_images, for_network, for_observations


def told(recipe):
    """Optimiser, learning rate, network, dropout, and whether it takes the columns themselves."""
    training = recipe.training
    return training.optimizer, training.lr, recipe.network, recipe.dropout, recipe.raw


@pytest.mark.parametrize(
    ("pairs", "small", "large"),
    [(2999, 32, 64), (3000, 64, 64), (9999, 64, 64), (10_000, 64, 128)],
)
def test_candidates_for_rows(pairs, small, large):
    found = for_observations(Box(2), Normal(1.0), pairs)
    expected = [
        ("adamw", 3e-3, (small, small), 0.0, False),
        ("adamw", 2e-3, (large, large), 0.3, False),
        ("soap", 1e-2, (small, small), 0.0, False),
        ("adamw", 2e-3, (large, large), 0.5, True),
    ]
    if pairs < 3000:
        expected.append(("adamw", 1e-2, (), 0.0, False))
    assert [told(recipe) for recipe in found] == expected
    for recipe in found:
        how = recipe.training
        assert (how.steps, how.batch, how.warmup, how.decay) == (3000, 512, 30, 0)
        assert recipe.handicap == 0
        assert recipe.negatives_from == "positives"
        assert not recipe.self_negative
        assert (recipe.tau, recipe.bound, recipe.bound_lr) == (Normal(1.0).precision, 1.0, 1e-2)
        assert recipe.radius == 3.0


def test_options_of_precisions_and_of_products():
    (*_, learnt) = for_observations(Sphere(3), Normal(0.1), 1000, learn_precision=True)
    assert learnt.radius is None
    assert learnt.tau == pytest.approx(50)  # the precision of a standard deviation of 0.1
    joint = Joint((VonMisesFisher(5.0), 3), (Laplace(0.1), 2))
    (*_, both) = for_observations(Product(Sphere(3), Box(2)), joint, 1000)
    assert (both.learn_tau, both.bound, both.tau, both.radius) == (True, None, 1.0, None)


@pytest.mark.parametrize("wide", [False, True])
def test_candidates_for_a_network_that_is_given(wide):
    found = for_network(Box(2), Normal(1.0), wide=wide)
    expected = [("adamw", 2e-3, "given", 0.0, False), ("soap", 1e-2, "given", 0.0, False)]
    assert [told(recipe) for recipe in found] == expected[: 1 if wide else 2]
    how = found[0].training
    assert (how.steps, how.batch, how.warmup, how.decay) == (3000, 512, 30, 0)


@pytest.mark.parametrize("pairs", [2999, 3000])
def test_candidates_for_images(pairs):
    found = for_images(Box(2), Normal(1.0), pairs)
    rows = [told(recipe) for recipe in for_observations(Box(2), Normal(1.0), pairs)]
    *others, conv = found
    how = conv.training
    assert told(conv) == ("adamw", 1e-3, "conv", 0.0, False)
    assert (how.steps, how.batch, how.warmup, how.decay) == (2500, 64, 20, 0)
    if pairs == 3000:
        assert [told(recipe) for recipe in others] == rows
        assert conv.handicap == 0
    else:  # no linear map of pixels, and a little dropout where there was none
        kept = [("adamw", 3e-3, (32, 32), 0.1, False), *rows[1:4]]
        assert [told(recipe) for recipe in others] == kept
        assert conv.handicap == 0.25


@pytest.mark.parametrize(
    ("space", "family", "steps", "negatives", "bound"),
    [
        (Box(2), Laplace(0.1), 4000, 20_000, 1.0),
        (Box(2), Normal(0.1), 4000, 6144, 2.0),
        (Box(2), GeneralizedNormal(3.0), 4000, None, 5.0),
        (Euclidean(2), Laplace(0.1), 3000, 1_000_000, 1.0),
        (Euclidean(2), Normal(0.1), 3000, None, 2.0),
        (Sphere(2), Normal(0.1), 3000, None, 1.0),
    ],
)
def test_the_recipe_for_easy_pairs(space, family, steps, negatives, bound):
    found = for_easy_pairs(space, family)
    assert found.training.steps == steps
    assert found.effective_negatives == negatives
    assert found.bound == bound
    if not isinstance(space, Sphere):
        assert found.bound_lr == pytest.approx(8 / steps)
        assert found.self_negative
