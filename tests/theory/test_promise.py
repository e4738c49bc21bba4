import math

import pytest
import torch

from identica import (
    MLP,
    Box,
    BoxHead,
    ContrastiveModel,
    Euclidean,
    GeneralizedNormal,
    GenerativeProcess,
    InputError,
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
    guarantee,
)

SPHERE, BOX, UNBOUNDED = Sphere(10), Box(10), Euclidean(10)
SQUARE, CUBE = GeneralizedNormal(2.0), GeneralizedNormal(3.0)


@pytest.fixture(scope="module")
def mixing():
    return InvertibleMLP(10, seed=0, draws=10)


def ask(mixing, space, marginal, conditional, codes, model, **options):
    process = GenerativeProcess(space, marginal, conditional, mixing)
    # the published model of a box learns its bounds
    head = BoxHead(codes, learnable=True) if isinstance(codes, Box) else None
    return guarantee(process, ContrastiveModel(codes, model, MLP(10, 10), head=head), **options)


TABLE1 = [  # space, p(z), p(z̃|z), model space, model, match
    (SPHERE, Uniform(), VonMisesFisher(1.0), SPHERE, VonMisesFisher(1.0), "orthogonal"),
    (SPHERE, Uniform(), VonMisesFisher(10.0), SPHERE, VonMisesFisher(1.0), None),
    (SPHERE, Uniform(), Laplace(0.05), SPHERE, VonMisesFisher(1.0), None),
    (SPHERE, Uniform(), Normal(0.05), SPHERE, VonMisesFisher(1.0), None),
    (BOX, Uniform(), Normal(0.05), UNBOUNDED, SQUARE, None),
    (BOX, Uniform(), Laplace(0.05), UNBOUNDED, SQUARE, None),
    (BOX, Uniform(), Laplace(0.05), UNBOUNDED, CUBE, None),
    (BOX, Uniform(), Normal(0.05), UNBOUNDED, CUBE, None),
    (SPHERE, Normal(1.0), Laplace(0.05), SPHERE, VonMisesFisher(1.0), None),
    (SPHERE, Normal(1.0), Normal(0.05), SPHERE, VonMisesFisher(1.0), None),
    (UNBOUNDED, Laplace(1.0), Normal(1.0), UNBOUNDED, SQUARE, None),
    (UNBOUNDED, Normal(1.0), Normal(1.0), UNBOUNDED, SQUARE, None),
]


@pytest.mark.parametrize("row", range(12), ids=lambda i: f"row {i + 1}")
def test_table_1(mixing, row):
    *assumptions, up_to = TABLE1[row]
    found = ask(mixing, *assumptions)
    assert found.up_to == up_to
    assert bool(found) == (up_to is not None)
    assert bool(found.violations) == (up_to is None)


TABLE2 = [  # p(z̃|z), model space, model, up to; published as a match: up to permutations
    (Laplace(0.05), BOX, Laplace(1.0), "permutation"),
    (GeneralizedNormal(3.0, 0.05), BOX, CUBE, "permutation"),
    (Normal(0.05), BOX, SQUARE, "affine"),
    (Laplace(0.05), BOX, SQUARE, None),
    (GeneralizedNormal(3.0, 0.05), BOX, Laplace(1.0), None),
    (Laplace(0.05), UNBOUNDED, Laplace(1.0), None),
    (GeneralizedNormal(3.0, 0.05), UNBOUNDED, CUBE, None),
    (Normal(0.05), UNBOUNDED, SQUARE, None),
    (Laplace(0.05), UNBOUNDED, SQUARE, None),
    (Normal(0.05), UNBOUNDED, CUBE, None),
]


@pytest.mark.parametrize("row", range(10), ids=lambda i: f"row {i + 1}")
def test_table_2(mixing, row):
    conditional, codes, model, up_to = TABLE2[row]
    found = ask(mixing, BOX, Uniform(), conditional, codes, model)
    assert found.up_to == up_to
    # rows 8 to 10 are published to fail, and the words must not raise hopes
    assert ("random rotation" in str(found)) == (row >= 7)


