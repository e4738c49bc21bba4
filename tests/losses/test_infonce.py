import math
from functools import partial

import numpy as np
import pytest
import torch

from helpers.brute_force import FAMILIES, OPTIONS, brute_force, codes, potential, similarity
from identica import (
    AlignUniform,
    Box,
    GeneralizedNormal,
    InfoNCE,
    InputError,
    Laplace,
    Normal,
    Sphere,
    Uniform,
    VonMisesFisher,
)
from identica.losses import _negatives


@pytest.mark.parametrize("family", FAMILIES, ids=str)
@pytest.mark.parametrize("block", [1 << 22, 30], ids=["one block", "small blocks"])
def test_every_form_agrees_with_brute_force(family, block, monkeypatch):
    monkeypatch.setattr(_negatives, "BLOCK", block)
    h, h_pos = codes()
    for self_negative, negatives, denominator, symmetric in OPTIONS:
        loss = InfoNCE(
            family,
            0.6,
            self_negative,
            negatives,
            positive_in_denominator=denominator,
            symmetric=symmetric,
        )
        expected = brute_force(
            h, h_pos, family, 0.6, self_negative, negatives, denominator, symmetric
        )
        assert loss(h, h_pos).item() == pytest.approx(expected, rel=1e-12)
        assert loss(h.float(), h_pos.float()).item() == pytest.approx(expected, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("family", FAMILIES, ids=str)
@pytest.mark.parametrize("symmetric", [True, False])
def test_negatives_that_stand_near_are_left_out(family, symmetric):
    h, h_pos = codes(9)
    loss = InfoNCE(family, apart=3, symmetric=symmetric)(h, h_pos)
    ways = [(h, h_pos), (h_pos, h)] if symmetric else [(h, h_pos)]
    expected = []
    for anchors, others in ways:
        for i in range(9):
            pos = similarity(family, anchors[i].tolist(), others[i].tolist())
            far = [j for j in range(9) if min((i - j) % 9, (j - i) % 9) >= 3]
            rest = [similarity(family, anchors[i].tolist(), anchors[j].tolist()) for j in far]
            expected.append(math.log(sum(map(math.exp, [pos, *rest]))) - pos)
    assert loss.item() == pytest.approx(np.mean(expected), rel=1e-12)
    assert InfoNCE(family, apart=1)(h, h_pos) == InfoNCE(family)(h, h_pos)


def test_some_negatives_have_to_be_apart():
    with pytest.raises(InputError, match="apart must leave negatives in a batch of 7, got 4"):
        InfoNCE(Normal(1.0), apart=4)(*codes())
    assert torch.isfinite(InfoNCE(Normal(1.0), apart=3)(*codes()))
    with pytest.raises(InputError, match="self_negative must be False"):
        InfoNCE(Normal(1.0), self_negative=True, apart=2)
    with pytest.raises(InputError, match="apart"):
        InfoNCE(Normal(1.0), apart=0)


@pytest.mark.parametrize("family", FAMILIES, ids=str)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"self_negative": True},
        {"negatives": 3},
        {"positive_in_denominator": False},
        {"symmetric": True},
        {"learn_tau": True},
        {"negatives_from": "positives", "effective_negatives": 50},
    ],
    ids=str,
)
def test_gradients_agree_with_finite_differences(family, options, monkeypatch):
    monkeypatch.setattr(_negatives, "BLOCK", 40)
    loss = InfoNCE(family, 0.8, **options)
    h, h_pos = (t.requires_grad_() for t in codes(5))
    assert torch.autograd.gradcheck(loss, (h, h_pos))
    assert torch.autograd.gradcheck(partial(loss, potential=potential), (h, h_pos))
    if loss.log_tau.requires_grad:

        def of_tau(log_tau):
            return torch.func.functional_call(
                loss, {"log_tau": log_tau}, (h.detach(), h_pos.detach())
            )

        assert torch.autograd.gradcheck(of_tau, (loss.log_tau.detach().clone().requires_grad_(),))


