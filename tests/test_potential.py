import pytest
import torch

from identica import Box, BoxHead, Euclidean, InputError, Potential, Product, Sphere, SphereHead
from identica.heads import ProductHead, make_head


def codes(size=40, n=3, seed=0):
    return torch.randn(size, n, generator=torch.Generator().manual_seed(seed))


def learnt(seed=0):
    """A potential that is not 0 any more."""
    potential = Potential(3, seed=seed)
    generator = torch.Generator().manual_seed(seed)
    torch.nn.init.normal_(potential.network.layers[-1].weight, generator=generator)
    return potential


def test_it_starts_at_zero_and_learns():
    potential = Potential(3, (8,), seed=1)
    assert torch.equal(potential(codes()), torch.zeros(40, 2))
    potential(codes()).sum().backward()
    assert potential.network.layers[-1].weight.grad.abs().max() > 0


def test_no_gradient_reaches_the_codes():
    h = codes().requires_grad_()
    (learnt()(h).sum() + 0 * h.sum()).backward()
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
def test_it_follows_a_head_of_another_size(space, old):
    potential, x, new = learnt(), codes(), make_head(space)
    before = potential(old(x))
    potential.follow(old, new)
    assert torch.allclose(potential(new(x)), before, atol=1e-4)


def test_centred_it_has_mean_zero():
    potential, h = learnt(), codes()
    before = potential.log_density(h)
    potential.centre(h)
    assert potential(h).mean(0).abs().max() < 1e-5
    assert torch.allclose(-potential(h)[:, 0], before, atol=1e-5)


def test_bad_input_is_named():
    with pytest.raises(InputError, match="n must be a whole number"):
        Potential(0)
    with pytest.raises(InputError, match="codes must have 3 columns"):
        Potential(3)(codes(n=4))
