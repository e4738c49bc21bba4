"""What the theory promises for an estimator as it was fitted."""

import pytest
from sklearn.exceptions import NotFittedError

from identica import (
    Box,
    ContrastiveICA,
    GenerativeProcess,
    InputError,
    InvertibleMLP,
    Laplace,
    Normal,
    Sphere,
    Uniform,
    VonMisesFisher,
    guarantee,
)

MIXING = InvertibleMLP(3, seed=0, draws=50)
BOX = GenerativeProcess(Box(3), Uniform(), Laplace(0.05), MIXING)
BALL = GenerativeProcess(Sphere(3), Uniform(), VonMisesFisher(20.0), MIXING)


def fitted(process, **options):
    pairs = process.sample(300, generator=0)
    return ContrastiveICA(3, steps=2, batch=32, **options).fit(pairs.x, pairs.x_pos)


@pytest.mark.parametrize(
    ("process", "options", "up_to", "theorem"),
    [
        (BOX, {"conditional": "laplace"}, "permutation", "Theorem 6"),
        (BOX, {"conditional": Laplace(0.3)}, "permutation", "Theorem 6"),
        (BALL, {"space": "sphere"}, "orthogonal", "Theorem 2"),
        (BALL, {"space": "sphere", "learn_precision": True}, "orthogonal", "AnInfoNCE"),
    ],
    ids=str,
)
def test_a_model_that_matches_the_process(process, options, up_to, theorem):
    ica = fitted(process, **options)
    found = ica.guarantee(process)
    assert found.up_to == up_to
    assert found.theorem.startswith(theorem)
    # the model alone does not say that its scale was learnt
    assert not guarantee(process, ica.model_)


@pytest.mark.parametrize(
    ("process", "options", "violation"),
    [
        (BOX, {"conditional": "normal"}, "exponent 1, but the model assumes 2"),
        (BOX, {"space": "unbounded", "conditional": "laplace"}, "the codes are unbounded"),
        (BALL, {"space": "box"}, "but the codes live in"),
    ],
    ids=str,
)
def test_a_model_that_does_not(process, options, violation):
    found = fitted(process, **options).guarantee(process)
    assert not found
    assert violation in found.violations[0]


def test_a_potential_answers_for_any_marginal():
    skewed = GenerativeProcess(Box(3), Normal(0.2), Laplace(0.05), MIXING)
    options = {"space": "unbounded", "conditional": "laplace"}
    found = fitted(skewed, marginal="any", **options).guarantee(skewed)
    assert (found.up_to, found.theorem[:13]) == ("permutation", "Proposition B")
    assert not fitted(skewed, **options).guarantee(skewed)


def test_another_process_than_the_one_fitted():
    ica = fitted(BOX, conditional="laplace")
    skewed = GenerativeProcess(Box(3), Normal(0.2), Laplace(0.05), MIXING)
    assert ica.guarantee(skewed).violations == ("the marginal is Normal(std=0.2), not uniform",)
    wider = GenerativeProcess(Box(4), Uniform(), Laplace(0.05), InvertibleMLP(4, seed=0, draws=50))
    assert "there are 4 factors, but the model has 3 codes" in ica.guarantee(wider).violations
    with pytest.raises(InputError, match="process must be a GenerativeProcess"):
        ica.guarantee("box")
    with pytest.raises(NotFittedError):
        ContrastiveICA().guarantee(BOX)
