"""Each assumption of each theorem by itself: what is named where it fails, and how scales must agree."""

import math

import pytest

from identica import (
    MLP,
    Box,
    BoxHead,
    ContrastiveModel,
    Euclidean,
    GeneralizedNormal,
    GenerativeProcess,
    InvertibleMLP,
    Joint,
    Laplace,
    Normal,
    Potential,
    Product,
    Sphere,
    SphereHead,
    Uniform,
    VonMisesFisher,
)
from identica.theory.promise import _expectation
from identica.theory.theorems import (
    Assumed,
    Believed,
    any_marginal,
    concentration,
    exponent,
    paper,
    precisions,
)

SPHERE, BOX, REAL = Sphere(3), Box(3), Euclidean(3)
FLAT = Uniform()


def assumed(space, family, **changes):
    given = {
        "unbounded": isinstance(space, Euclidean),
        "free": False,
        "tau": 1.0,
        "potential": False,
        "precisions": False,
    }
    return Assumed(space, family, **given | changes)


@pytest.mark.parametrize(
    ("truth", "model", "said"),
    [
        (Believed(REAL, Normal(1.0), Normal(0.1)), assumed(REAL, Normal(0.1)), "not bounded"),
        (
            Believed(BOX, FLAT, Laplace(0.1)),
            assumed(REAL, Laplace(0.1)),
            "in Box(dim=3, low=0.0, high=1.0), but the codes are unbounded",
        ),
        (
            Believed(BOX, FLAT, Laplace(0.1)),
            assumed(SPHERE, Normal(0.1)),
            "but the codes live in Sphere(dim=3",
        ),
        (
            Believed(Product(Box(1), Box(2)), FLAT, Laplace(0.1)),
            assumed(Product(Box(1), Box(2)), Laplace(0.1), free=True),
            "the theorems cover a sphere or a box",
        ),
        (
            Believed(BOX, FLAT, Laplace(0.1)),
            assumed(Box(2), Laplace(0.1)),
            "there are 3 factors, but the model has 2 codes",
        ),
        (Believed(BOX, Normal(0.3), Laplace(0.1)), assumed(BOX, Laplace(0.1)), "not uniform"),
        (
            Believed(SPHERE, FLAT, VonMisesFisher(3.0), (1.0, 1.0, 2.0)),
            assumed(SPHERE, VonMisesFisher(3.0)),
            "factors change by different amounts",
        ),
        (
            Believed(SPHERE, FLAT, Laplace(0.1)),
            assumed(SPHERE, Laplace(0.1)),
            "on the sphere the conditional must be von Mises–Fisher, not Laplace",
        ),
        (
            Believed(BOX, FLAT, Laplace(0.1)),
            assumed(BOX, Normal(0.1)),
            "exponent 1, but the model assumes 2",
        ),
        (
            Believed(BOX, FLAT, GeneralizedNormal(0.5)),
            assumed(BOX, GeneralizedNormal(0.5)),
            "exponent 0.5 < 1",
        ),
        (
            Believed(SPHERE, FLAT, VonMisesFisher(3.0)),
            assumed(SPHERE, Laplace(1.0)),
            "the conditional is VonMisesFisher(kappa=3.0), but the model assumes Laplace",
        ),
        (
            Believed(BOX, FLAT, Laplace(0.1)),
            assumed(BOX, Laplace(0.1), potential=True),
            "the loss has a potential",
        ),
        (
            Believed(SPHERE, FLAT, VonMisesFisher(3.0)),
            assumed(SPHERE, VonMisesFisher(3.0), precisions=True),
            "the loss has a precision for each code",
        ),
    ],
)
def test_the_one_assumption_of_the_paper_that_fails(truth, model, said):
    violations, promise = paper(truth, model)
    assert promise is None
    assert said in violations[0]
    assert len(violations) == len(set(violations))


