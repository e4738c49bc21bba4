import math

import numpy as np
import pytest
import torch

from helpers.fits import pairs
from identica import (
    Box,
    ContrastiveICA,
    ContrastiveModel,
    InfoNCE,
    InputError,
    Laplace,
    Normal,
    Training,
)
from identica.estimator import fit as fitting
from identica.estimator.fit import Fit, Run
from identica.estimator.pairs import ArrayPairs
from identica.estimator.prepare import hold_out
from identica.estimator.sequences import sequences
from identica.estimator.starts import Starts
from identica.spaces import Euclidean


def test_the_precision_is_in_units_of_the_temperature():
    """The similarity of codes scaled by the loss, over the temperature, is −Σ λ_k |a_k − b_k|^p; the
    temperature that training began with has no part in it."""
    log = [0.3, -1.2, 2.0]
    for family, tau in ((Laplace(0.5), 3.0), (Normal(2.0), 0.2)):
        loss = InfoNCE(family, tau, learn_precision=3)
        loss.log_precision.data.copy_(torch.tensor(log))
        model = ContrastiveModel(Euclidean(3), family, torch.nn.Identity())
        fit = Fit(model, loss, 0.7, history=[], bits=0.0, starts=[], training=Training())
        a, b = torch.randn(2, 5, 3, generator=torch.Generator().manual_seed(0))
        power = {1.0: 1 / 0.5, 2.0: 1 / (2 * 2.0**2)}[family.p]  # of the density
        known = [math.exp(x) * power / 0.7 for x in log]
        assert fit.precision.tolist() == pytest.approx(known, rel=1e-5)
        expected = -(fit.precision * (a - b).abs() ** family.p).sum(-1)
        found = family.similarity(loss.scaled(a), loss.scaled(b)) / fit.temperature
        assert torch.allclose(found, expected, rtol=1e-4)


# --- the race ---------------------------------------------------------------------------------------


@pytest.fixture
def starts(monkeypatch):
    """Starts of a small race: rungs of 10 steps of 40, with scores every 5."""
    monkeypatch.setattr(fitting, "RUNG", 10)
    monkeypatch.setattr(fitting, "EVERY", 5)
    batch = pairs(800)
    sample = ArrayPairs(batch.x.numpy(), batch.x_pos.numpy())
    return Starts(sample, (2,), None, {"steps": 40, "batch": 64})


def test_the_best_run_by_held_out_evidence_is_kept(starts):
    found = starts.fit(Box(2), Laplace(1.0))
    recipes = starts.recipes(Box(2), Laplace(1.0))
    assert len(found.starts) == len(recipes) + 2
    assert found.bits == max(start["bits"] for start in found.starts)
    assert found.bits == max(record["bits"] for record in found.history)
    assert all(10 <= start["steps"] <= 40 for start in found.starts)
    assert max(start["steps"] for start in found.starts) == 40
    assert [record["step"] for record in found.history] == list(range(5, 41, 5))
    assert {start["possible_bits"] for start in found.starts} == {math.log2(200)}


def test_the_evidence_is_that_of_held_out_pairs(starts):
    """Of the kept weights, on pairs that are found again; on its way, only some temperatures are tried."""
    found = starts.fit(Box(2), Laplace(1.0))
    held = hold_out(starts.sample)[1](1000, generator=torch.Generator().manual_seed(0))
    bits = found.log_likelihood(held).mean().item() / math.log(2)
    assert found.bits - 0.02 < bits < found.bits + 2
    h, h_pos = (fitting.encode(found.model, x).double() for x in held)
    distance = (h[:, None] - h_pos[None]).abs().sum(-1) / found.temperature
    chance = -distance.diagonal() - (-distance).logsumexp(1) + math.log(len(h))
    assert bits == pytest.approx(chance.mean().item() / math.log(2), abs=1e-3)


def test_easy_pairs_have_a_recipe_of_their_own_trained_to_its_end(starts, monkeypatch):
    monkeypatch.setattr(fitting, "SATURATED", -math.inf)
    found = starts.fit(Box(2), Laplace(1.0))
    easy = starts.easy(Box(2), Laplace(1.0))
    assert found.training == easy.training
    assert found.history[-1]["step"] == 40
    assert found.starts[-1]["network"] == list(easy.network)
    short = starts.fit(Box(2), Laplace(1.0), short=True)
    assert short.training != easy.training


@pytest.mark.parametrize(("lead", "convolutional"), [(1.2, False), (1.5, True)])
def test_a_network_for_images_must_lead_by_far(monkeypatch, lead, convolutional):
    def go(run, until=None, **_):
        bits = lead if run.recipe.network == "conv" else 1.0
        run.history = [{"step": until or 400, "bits": bits}]

    monkeypatch.setattr(Run, "go", go)
    x = np.random.default_rng(0).random((40, 16, 16), np.float32)
    starts = Starts(ArrayPairs(x, within=sequences(40)), (16, 16), None, {})
    found = starts.fit(Box(2), Laplace(1.0))
    assert found.bits == (lead if convolutional else 1.0)
    assert max(start["bits"] for start in found.starts) == lead  # as they are, in what is told


def test_the_race_is_the_same_with_a_folder(starts, tmp_path):
    alone, there, again = (
        starts.fit(Box(2), Laplace(1.0), "fit", out) for out in (None, tmp_path, tmp_path)
    )
    for other in (there, again):
        assert other.starts == alone.starts
        for a, b in zip(other.model.parameters(), alone.model.parameters(), strict=True):
            assert torch.equal(a, b)


def test_codes_are_in_the_space_whatever_side_training_had(starts):
    found = starts.fit(Box(2, -1.0, 4.0), Normal(1.0))
    x = torch.from_numpy(starts.sample.x)
    codes = fitting.encode(found.model, x)
    assert -1 <= codes.min() < codes.max() <= 4


def test_inputs_are_dropped_and_the_others_scaled_up(starts, tmp_path):
    recipe = next(r for r in starts.recipes(Box(2), Laplace(1.0)) if r.dropout == 0.3)
    run = Run(
        lambda: starts(recipe, 2, 0),
        Box(2),
        Laplace(1.0),
        tmp_path,
        learn_precision=False,
        device="cpu",
        seed=0,
    )
    plain = run.sample(500, generator=torch.Generator().manual_seed(3))
    batch = run.draw(500, generator=torch.Generator().manual_seed(3))
    for x, whole in zip(batch, plain, strict=True):
        kept = x != 0
        assert kept.float().mean() == pytest.approx(0.7, abs=0.06)
        assert torch.allclose(x[kept], whole[kept] / 0.7)
    assert not torch.equal(batch.x == 0, batch.x_pos == 0)


# --- warnings ---------------------------------------------------------------------------------------


def test_tensorboard_needs_a_folder():
    x = np.random.default_rng(0).normal(size=(60, 2)).cumsum(axis=0)
    with pytest.raises(InputError, match="tensorboard needs folder"):
        ContrastiveICA(2, steps=2, tensorboard=True).fit(x)
