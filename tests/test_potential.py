import pytest
import torch

from identica import InputError, Potential


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


def test_bad_input_is_named():
    with pytest.raises(InputError, match="n must be a whole number"):
        Potential(0)
    with pytest.raises(InputError, match="codes must have 3 columns"):
        Potential(3)(codes(n=4))