def test_the_failing_assumption_is_named(mixing):
    words = str(ask(mixing, SPHERE, Normal(1.0), Laplace(0.05), SPHERE, VonMisesFisher(1.0)))
    assert "marginal is Normal(std=1.0), not uniform" in words
    assert "conditional is Laplace(scale=0.05), but the model assumes VonMisesFisher" in words
    words = str(ask(mixing, BOX, Uniform(), Laplace(0.05), UNBOUNDED, SQUARE))
    assert "unbounded" in words
    assert "exponent 1, but the model assumes 2" in words


def test_a_free_scale_makes_the_concentration_match(mixing):
    process = GenerativeProcess(SPHERE, Uniform(), VonMisesFisher(10.0), mixing)
    encoder, model = MLP(10, 10), VonMisesFisher(1.0)
    fixed = ContrastiveModel(SPHERE, model, encoder)
    learnt = ContrastiveModel(SPHERE, model, encoder, head=SphereHead(SPHERE, learnable=True))
    assert not guarantee(process, fixed)
    assert guarantee(process, fixed, tau=None).up_to == "orthogonal"
    assert guarantee(process, fixed, tau=0.1).up_to == "orthogonal"
    assert guarantee(process, learnt).up_to == "orthogonal"
    wide = Sphere(10, radius=math.sqrt(10))
    assert guarantee(process, ContrastiveModel(wide, model, encoder)).up_to == "orthogonal"


def test_fixed_bounds_need_the_right_scale(mixing):
    process = GenerativeProcess(Box(10), Uniform(), Laplace(0.05), mixing)
    for bound, promised in ((1.0, None), (20.0, "permutation")):
        model = ContrastiveModel(Box(10, high=bound), Laplace(1.0), MLP(10, 10))
        assert guarantee(process, model).up_to == promised
    model = ContrastiveModel(Box(10), Laplace(1.0), MLP(10, 10))
    assert guarantee(process, model, tau=0.05).up_to == "permutation"


@pytest.mark.parametrize("tau", [0.2, 3.0])
@pytest.mark.parametrize("family", [Laplace, Normal, lambda s: GeneralizedNormal(3.0, s)])
def test_the_temperature_scales_the_model_as_its_density_does(mixing, family, tau):
    """e^{−|x/λ|^β/τ} = e^{−|x/(λτ^{1/β})|^β}: of twice the sides, with that λ, it is the truth."""
    truth = family(0.05)
    process = GenerativeProcess(Box(10), Uniform(), truth, mixing)
    x = torch.linspace(0.01, 0.2, 5, dtype=torch.float64)[:, None]
    zero = torch.zeros_like(x)
    log_density = truth.similarity(x, zero)
    for scale, promised in ((2 * 0.05 * tau ** (-1 / truth.p), True), (2 * 0.05 * tau, False)):
        model = family(scale)
        same = torch.allclose(model.similarity(2 * x, 2 * zero) / tau, log_density, rtol=1e-9)
        assert same == promised
        codes = ContrastiveModel(Box(10, high=2.0), model, MLP(10, 10))
        assert bool(guarantee(process, codes, tau=tau)) == same


def test_other_mismatches(mixing):
    assert not ask(mixing, BOX, Uniform(), Laplace(0.05), SPHERE, VonMisesFisher(1.0))
    half = GeneralizedNormal(0.5)
    assert "not from a norm" in str(ask(mixing, BOX, Uniform(), half, BOX, half))
    process = GenerativeProcess(BOX, Uniform(), Laplace(0.05), mixing)
    few = ContrastiveModel(Box(4), Laplace(1.0), MLP(10, 4))
    assert "10 factors, but the model has 4 codes" in str(guarantee(process, few))


# --- any marginal -----------------------------------------------------------------------------------


def with_potential(mixing, space, marginal, conditional, codes, model, head=None, **options):
    process = GenerativeProcess(space, marginal, conditional, mixing)
    encoder, potential = MLP(mixing.dim, codes.dim), Potential(codes.dim)
    found = ContrastiveModel(codes, model, encoder, head=head, potential=potential)
    return guarantee(process, found, **options)


