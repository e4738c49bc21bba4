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
from identica.heads import BoxHead, SphereHead
from identica.metrics import linear_r2, mcc
from identica.potential import Potential
from identica.theory import counterexample
from identica.theory.counterexamples import Counterexample, _axes_matter, _Map, _Search


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


# --- what the search starts from --------------------------------------------------------------------

CENTRED = Box(3, low=-2.0, high=1.0)


def process_on(space, mixing, conditional=None):
    marginal = Normal(1.0) if isinstance(space, Euclidean) else Uniform()
    return GenerativeProcess(space, marginal, conditional or Normal(0.3), mixing)


@pytest.mark.parametrize(
    ("space", "codes", "scale"),
    [
        (CENTRED, CENTRED, 1.0),
        (Box(3, -2.0, 1.0), Box(3, 5.0, 6.0), 1 / 3),
        (CENTRED, Euclidean(3), 1.0),
        (Euclidean(3), Euclidean(3), 1.0),
        (Sphere(3, radius=2.0), Box(3), 0.45 / 2),
        (Sphere(3, radius=2.0), Sphere(3), 0.5),
    ],
    ids=repr,
)
def test_the_search_starts_at_the_factors(mixing, space, codes, scale):
    """Or at an affine image of them that the codes can hold."""
    process = process_on(space, mixing)
    search = _Search(process, ContrastiveModel(codes, Normal(1.0), MLP(3, 3)), 1.0, 0)
    assert search.from_truth
    z = process.latents(50, generator=0)
    h = search.h(z).detach()
    assert codes.contains(h).all()
    moved = h - h.mean(0)
    assert torch.allclose(moved, scale * (z - z.mean(0)), atol=1e-3)


@pytest.mark.parametrize(
    ("space", "codes", "from_truth", "turns"),
    [
        (Box(3), Box(3), True, False),
        (Box(3), Euclidean(3), True, True),
        (Box(3), Sphere(3), False, False),
        (Sphere(3), Box(3), True, False),
        (Sphere(3), Sphere(3), True, True),
        (Sphere(3), Euclidean(3), True, True),
        (Euclidean(3), Box(3), False, False),
        (Euclidean(3), Euclidean(2), False, False),
    ],
    ids=repr,
)
def test_which_codes_can_be_the_factors_and_which_can_be_turned(
    mixing, space, codes, from_truth, turns
):
    for family, invariant in ((Normal(1.0), True), (Laplace(1.0), False)):
        model = ContrastiveModel(codes, family, MLP(3, codes.dim))
        search = _Search(process_on(space, mixing), model, None, 0)
        assert (search.from_truth, search.turns) == (from_truth, turns)
        assert search.invariant == invariant
        assert search.loss.log_tau.requires_grad
        if not from_truth:
            assert not search.h.start(torch.ones(4, 3)).any()


@pytest.mark.parametrize(
    ("space", "conditional", "matter"),
    [
        (Box(3), Normal(0.3), True),
        (Box(3), Laplace(0.3), True),
        (Euclidean(3), Normal(0.3), False),
        (Euclidean(3), Laplace(0.3), True),
        (Sphere(3), VonMisesFisher(3.0), False),
        (Sphere(3), Laplace(0.3), False),
    ],
)
def test_walls_or_the_conditional_give_axes(mixing, space, conditional, matter):
    assert _axes_matter(process_on(space, mixing, conditional)) == matter


def test_a_turned_search_has_the_loss_of_a_rotation(mixing):
    process = process_on(Euclidean(3), mixing)
    model = ContrastiveModel(Euclidean(3), Normal(1.0), MLP(3, 3), potential=Potential(3))
    search = _Search(process, model, 1.0, 0)
    with torch.no_grad():
        search.h.log_scale.fill_(0.7)
    turned = search.turned()
    rotation = turned.h.linear.detach()
    assert torch.allclose(rotation @ rotation.T, torch.eye(3), atol=1e-5)
    assert not torch.allclose(rotation, torch.eye(3), atol=0.1)
    z = process.latents(100, generator=0)
    assert torch.allclose(turned.h(z), search.h(z) @ rotation, atol=1e-4)
    assert torch.allclose(search.h(z), 2.0137527 * z, atol=1e-4)  # e^.7
    assert torch.allclose(turned.losses(), search.losses(), atol=1e-4)


def test_losses_are_those_of_pairs_that_training_does_not_see(mixing):
    process = process_on(Box(3), mixing)
    search = _Search(process, ContrastiveModel(Euclidean(3), Normal(1.0), MLP(3, 3)), 0.5, 7)
    generator, expected = torch.Generator().manual_seed(8), []
    for _ in range(4):
        z = process.latents(512, generator=generator)
        z_pos = process.positives(z, generator=generator)
        expected.append(InfoNCE(Normal(1.0), 0.5)(z, z_pos).item())
    assert search.losses()[:4].tolist() == pytest.approx(expected, rel=1e-5)


def test_what_is_settled_leaves_the_map_linear(mixing):
    process = process_on(Box(3), mixing)
    model = ContrastiveModel(Euclidean(3), Normal(1.0), MLP(3, 3))
    for linear in (False, True):
        search = _Search(process, model, None, 0)
        search.settle(2, linear=linear)
        assert not search.h.network(torch.ones(1, 3)).any()
        assert torch.equal(search.h.linear, torch.eye(3)) == (not linear)
        assert search.h.log_scale.item() != 0
        assert search.loss.tau != 1
    search.train(2)
    assert search.h.network(torch.ones(1, 3)).any()


def test_a_counterexample_is_told_in_a_line():
    found = Counterexample(torch.nn.Identity(), 1.23456, 1.5, 0.98765, 0.5, "a rotation")
    assert str(found) == "a rotation: loss 1.2346 (truth: 1.5000), R² 0.988, MCC 0.500"


def test_a_map_keeps_the_head_of_the_model(mixing):
    for codes, head in ((Box(3), BoxHead), (Sphere(3), SphereHead)):
        model = ContrastiveModel(codes, Normal(1.0), MLP(3, 3))
        made = _Map(process_on(Box(3), mixing), model, False, 0)
        assert isinstance(made.head, head)
        assert made.head is not model.head
