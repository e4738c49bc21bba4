import pytest
import torch

from identica import (
    MLP,
    Box,
    ContrastiveModel,
    Euclidean,
    GenerativeProcess,
    InfoNCE,
    InvertibleMLP,
    Laplace,
    Normal,
    Sphere,
    Uniform,
    VonMisesFisher,
)
from identica.metrics import linear_r2, mcc
from identica.theory import counterexample


@pytest.fixture(scope="module")
def mixing():
    return InvertibleMLP(3, seed=0, draws=10)


def loss_of(process, family, h, seed):
    """The loss of a map on pairs of our own, many more than the search looked at."""
    z = process.latents(4096, generator=seed)
    z_pos = process.positives(z, generator=seed + 1)
    with torch.no_grad():
        return float(InfoNCE(family)(h(z), h(z_pos)))


def test_a_rotation_of_unbounded_codes(mixing):
    process = GenerativeProcess(Box(3), Uniform(), Laplace(0.2), mixing)
    found = counterexample(process, ContrastiveModel(Euclidean(3), Normal(1.0), MLP(3, 3)))
    z = process.latents(2000, generator=9)
    assert found.how == "a rotation"
    assert linear_r2(z, found.h(z)) > 0.9999
    assert mcc(z, found.h(z)) < 0.9
    assert found.loss == pytest.approx(found.loss_of_truth, abs=1e-5)


def test_a_marginal_that_bends_the_map(mixing):
    """Trained from the truth, whose loss it undercuts on pairs that neither has seen, at any scale."""
    process = GenerativeProcess(Euclidean(3), Normal(1.0), Normal(1.0), mixing)
    model = ContrastiveModel(Euclidean(3), Normal(1.0), MLP(3, 3))
    found = counterexample(process, model, steps=400)
    assert found.how == "trained from the truth"
    assert found.r2 < 0.97
    best = min(
        loss_of(process, model.conditional, lambda z, c=c: c * z, 50) for c in (0.7, 1, 1.4, 2)
    )
    assert loss_of(process, model.conditional, found.h, 50) < best


def test_codes_that_cannot_hold_the_factors(mixing):
    process = GenerativeProcess(Box(3), Uniform(), Normal(0.3), mixing)
    found = counterexample(process, ContrastiveModel(Sphere(3), VonMisesFisher(5.0), MLP(3, 3)))
    assert found.loss_of_truth is None
    assert found.r2 < 0.97
    assert "no code of the model" in str(found)


def test_none_where_the_theory_promises(mixing):
    process = GenerativeProcess(Sphere(3), Uniform(), VonMisesFisher(5.0), mixing)
    model = ContrastiveModel(Sphere(3), VonMisesFisher(5.0), MLP(3, 3))
    assert counterexample(process, model, steps=100) is None
