"""Fits that learn the density of the factors along with the codes."""

import numpy as np
import pytest
import torch

from helpers.fits import TINY
from identica import (
    MLP,
    Box,
    ContrastiveICA,
    Euclidean,
    GenerativeProcess,
    InputError,
    InvertibleMLP,
    Joint,
    Laplace,
    Normal,
    Product,
    Sphere,
    checkpoints,
)
from identica.metrics import linear_r2


def test_a_normal_marginal_bends_the_codes_without_a_potential_and_its_density_is_found():
    g = InvertibleMLP(2, seed=2, draws=50)
    process = GenerativeProcess(Euclidean(2), Normal(1.0), Normal(1.0), g)
    seen, unseen = process.sample(8000, generator=0), process.sample(2000, generator=1)
    lost = {}
    for marginal in ("uniform", "any"):
        ica = ContrastiveICA(
            network=MLP(2, 2, hidden=(64, 64)),
            space="unbounded",
            marginal=marginal,
            steps=400,
            batch=256,
            optimizer="soap",
            lr=1e-2,
        ).fit(seen.x, seen.x_pos)
        lost[marginal] = 1 - linear_r2(unseen.z, ica.transform(unseen.x))
    assert lost["any"] < 0.5 * lost["uniform"]
    truth = -unseen.z.square().sum(1).numpy() / 2  # the positives have twice the variance
    found = ica.log_density(unseen.x)
    assert np.corrcoef(found, truth)[0, 1] > 0.9
    assert np.polyfit(truth, found, 1)[0] == pytest.approx(0.5, abs=0.2)


@pytest.mark.parametrize(
    ("space", "conditional"),
    [
        ("box", "laplace"),
        ("unbounded", "normal"),
        ("sphere", "vmf"),
        (Box(2, -1.0, (1.0, 3.0)), None),
        (Sphere(2, radius=2.0), None),
        (
            Product(Box(1), Euclidean(1)),
            Joint((Laplace(1.0), 1), (Laplace(1.0), 1)),
        ),
    ],
)
def test_potential_and_codes_come_back_as_one(data, tmp_path, space, conditional):
    """What the fitted potential makes of returned codes is what the trained one made of trained ones."""
    x, x_pos = data
    ica = ContrastiveICA(
        2, space=space, conditional=conditional, marginal="any", steps=60, batch=32
    ).fit(x, x_pos)
    found = ica.log_density(x)
    assert found.shape == (len(x),)
    assert found.dtype == np.float64
    assert found.std() > 0
    ica.save(tmp_path / "ica.safetensors")
    back = ContrastiveICA.load(tmp_path / "ica.safetensors")
    assert np.array_equal(back.log_density(x), found)
    assert back.score(x, x_pos) == ica.score(x, x_pos)
    assert back.marginal == "any"
    # codes in single precision see the same density
    assert np.allclose(ica.log_density(x.astype(np.float32)), found, atol=1e-3 * found.std())


def test_the_score_has_the_potential_in_it(data):
    x, x_pos = data
    ica = ContrastiveICA(2, conditional="laplace", marginal="any", **TINY).fit(x, x_pos)
    torch.nn.init.normal_(ica.model_.potential.network.layers[-1].weight)
    h, h_pos = ica.transform(x), ica.transform(x_pos)
    b = -ica.log_density(x_pos)
    logits = -np.abs(h[:, None] - h_pos).sum(-1) / ica.temperature_ + b
    chance = np.log(np.exp(logits).mean(1))
    expected = (logits.diagonal() - chance).mean() / np.log(2)
    assert ica.score(x, x_pos) == pytest.approx(expected, abs=1e-4)


def test_densities_of_sequences_come_in_the_form_of_their_codes(data):
    x, _ = data
    ica = ContrastiveICA(2, marginal="any", **TINY).fit([x[:40], x[40:]])
    parts = ica.log_density([x[:40], x[40:]])
    assert [part.shape for part in parts] == [(40,), (60,)]
    assert np.allclose(np.concatenate(parts), ica.log_density(x, groups=np.arange(100) >= 40))
    trials = x[:96].reshape(4, 24, 2)
    assert ContrastiveICA(2, marginal="any", **TINY).fit(trials).log_density(trials).shape == (
        4,
        24,
    )


def test_a_density_must_have_been_learnt(fitted, data):
    with pytest.raises(InputError, match=r'log_density needs a fit with marginal="any"'):
        fitted.log_density(data[0])


def test_estimators_saved_before_there_were_potentials_come_back(fitted, data, tmp_path):
    fitted.save(tmp_path / "ica.safetensors")
    state = checkpoints.load(tmp_path / "ica.safetensors")
    del state["fitted"]["potential"], state["estimator"]["marginal"]
    checkpoints.save(tmp_path / "old.safetensors", state)
    back = ContrastiveICA.load(tmp_path / "old.safetensors")
    assert np.array_equal(back.transform(data[0]), fitted.transform(data[0]))