@pytest.mark.parametrize("family", FAMILIES, ids=str)
@pytest.mark.parametrize("source", ["anchors", "positives"])
@pytest.mark.parametrize("biases", [None, potential], ids=["plain", "potential"])
def test_float32_gradients_agree_with_float64(family, source, biases):
    """The fast kernel of the CPU against the plain one, temperature included."""
    results = []
    for dtype in (torch.float64, torch.float32):
        loss = InfoNCE(family, 0.7, learn_tau=True, negatives_from=source)
        h, h_pos = (t.detach().requires_grad_() for t in codes(40, dtype=torch.float64))
        loss(h.to(dtype), h_pos.to(dtype), biases).backward()
        results.append([h.grad, h_pos.grad, loss.log_tau.grad])
    for exact, fast in zip(*results, strict=True):
        assert torch.allclose(fast.double(), exact, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("p", [0.6, 1.0, 2.0, 3.0])
def test_gradients_are_finite_where_codes_coincide(p):
    for dtype in (torch.float32, torch.float64):
        h = torch.zeros(6, 3, dtype=dtype, requires_grad=True)
        InfoNCE(GeneralizedNormal(p), self_negative=True)(h, h.detach()).backward()
        assert torch.isfinite(h.grad).all()


@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("p", [1.0, 2.0])
@pytest.mark.parametrize("self_negative", [True, False])
def test_align_uniform_agrees_with_brute_force(alpha, p, self_negative):
    h, h_pos = codes()
    uniformity = np.mean(
        [
            math.log(
                np.mean(
                    [
                        math.exp(-float((h[i] - h[j]).abs().pow(p).sum()))
                        for j in range(7)
                        if self_negative or i != j
                    ]
                )
            )
            for i in range(7)
        ]
    )
    alignment = np.mean([float((h[i] - h_pos[i]).abs().pow(p).sum()) for i in range(7)])
    expected = alpha * uniformity + (1 - alpha) * alignment
    loss = AlignUniform(alpha, p, self_negative)
    assert loss(h, h_pos).item() == pytest.approx(expected)
    assert loss(h.float(), h_pos.float()).item() == pytest.approx(expected, rel=1e-5, abs=1e-6)
    assert torch.autograd.gradcheck(loss, (h.requires_grad_(), h_pos.requires_grad_()))


@pytest.mark.parametrize(("kappa", "optimum"), [(1.0, 8.6738), (10.0, 6.2388)])
@pytest.mark.parametrize("symmetric", [False, True])
def test_the_true_codes_reach_the_derived_optimum(kappa, optimum, symmetric):
    """h = identity with τ = 1/κ: the loss with 6,144 negatives is log M less the mutual information."""
    losses = []
    for seed in range(3):
        z = Sphere(10).sample(6145, generator=seed)
        z_pos = VonMisesFisher(kappa).sample(Sphere(10), z, generator=100 + seed)
        loss = InfoNCE(VonMisesFisher(1.0), tau=1 / kappa, symmetric=symmetric)
        losses.append(loss(z, z_pos).item())
    spread = 2.0 * kappa**0.5 * 0.32 / math.sqrt(3 * 6145)  # s.d. of κ·cos over the pairs, and more
    assert np.mean(losses) == pytest.approx(optimum, abs=4 * spread)


@pytest.mark.parametrize("family", FAMILIES, ids=str)
@pytest.mark.parametrize("self_negative", [True, False])
@pytest.mark.parametrize("denominator", [True, False])
def test_negatives_can_be_weighed_as_more(family, self_negative, denominator):
    h, h_pos = codes()
    loss = InfoNCE(
        family,
        0.6,
        self_negative,
        effective_negatives=601,
        positive_in_denominator=denominator,
    )
    terms, a, b = [], h.numpy(), h_pos.numpy()
    for i in range(7):
        pos, own = (similarity(family, a[i], other[i]) / 0.6 for other in (b, a))
        others = sum(math.exp(similarity(family, a[i], a[j]) / 0.6) for j in range(7) if j != i)
        total = (600 if self_negative else 601) / 6 * others
        total += math.exp(own) * self_negative + math.exp(pos) * denominator
        terms.append(math.log(total) - pos)
    assert loss(h, h_pos).item() == pytest.approx(np.mean(terms), rel=1e-12)
    assert loss(h.float(), h_pos.float()).item() == pytest.approx(np.mean(terms), rel=1e-5)
    assert torch.autograd.gradcheck(loss, (h.requires_grad_(), h_pos.requires_grad_()))


def test_all_codes_alike_give_chance():
    h = torch.ones(9, 2)
    assert InfoNCE(Laplace(1.0))(h, h).item() == pytest.approx(math.log(9))
    assert InfoNCE(Laplace(1.0), self_negative=True)(h, h).item() == pytest.approx(math.log(10))
    assert InfoNCE(Laplace(1.0), negatives=4)(h, h).item() == pytest.approx(math.log(5))


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: InfoNCE("laplace"), "conditional"),
        (lambda: InfoNCE(Laplace(1.0), tau=0.0), "tau"),
        (lambda: InfoNCE(Laplace(1.0), negatives=0), "negatives"),
        (lambda: InfoNCE(Laplace(1.0))(torch.zeros(1, 2), torch.zeros(1, 2)), "batch of 1"),
        (lambda: InfoNCE(Laplace(1.0))(torch.zeros(4, 2), torch.zeros(4, 3)), "h and h_pos"),
        (lambda: InfoNCE(Laplace(1.0), negatives=4)(*[torch.zeros(4, 2)] * 2), "at most 3"),
        (lambda: InfoNCE(Uniform())(*[Box(2).sample(4, generator=0)] * 2), "model"),
        (lambda: InfoNCE(Laplace(1.0))(*[torch.zeros(4, 3)] * 2, 1.0), "potential must be"),
        (lambda: InfoNCE(Laplace(1.0))(*[torch.zeros(4, 3)] * 2, torch.sin), "potential must give"),
        (lambda: AlignUniform(1.5), "alpha"),
        (lambda: AlignUniform(0.5, p=0), "p must"),
        (lambda: AlignUniform(0.5)(torch.zeros(1, 2), torch.zeros(1, 2)), "batch of 1"),
    ],
)
def test_bad_input_is_named(make, named):
    with pytest.raises(InputError, match=named):
        make()