@pytest.mark.parametrize(
    ("family", "up_to"),
    [
        (Laplace(0.1), "permutation"),
        (GeneralizedNormal(1.0), "permutation"),
        (Normal(0.1), "affine"),
    ],
)
def test_what_the_paper_promises_in_a_box(family, up_to):
    violations, promise = paper(Believed(BOX, FLAT, family), assumed(BOX, family))
    assert violations == []
    assert promise.up_to == up_to
    assert bool(promise.expect) == (up_to == "affine")


@pytest.mark.parametrize(
    ("family", "tau", "radius", "expected"),
    [
        (VonMisesFisher(3.0), 0.5, 2.0, 3 * 4 / 0.5),
        (Normal(0.5), 0.5, 2.0, 2 * 2 * 4 / 0.5),  # 1/2σ² = 2
        (Laplace(0.5), 1.0, 1.0, None),
    ],
)
def test_the_concentration_of_codes_on_a_sphere(family, tau, radius, expected):
    found = concentration(assumed(Sphere(3, radius), family, tau=tau))
    assert found == (None if expected is None else pytest.approx(expected))
    assert concentration(assumed(BOX, Normal(0.5))) is None


@pytest.mark.parametrize(("off", "agrees"), [(0.9e-6, True), (1.1e-6, False)])
def test_concentrations_agree_to_a_millionth(off, agrees):
    truth = Believed(SPHERE, FLAT, VonMisesFisher(7.0))
    for model in (VonMisesFisher(7.0 * (1 + off)), Normal((2 * 7.0 * (1 + off) / 2) ** -0.5)):
        violations, promise = paper(truth, assumed(SPHERE, model))
        assert (promise is not None) == agrees
        if not agrees:
            assert "κ = 7, but the model implies κ = 7" in violations[0]
        for options in ({"free": True}, {"potential": True, "free": True}):
            theorem = any_marginal if "potential" in options else paper
            assert theorem(truth, assumed(SPHERE, model, **options))[1].up_to == "orthogonal"


@pytest.mark.parametrize(("off", "agrees"), [(0.9e-3, True), (1.1e-3, False), (-1.1e-3, False)])
def test_scales_agree_to_a_thousandth_of_the_side(off, agrees):
    """With fixed sides, of which the shortest of the factors goes with the shortest of the codes."""
    space, codes = Box(2, (0.0, -1.0), (4.0, 0.0)), Box(2, 0.0, (2.0, 8.0))
    truth = Believed(space, FLAT, Laplace(0.1))
    model = assumed(codes, Laplace(0.4 * (1 + off)), tau=0.5)  # of a width of .2 in twice the sides
    violations, promise = paper(truth, model)
    assert (promise is not None) == agrees
    if not agrees:
        assert f"scale is 0.1 of a side of {space}" in violations[0]
    assert paper(truth, assumed(codes, Laplace(9.0), free=True))[1] is not None
    # with a potential, a wall may be further away, but not nearer
    _, promise = any_marginal(
        truth, assumed(codes, Laplace(0.4 * (1 + off)), tau=0.5, potential=True)
    )
    assert (promise is not None) == (off < 1e-3)


@pytest.mark.parametrize(
    ("truth", "model", "said"),
    [
        (
            Believed(BOX, FLAT, Normal(0.1)),
            assumed(BOX, Normal(0.1), precisions=True),
            "learnt precisions are covered on a sphere, not on Box",
        ),
        (
            Believed(SPHERE, FLAT, VonMisesFisher(3.0)),
            assumed(SPHERE, VonMisesFisher(3.0)),
            "the model has one precision for all codes",
        ),
        (
            Believed(SPHERE, Normal(1.0), VonMisesFisher(3.0)),
            assumed(SPHERE, Normal(1.0), precisions=True),
            "not uniform",
        ),
    ],
)
def test_the_one_assumption_of_precisions_that_fails(truth, model, said):
    violations, promise = precisions(truth, model)
    assert promise is None
    assert len(violations) == 1
    assert said in violations[0]