LEARNT = SphereHead(SPHERE, learnable=True)
ANY = [  # space, p(z), p(z̃|z), codes, model, head, up to
    (SPHERE, Normal(1.0), VonMisesFisher(10.0), SPHERE, VonMisesFisher(1.0), LEARNT, "orthogonal"),
    (SPHERE, Normal(1.0), VonMisesFisher(10.0), SPHERE, VonMisesFisher(10.0), None, "orthogonal"),
    (SPHERE, Normal(1.0), VonMisesFisher(10.0), SPHERE, VonMisesFisher(1.0), None, None),
    (SPHERE, Normal(1.0), VonMisesFisher(10.0), SPHERE, Normal(10**-0.5), None, "orthogonal"),
    (SPHERE, Normal(1.0), VonMisesFisher(10.0), UNBOUNDED, SQUARE, None, "orthogonal"),
    (SPHERE, Normal(1.0), Normal(0.05), SPHERE, VonMisesFisher(1.0), LEARNT, None),
    (SPHERE, Uniform(), VonMisesFisher(10.0), UNBOUNDED, CUBE, None, None),
    (UNBOUNDED, Laplace(1.0), Normal(1.0), UNBOUNDED, SQUARE, None, "orthogonal"),
    (UNBOUNDED, Normal(1.0), Laplace(1.0), UNBOUNDED, Laplace(3.0), None, "permutation"),
    (UNBOUNDED, Normal(1.0), Laplace(1.0), UNBOUNDED, SQUARE, None, None),
    (UNBOUNDED, Normal(1.0), Normal(1.0), BOX, SQUARE, BoxHead(BOX, learnable=True), None),
    (BOX, Uniform(), Normal(0.05), UNBOUNDED, SQUARE, None, "orthogonal"),
    (BOX, Normal(0.2), GeneralizedNormal(3.0, 0.05), UNBOUNDED, CUBE, None, "permutation"),
    (
        BOX,
        Normal(0.2),
        Laplace(0.05),
        BOX,
        Laplace(1.0),
        BoxHead(BOX, learnable=True),
        "permutation",
    ),
    (BOX, Normal(0.2), Laplace(0.05), BOX, Laplace(0.05), None, "permutation"),
    (
        BOX,
        Normal(0.2),
        Laplace(0.05),
        BOX,
        Laplace(0.04),
        None,
        "permutation",
    ),  # with room to spare
    (BOX, Normal(0.2), Laplace(0.05), BOX, Laplace(0.06), None, None),  # they would not fit
    (BOX, Normal(0.2), GeneralizedNormal(0.5), UNBOUNDED, GeneralizedNormal(0.5), None, None),
    (BOX, Normal(0.2), Normal(0.05), SPHERE, VonMisesFisher(1.0), LEARNT, None),
]


@pytest.mark.parametrize("case", ANY, ids=str)
def test_a_potential_takes_any_marginal(mixing, case):
    *assumptions, head, up_to = case
    found = with_potential(mixing, *assumptions, head)
    assert found.up_to == up_to
    assert bool(found.violations) == (up_to is None)
    if up_to is not None and not isinstance(assumptions[1], Uniform):
        assert found.theorem.startswith(
            f"Proposition {'B' if up_to == 'permutation' else 'A'} (ours"
        )


def test_parts_with_scales_of_their_own_are_an_affine_map(mixing):
    """Squared distances of parts add up to a squared distance; L1 and L2 do not add up to anything."""
    gaze = Product(Sphere(6), Euclidean(4))
    squares = Joint((VonMisesFisher(10.0), 6), (Normal(0.1), 4))
    start = Joint((Uniform(), 6), (Normal(1.0), 4))
    found = with_potential(mixing, gaze, start, squares, UNBOUNDED, SQUARE)
    assert found.up_to == "affine"
    mixed = Joint((VonMisesFisher(10.0), 6), (Laplace(0.1), 4))
    assert not with_potential(mixing, gaze, start, mixed, UNBOUNDED, SQUARE)
    flat = Product(Euclidean(6), Euclidean(4))
    uneven = Joint((Laplace(0.1), 6), (Laplace(0.3), 4))
    wide = Joint((Normal(1.0), 6), (Normal(1.0), 4))
    found = with_potential(mixing, flat, wide, uneven, UNBOUNDED, Laplace(1.0))
    assert found.up_to == "permutation"