@pytest.mark.parametrize("family", FAMILIES, ids=str)
def test_several_positives_are_the_mean_over_them(family):
    h, _ = codes()
    several = h[:, None] + 0.3 * torch.randn(7, 4, 3, generator=torch.Generator().manual_seed(1))
    loss = InfoNCE(family, 0.7, positive_in_denominator=False, negatives=3)
    one_by_one = torch.stack([loss(h, several[:, k]) for k in range(4)]).mean()
    assert torch.allclose(loss(h, several), one_by_one)
    with pytest.raises(InputError, match="positive_in_denominator=False"):
        InfoNCE(family)(h, several)


def test_an_annealed_temperature_ends_where_it_should_and_resumes():
    h, h_pos = codes()
    loss = InfoNCE(Normal(0.8), 2.0, anneal=(0.5, 4))
    seen = []
    for _ in range(6):
        value = loss(h, h_pos)
        assert torch.equal(value, InfoNCE(Normal(0.8), loss.tau)(h, h_pos))
        seen.append(loss.tau)
    assert seen == pytest.approx([0.5, 0.5 * 2**0.5, 1.0, 2**0.5, 2.0, 2.0])
    loss.eval()
    again = InfoNCE(Normal(0.8), 2.0, anneal=(0.5, 4))
    for _ in range(2):
        again(h, h_pos)
    resumed = InfoNCE(Normal(0.8), 2.0, anneal=(0.5, 4))
    resumed.load_state_dict(again.state_dict())
    resumed(h, h_pos)
    assert resumed.tau == pytest.approx(1.0)
    resumed.eval()(h, h_pos)
    assert resumed.tau == pytest.approx(1.0)
    with pytest.raises(InputError, match="learn_tau"):
        InfoNCE(Normal(1.0), anneal=(0.5, 4), learn_tau=True)


def test_an_annealed_alpha_ends_where_it_should_and_resumes():
    rng = torch.Generator().manual_seed(0)
    h, h_pos = (torch.randn(8, 3, generator=rng) for _ in range(2))
    loss = AlignUniform(0.99, anneal=(0.75, 2))
    for alpha in (0.75, 0.95, 0.99, 0.99):  # 1 − α: .25, .05, .01
        assert torch.allclose(loss(h, h_pos), AlignUniform(alpha)(h, h_pos), atol=1e-6)
    half = AlignUniform(0.99, anneal=(0.75, 2))
    half(h, h_pos)
    resumed = AlignUniform(0.99, anneal=(0.75, 2))
    resumed.load_state_dict(half.state_dict())
    for _ in range(2):  # scoring does not count
        assert torch.allclose(resumed.eval()(h, h_pos), AlignUniform(0.95)(h, h_pos), atol=1e-6)
    for bad in ((1.0, 2), (float("nan"), 2), (0.5, 0)):
        with pytest.raises(InputError, match="anneal"):
            AlignUniform(0.99, anneal=bad)