@pytest.mark.parametrize(
    ("values", "up_to"),
    [
        (None, "orthogonal"),
        ((2.0, 2.0, 2.0), "orthogonal"),
        ((1.0, 2.0, 2.0), "blocks"),
        ((1.0, 2.0, 3.0), "permutation"),
    ],
)
def test_precisions_that_differ_tell_factors_apart(values, up_to):
    truth = Believed(SPHERE, FLAT, VonMisesFisher(3.0), values)
    model = assumed(SPHERE, Normal(1.0), precisions=True)
    assert precisions(truth, model)[1].up_to == up_to
    assert truth.uneven == (up_to not in ("orthogonal",))
    with_potential = assumed(SPHERE, Normal(1.0), precisions=True, potential=True)
    assert any_marginal(truth, with_potential)[1].up_to == up_to


PARTS = Product(Sphere(3), Euclidean(2))
SQUARES = Joint((VonMisesFisher(3.0), 3), (Normal(0.1), 2))


@pytest.mark.parametrize(
    ("truth", "model", "said"),
    [
        (Believed(REAL, Normal(1.0), Normal(0.1)), assumed(REAL, Normal(1.0)), "no potential"),
        (
            Believed(REAL, Normal(1.0), Normal(0.1)),
            assumed(Euclidean(4), Normal(1.0), potential=True),
            "there are 3 factors, but the model has 4 codes",
        ),
        (
            Believed(PARTS, FLAT, Joint((Normal(1.0), 3), (Normal(0.1), 2))),
            assumed(Euclidean(5), Normal(1.0), potential=True),
            "on the sphere the conditional must be von Mises–Fisher, not Normal(std=1.0)",
        ),
        (
            Believed(PARTS, FLAT, Joint((VonMisesFisher(3.0), 3), (Laplace(0.1), 2))),
            assumed(Euclidean(5), Normal(1.0), potential=True),
            "has no common exponent",
        ),
        (
            Believed(REAL, Normal(1.0), Normal(0.1)),
            assumed(REAL, Laplace(1.0), potential=True),
            "the conditional is Normal(std=0.1), but the model assumes Laplace(scale=1.0)",
        ),
        (
            Believed(REAL, Normal(1.0), GeneralizedNormal(0.9)),
            assumed(REAL, GeneralizedNormal(0.9), potential=True),
            "exponent 0.9 < 1",
        ),
        (
            Believed(BOX, FLAT, Normal(0.1)),
            assumed(SPHERE, Normal(0.1), potential=True),
            "the factors live in Box(dim=3, low=0.0, high=1.0), but the codes live in Sphere",
        ),
        (
            Believed(SPHERE, FLAT, VonMisesFisher(3.0)),
            assumed(SPHERE, VonMisesFisher(4.0), potential=True),
            "κ = 3, but the model implies κ = 4",
        ),
        (
            Believed(SPHERE, FLAT, VonMisesFisher(3.0), (1.0, 2.0, 3.0)),
            assumed(SPHERE, VonMisesFisher(3.0), potential=True),
            "factors change by different amounts",
        ),
        (
            Believed(PARTS, FLAT, SQUARES),
            assumed(PARTS, SQUARES, potential=True),
            "is fixed; learn it",
        ),
        (
            Believed(BOX, FLAT, Laplace(0.1)),
            assumed(BOX, Laplace(0.2), potential=True),
            "the factors do not fit into Box",
        ),
    ],
)
def test_the_one_assumption_of_any_marginal_that_fails(truth, model, said):
    violations, promise = any_marginal(truth, model)
    assert promise is None
    assert len(violations) == 1
    assert said in violations[0]


