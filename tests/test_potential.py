import math

import numpy as np
import pytest
import torch
from scipy import stats

from identica import (
    Box,
    BoxHead,
    Euclidean,
    InfoNCE,
    InputError,
    Normal,
    Potential,
    Product,
    Sphere,
    SphereHead,
)
from identica.heads import ProductHead, make_head


def codes(size=40, n=3, seed=0):
    return torch.randn(size, n, generator=torch.Generator().manual_seed(seed))


def learnt(seed=0, curved=False):
    """A potential that is not 0 any more."""
    potential = Potential(3, seed=seed, curved=curved)
    generator = torch.Generator().manual_seed(seed)
    torch.nn.init.normal_(potential.network.layers[-1].weight, generator=generator)
    if curved:
        torch.nn.init.normal_(potential.curve, generator=generator)
    return potential


BOTH = pytest.mark.parametrize("curved", [False, True])


@BOTH
def test_it_starts_at_zero_and_learns(curved):
    potential = Potential(3, (8,), seed=1, curved=curved)
    assert torch.equal(potential(codes()), torch.zeros(40, 2))
    potential(codes()).sum().backward()
    assert potential.network.layers[-1].weight.grad.abs().max() > 0
    if curved:
        assert potential.curve.grad.abs().min() > 0


def test_a_curved_one_is_a_smooth_network_and_a_quadratic_function():
    potential, h = learnt(curved=True), codes(5)
    (a, c), (b, d), (e, f) = (
        (layer.weight.detach().double().numpy(), layer.bias.detach().double().numpy())
        for layer in potential.network.layers
    )
    curve = potential.curve.detach().double().numpy()
    for row, found in zip(h.double().numpy(), potential(h).detach().numpy(), strict=True):
        x = a @ row + c
        x = b @ (x / (1 + np.exp(-x))) + d
        expected = e @ (x / (1 + np.exp(-x))) + f
        for k, code in enumerate(row):
            expected = expected + curve[:, k] * code + curve[:, 3 + k] * code**2
        assert found == pytest.approx(expected, rel=1e-4, abs=1e-4)


def test_a_curved_one_learns_a_normal_density_up_to_its_tails():
    """The factors themselves as codes: positives are N(0, 2), and C(z) is constant."""
    potential = Potential(2, seed=0, curved=True)
    loss = InfoNCE(Normal(1.0), negatives_from="positives", symmetric=True)
    optimizer = torch.optim.Adam(potential.parameters(), lr=1e-2)
    generator = torch.Generator().manual_seed(0)
    for step in range(300):
        z = torch.randn(256, 2, generator=generator)
        z_pos = z + torch.randn(256, 2, generator=generator)
        optimizer.param_groups[0]["lr"] = 1e-2 * (1 - step / 300)
        optimizer.zero_grad()
        loss(z, z_pos, potential).backward()
        optimizer.step()
    # as far out as one of 10,000 positives
    away = torch.linspace(-4.3, 4.3, 40) * math.sqrt(2)
    places = torch.stack([away, away.flip(0) / 2], 1)
    found = potential.log_density(places).double().numpy()
    exact = stats.norm(scale=math.sqrt(2)).logpdf(places.double().numpy()).sum(1)
    assert np.corrcoef(found, exact)[0, 1] > 0.98
    back = potential(places)[:, 1]  # flat, where there are data
    assert back[10:-10].std() < 0.5
    assert found.std() == pytest.approx(exact.std(), rel=0.3)


@BOTH
def test_no_gradient_reaches_the_codes(curved):
    h = codes().requires_grad_()
    (learnt(curved=curved)(h).sum() + 0 * h.sum()).backward()
    assert torch.equal(h.grad, torch.zeros(40, 3))


def test_the_log_density_does_not_depend_on_the_constant():
    potential, h, held_out = learnt(), codes(), codes(100, seed=1)
    before = potential.log_density(h, held_out)
    b = potential(h)[:, 0]
    assert torch.allclose(before, potential(held_out)[:, 0].mean() - b)
    with torch.no_grad():
        potential.network.layers[-1].bias += 5
    assert torch.allclose(potential.log_density(h, held_out), before, atol=1e-5)
    assert potential.log_density(h).mean().abs() < 1e-5
    assert not before.requires_grad


@BOTH
@pytest.mark.parametrize(
    ("space", "old"),
    [
        (Box(3, -1.0, (1.0, 2.0, 5.0)), BoxHead(Box(3, -1.0, 1.0), start=7.0)),
        (Sphere(3), SphereHead(Sphere(3, radius=4.0))),
        (Euclidean(3), make_head(Euclidean(3))),
        (
            Product(Sphere(2), Box(1)),
            ProductHead(
                Product(Sphere(2), Box(1)),
                [SphereHead(Sphere(2, radius=0.5)), BoxHead(Box(1), start=3.0)],
            ),
        ),
    ],
)
def test_it_follows_a_head_of_another_size(space, old, curved):
    potential, x, new = learnt(curved=curved), codes(), make_head(space)
    before = potential(old(x))
    potential.follow(old, new)
    assert torch.allclose(potential(new(x)), before, rtol=1e-4, atol=1e-4)


def test_centred_it_has_mean_zero():
    potential, h = learnt(), codes()
    before = potential.log_density(h)
    potential.centre(h)
    assert potential(h).mean(0).abs().max() < 1e-5
    assert torch.allclose(-potential(h)[:, 0], before, atol=1e-5)


def test_bad_input_is_named():
    with pytest.raises(InputError, match="n must be a whole number"):
        Potential(0)
    with pytest.raises(InputError, match="curved must be"):
        Potential(3, curved="yes")
    with pytest.raises(InputError, match="codes must have 3 columns"):
        Potential(3)(codes(n=4))