def test_learnt_precisions_give_blocks_of_equal_ones(mixing):
    process = GenerativeProcess(SPHERE, Uniform(), VonMisesFisher(10.0), mixing)
    model = ContrastiveModel(SPHERE, Normal(1.0), MLP(10, 10))
    different = [float(k) for k in range(1, 11)]
    paired = [1.0, 1.0, *different[:8]]
    for precisions, up_to in ((None, "orthogonal"), (paired, "blocks"), (different, "permutation")):
        found = guarantee(process, model, learn_precision=True, precisions=precisions)
        assert found.up_to == up_to
        assert "Rusak" in found.theorem
    one = guarantee(process, model, precisions=different)
    assert not one
    assert one.changes[0].what == ("learn a precision for each code",)
    assert one.changes[0].up_to == "permutation"
    # a potential takes the place of the uniform marginal; unbounded codes are stretched instead
    uneven = (SPHERE, Normal(1.0), VonMisesFisher(10.0))
    for codes, learn, up_to in (
        (SPHERE, True, "permutation"),
        (SPHERE, False, None),
        (UNBOUNDED, False, "affine"),
    ):
        found = with_potential(
            mixing,
            *uneven,
            codes,
            SQUARE,
            LEARNT if codes is SPHERE else None,
            learn_precision=learn,
            precisions=different,
        )
        assert found.up_to == up_to
    with pytest.raises(InputError, match="precisions must be 10 numbers"):
        guarantee(process, model, precisions=[1.0])


# --- stronger guarantees ----------------------------------------------------------------------------


def changes(found):
    return {change.what: change.up_to for change in found.changes}


def test_the_smallest_changes_that_earn_more(mixing):
    found = ask(mixing, SPHERE, Normal(1.0), VonMisesFisher(10.0), SPHERE, VonMisesFisher(1.0))
    assert changes(found) == {("learn the radius", "add a potential"): "orthogonal"}
    found = ask(mixing, UNBOUNDED, Laplace(1.0), Normal(1.0), UNBOUNDED, SQUARE)
    assert changes(found) == {("add a potential",): "orthogonal"}
    found = ask(mixing, BOX, Uniform(), Laplace(0.05), BOX, SQUARE)
    assert changes(found) == {("assume Laplace(scale=0.05)",): "permutation"}
    found = ask(mixing, BOX, Uniform(), Laplace(0.05), BOX, Laplace(1.0))
    assert changes(found) == {}


def test_each_change_earns_what_it_says(mixing):
    """The changed model, made, has that guarantee."""
    truth = (SPHERE, Normal(1.0), VonMisesFisher(10.0))
    (change,) = ask(mixing, *truth, SPHERE, VonMisesFisher(1.0)).changes
    made = with_potential(mixing, *truth, SPHERE, VonMisesFisher(1.0), LEARNT)
    assert (made.up_to, made.theorem) == (change.up_to, change.theorem)


@pytest.mark.parametrize("row", range(12), ids=lambda i: f"row {i + 1}")
def test_it_fits_on_a_screen(mixing, row):
    *assumptions, _ = TABLE1[row]
    lines = str(ask(mixing, *assumptions)).splitlines()
    assert sum(1 + len(line) // 100 for line in lines) <= 24


def test_a_notebook_shows_a_card(mixing):
    found = ask(mixing, UNBOUNDED, Laplace(1.0), Normal(1.0), UNBOUNDED, SQUARE)
    card = found._repr_html_()
    assert card.startswith("<div")
    for words in ("Not guaranteed", "not uniform", "add a potential: orthogonal (Proposition A)"):
        assert words in card
    promised = ask(mixing, SPHERE, Uniform(), VonMisesFisher(1.0), SPHERE, VonMisesFisher(1.0))
    assert "Guaranteed: orthogonal" in promised._repr_html_()
    assert promised.theorem
    assert promised.theorem in promised._repr_html_()
    assert "For a stronger guarantee" not in promised._repr_html_()