@pytest.mark.parametrize(
    ("truth", "model", "up_to"),
    [
        (
            Believed(PARTS, FLAT, SQUARES),
            assumed(PARTS, SQUARES, potential=True, free=True),
            "affine",
        ),
        (
            Believed(REAL, Normal(1.0), Normal(0.1)),
            assumed(REAL, Normal(1.0), potential=True, precisions=True),
            "affine",
        ),
        (
            Believed(REAL, Normal(1.0), Normal(0.1)),
            assumed(REAL, Normal(1.0), potential=True),
            "orthogonal",
        ),
        (
            Believed(SPHERE, FLAT, VonMisesFisher(3.0), (1.0, 2.0, 3.0)),
            assumed(REAL, Normal(1.0), potential=True),
            "affine",
        ),
        (
            Believed(REAL, Normal(1.0), Laplace(0.1)),
            assumed(REAL, Laplace(1.0), potential=True),
            "permutation",
        ),
        (
            Believed(REAL, Normal(1.0), GeneralizedNormal(1.0)),
            assumed(REAL, Laplace(1.0), potential=True),
            "permutation",
        ),
    ],
)
def test_what_a_potential_promises(truth, model, up_to):
    violations, promise = any_marginal(truth, model)
    assert violations == []
    assert promise.up_to == up_to


def test_exponents():
    assert exponent(VonMisesFisher(1.0)) == exponent(Normal(1.0)) == exponent(SQUARES) == 2
    assert exponent(GeneralizedNormal(3.0)) == 3
    assert exponent(Uniform()) is None
    assert exponent(Joint((Laplace(1.0), 1), (Normal(1.0), 1))) is None


def test_what_a_model_assumes():
    plain = ContrastiveModel(BOX, Laplace(1.0), MLP(3, 3))
    found = Assumed.of(plain, 0.5, False)
    assert found == assumed(BOX, Laplace(1.0), tau=0.5)
    learnt = ContrastiveModel(
        BOX, Laplace(1.0), MLP(3, 3), head=BoxHead(BOX, learnable=True), potential=Potential(3)
    )
    expected = assumed(BOX, Laplace(1.0), free=True, potential=True, precisions=True)
    assert Assumed.of(learnt, 1.0, True) == expected
    heated = Assumed.of(plain, None, False)
    assert (heated.free, heated.tau) == (True, math.inf)
    assert Assumed.of(ContrastiveModel(REAL, Normal(1.0), MLP(3, 3)), 1.0, False).unbounded
    sphere = ContrastiveModel(SPHERE, Normal(1.0), MLP(3, 3), head=SphereHead(SPHERE))
    assert not Assumed.of(sphere, 1.0, False).free


@pytest.mark.parametrize(
    ("space", "marginal", "conditional", "codes", "family", "words"),
    [
        (BOX, FLAT, Laplace(0.1), Box(2), Laplace(1.0), "too few codes"),
        (BOX, FLAT, Laplace(0.1), SPHERE, Normal(1.0), "the map must bend"),
        (SPHERE, FLAT, VonMisesFisher(1.0), BOX, Normal(1.0), "the map must bend"),
        (SPHERE, FLAT, Laplace(0.1), SPHERE, Normal(1.0), "never more than up to a rotation"),
        (BOX, Normal(0.3), Laplace(0.1), BOX, Normal(1.0), "a box onto a box"),
        (REAL, Normal(1.0), Laplace(0.1), REAL, Laplace(1.0), "the marginal bends the map"),
        (BOX, FLAT, Normal(0.1), REAL, Normal(1.0), "like a random rotation"),
        (BOX, FLAT, Laplace(0.1), REAL, GeneralizedNormal(3.0), "like a random rotation"),
        (BOX, FLAT, Laplace(0.1), REAL, Laplace(1.0), "singles out the axes"),
    ],
)
def test_what_to_expect_without_a_theorem(space, marginal, conditional, codes, family, words):
    process = GenerativeProcess(space, marginal, conditional, InvertibleMLP(3, seed=0, draws=5))
    model = ContrastiveModel(codes, family, MLP(3, codes.dim))
    assert words in _expectation(process, model)
