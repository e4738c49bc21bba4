import math

import numpy as np
import pytest
import torch

from helpers.walks import noisy, slow
from identica import MLP, Box, Laplace, Normal
from identica.estimator.pairs import ArrayPairs, Batch
from identica.estimator.predictable import independent_pairs
from identica.estimator.sequences import sequences
from identica.estimator.starts import Starts


def made(sample, shape, network=None, **given):
    return Starts(sample, shape, network, given)


def starts(rows=600, network=None, **given):
    return made(ArrayPairs(noisy(rows)[1], within=sequences(rows)), (8,), network, **given)


def recipes(found):
    return found.recipes(Box(2), Normal(1.0))


def test_a_start_is_determined_by_its_seed():
    found = starts()
    for recipe in recipes(found):
        first, again, other = (found(recipe, 2, seed).encoder.network for seed in (0, 0, 1))
        assert torch.equal(first.linear.weight, again.linear.weight)
        assert not torch.equal(first.linear.weight, other.linear.weight)
        assert torch.equal(first.matrix, other.matrix)


def test_a_start_trains_on_prepared_pairs_with_the_network_alone():
    """Codes of raw rows by the encoder are those of prepared rows by the network."""
    found = starts()
    start = found(recipes(found)[0], 2, 0)
    x = torch.from_numpy(noisy(600)[1])
    prepared = torch.from_numpy(start.sample.x)
    assert torch.allclose(start.encoder(x), start.encoder.network(prepared), atol=1e-5)
    assert len(start.held.x) == pytest.approx(600 / 4, abs=3)


def test_a_network_that_is_given_starts_from_its_own_weights_and_then_from_others():
    given = MLP(8, 3, hidden=(4,), seed=7)
    found = starts(network=given)
    assert found.codes() == 3
    [first, *_] = recipes(found)
    own, other = (found(first, 3, seed).encoder.network for seed in (0, 1))
    assert torch.equal(own.layers[0].weight, given.layers[0].weight)
    assert not torch.equal(other.layers[0].weight, given.layers[0].weight)
    assert own is not given
    found = starts(network=lambda shape, n: torch.nn.Linear(*shape, n))
    assert found.codes() is None
    first, other = (found(recipes(found)[0], 2, seed).encoder.network for seed in (0, 1))
    assert not torch.equal(first.weight, other.weight)


def test_soap_is_not_tried_with_wide_layers():
    def tried(hidden, **given):
        found = recipes(starts(network=MLP(8, 2, hidden=hidden), **given))
        return {recipe.training.optimizer for recipe in found}

    assert "soap" in tried((16,))
    assert "soap" not in tried((1500,))
    assert tried((1500,), optimizer="soap") == {"soap"}


def test_settings_that_are_given_take_the_place_of_ours():
    given = {"steps": 7, "batch": 9, "lr": 0.5, "optimizer": "adam"}
    found = starts(**given)
    tried = recipes(found)
    for recipe in [*tried, found.easy(Box(2), Laplace(1.0))]:
        assert {name: getattr(recipe.training, name) for name in given} == given
    assert len(set(tried)) == len(tried)  # none twice


def test_batches_are_no_larger_than_what_is_trained_on():
    found = starts(300)
    assert all(r.training.batch == found.rows.pairs < 300 for r in recipes(found))
    assert all(r.training.batch == 11 for r in recipes(starts(300, batch=11)))


@pytest.mark.parametrize(
    ("shape", "convolutional"),
    [((64, 64), True), ((3, 64, 64), True), ((20, 20), True), ((9, 9), False)],
)
def test_images_are_tried_with_and_without_a_convolutional_network(shape, convolutional):
    x = np.random.default_rng(0).random((40, *shape), np.float32)
    found = made(ArrayPairs(x, within=sequences(40)), shape)
    tried = recipes(found)
    assert ("conv" in {recipe.network for recipe in tried}) == convolutional
    assert (
        () in {recipe.network for recipe in tried}
    ) != convolutional  # of few rows, not of images
    assert found.easy(Box(2), Normal(1.0)) is None
    for recipe in (tried[0], tried[-1]):
        start = found(recipe, 2, 0)
        assert start.encoder(torch.from_numpy(x[:3])).shape == (3, 2)


def test_pairs_drawn_by_a_function():
    def draw(size, *, generator):
        x = torch.randn(size, 3, generator=generator)
        return Batch(x, x + 0.1)

    found = made(draw, (3,))
    assert found.effective_pairs(2) == math.inf
    assert found.most_codes() == 3
    assert recipes(found)[0].training.batch == 512


def test_slow_rows_are_worth_few_independent_pairs():
    rng = np.random.default_rng(0)
    worth = []
    for rho in (0.999, 0.9, 0.0):
        x = slow(rho, (2000, 3), rng)
        found = made(ArrayPairs(x, within=sequences(2000)), (3,))
        worth.append(found.effective_pairs(3))
    assert worth[0] < 20 < 50 < worth[1] < 200 < 1000 < worth[2] <= 2000
    # pairs that are given are taken to be independent
    assert made(ArrayPairs(x, x + 1), (3,)).effective_pairs(3) == 2000 * 7 / 8


def test_no_more_codes_than_directions_or_a_hundredth_of_the_pairs():
    assert starts(3000).most_codes() == 2
    x = np.repeat(np.random.default_rng(0).normal(size=(3000, 3)).cumsum(0), 10, axis=1)
    assert made(ArrayPairs(x, within=sequences(3000)), (30,)).most_codes() == 3
    assert starts(120).most_codes() == 1


@pytest.mark.parametrize(("units", "soap"), [(1024, True), (1025, False)])
def test_layers_of_more_than_1024_units_are_wide(units, soap):
    network = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.Linear(4, units, bias=False))
    tried = recipes(starts(network=network))
    assert ("soap" in {recipe.training.optimizer for recipe in tried}) == soap


def test_the_lag_of_a_range_is_its_middle():
    x = slow(0.9, (1000, 3), np.random.default_rng(0))
    found = made(ArrayPairs(x, within=sequences(1000, (2, 5))), (3,))
    expected = independent_pairs(found.rows.pairs, 3.5, found.rows.look.correlations, 2)
    assert found.effective_pairs(2) == pytest.approx(expected)


@pytest.mark.parametrize(("pairs", "codes"), [(457, 3), (458, 4)])
def test_a_hundred_pairs_for_each_code(pairs, codes):
    """Of those to train on, seven of eight or three of four."""
    pairs = pairs * 4 // 3 - 76
    x = np.random.default_rng(0).normal(size=(pairs, 6))
    found = made(ArrayPairs(x, x), (6,))
    assert found.most_codes() == int(found.rows.pairs / 100)


def test_a_short_fit_takes_two_recipes_and_400_steps(monkeypatch):
    seen = []
    monkeypatch.setattr(
        "identica.estimator.starts.fit",
        lambda start, recipes, *args, **more: seen.append((recipes, more["easy"])),
    )
    for steps, expected in ((1000, 400), (399, 399)):
        found = starts(steps=steps)
        found.fit(Box(2), Normal(1.0), short=True)
        tried, easy = seen.pop()
        assert [recipe.training.steps for recipe in tried] == [expected] * 2
        assert easy is None
        found.fit(Box(2), Normal(1.0))
        tried, easy = seen.pop()
        assert [recipe.training.steps for recipe in tried] == [steps] * 5
        assert easy is not None