# --- second derivatives -----------------------------------------------------------------------------

TWICE = [
    {},
    {"self_negative": True, "effective_negatives": 50},
    {"symmetric": True, "negatives": 4},
    {"learn_tau": True, "self_negative": True},
    {"negatives_from": "positives", "symmetric": True},
]


@pytest.mark.parametrize("biases", [None, potential], ids=["plain", "potential"])
@pytest.mark.parametrize("options", TWICE, ids=str)
@pytest.mark.parametrize(
    "family", [VonMisesFisher(2.0), Laplace(0.7), Normal(0.8), GeneralizedNormal(3.0)], ids=str
)
def test_second_derivatives_are_those_of_finite_differences(family, options, biases):
    """Of the loss in float32, along a direction, against differences of first derivatives in float64."""
    generator = torch.Generator().manual_seed(0)
    h, noise, *directions = torch.randn(4, 12, 3, generator=generator, dtype=torch.float64)
    codes = [h, h + 0.3 * noise]
    loss = InfoNCE(family, **options)
    inputs = [x.float().requires_grad_() for x in codes]
    first = torch.autograd.grad(loss(*inputs, biases), inputs, create_graph=True)
    along = sum((g * d.float()).sum() for g, d in zip(first, directions, strict=True))
    ours = torch.autograd.grad(along, inputs)

    def gradient(step):
        moved = [(x + step * d).requires_grad_() for x, d in zip(codes, directions, strict=True)]
        return torch.autograd.grad(loss(*moved, biases), moved)

    for found, up, down in zip(ours, gradient(1e-6), gradient(-1e-6), strict=True):
        expected = (up - down) / 2e-6
        assert expected.abs().max() > 1e-3
        assert (found - expected).abs().max() < 1e-4 * expected.abs().max()


def test_a_hessian_is_right():
    h = torch.randn(6, 2, generator=torch.Generator().manual_seed(0))

    def loss(h):
        return InfoNCE(GeneralizedNormal(3.0))(h, (h + 0.1).detach())

    hessian = torch.autograd.functional.hessian
    wide = hessian(loss, h.double())
    assert torch.allclose(hessian(loss, h).double(), wide, atol=1e-5)
    assert torch.allclose(torch.func.jacrev(torch.func.grad(loss))(h).double(), wide, atol=1e-5)


# --- codes and options that make no sense -----------------------------------------------------------


def test_effective_negatives_need_others_than_the_anchor():
    with pytest.raises(InputError, match="negatives must be at least 2 with self_negative"):
        InfoNCE(Laplace(1.0), self_negative=True, negatives=1, effective_negatives=5)
    h = torch.randn(4, 2, generator=torch.Generator().manual_seed(0))
    loss = InfoNCE(Laplace(1.0), self_negative=True, negatives=2, effective_negatives=5)
    assert torch.isfinite(loss(h, h))


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("loss", [InfoNCE(Laplace(1.0)), AlignUniform(0.5)], ids=["InfoNCE", "AU"])
@pytest.mark.parametrize("which", [0, 1])
def test_codes_that_are_not_finite(loss, which, dtype, bad):
    """In training the loss is not finite, for `train` to notice; elsewhere they are named."""
    codes = [torch.ones(4, 2, dtype=dtype), torch.ones(4, 2, dtype=dtype)]
    codes[which][1, 0] = bad
    assert not torch.isfinite(loss.train()(*codes))
    with pytest.raises(InputError, match=f"{['h', 'h_pos'][which]} must be finite"):
        loss.eval()(*codes)
    loss.train()


def test_codes_on_two_devices_are_named():
    h = torch.zeros(4, 3)
    with pytest.raises(InputError, match="h_pos must be on the device of h, cpu, got meta"):
        InfoNCE(VonMisesFisher(1.0))(h, h.to("meta"))
    with pytest.raises(InputError, match="b must be on the device of a"):
        Laplace(1.0).pairwise(h, h.to("meta"))
