import numpy as np
import pytest
import torch

from helpers.defaults import numbers_of
from identica import CouplingFlow, InputError, InvertibleMLP

MAKERS = {
    "mlp": lambda **k: InvertibleMLP(5, draws=200, **k),
    "deep mlp": lambda **k: InvertibleMLP(5, draws=200, layers=6, **k),
    "flow": lambda **k: CouplingFlow(5, **k),
}


@pytest.mark.parametrize("observed", [5, 9])
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_the_inverse_is_exact(make, observed):
    g = make(seed=3, observed=observed)
    z = torch.randn(400, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    x = g(z)
    assert x.shape == (400, observed)
    assert torch.allclose(g.inverse(x), z, atol=1e-9)
    assert g(z.float()).dtype == torch.float32


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_the_seed_makes_the_map(make):
    z = torch.linspace(-1, 1, 10).reshape(2, 5)
    assert torch.equal(make(seed=1)(z), make(seed=1)(z))
    assert not torch.equal(make(seed=1)(z), make(seed=2)(z))


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_the_map_is_not_linear(make):
    g, z = make(seed=0), torch.randn(100, 5, generator=torch.Generator().manual_seed(0))
    assert not torch.allclose(g(z) + g(-z), 2 * g(torch.zeros(1, 5)), atol=0.05)


def test_layers_are_as_published():
    g = InvertibleMLP(10, seed=0)
    for i in range(3):
        weight = g.get_buffer(f"weight{i}").numpy()
        assert np.allclose(np.linalg.norm(weight, axis=0), 1)
        assert np.linalg.cond(weight) < 4.3  # the typical draw has about 30


def test_the_mlp_is_the_formula():
    g, z = InvertibleMLP(4, seed=0, layers=2, slope=0.3, draws=50), torch.randn(7, 4).double()
    first, second = g.get_buffer("weight0"), g.get_buffer("weight1")
    inner = z @ first.T
    expected = torch.where(inner > 0, inner, 0.3 * inner) @ second.T
    assert torch.allclose(g(z), expected)


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: InvertibleMLP(0, seed=0), "dim"),
        (lambda: InvertibleMLP(4, seed=-1), "seed"),
        (lambda: InvertibleMLP(4, seed=0, observed=3), "observed"),
        (lambda: InvertibleMLP(4, seed=0, slope=0.0), "slope"),
        (lambda: CouplingFlow(1, seed=0), "dim"),
        (lambda: CouplingFlow(4, seed=0, observed=3), "observed"),
        (lambda: CouplingFlow(4, seed=0)(torch.zeros(2, 3)), "z must have 4 columns"),
        (lambda: CouplingFlow(4, seed=0).inverse(torch.zeros(2, 3)), "x must have 4 columns"),
    ],
)
def test_bad_input_is_named(make, named):
    with pytest.raises(InputError, match=named):
        make()


def test_the_defaults_are_those_of_the_paper():
    """Three layers with leaky slopes of 0.2, conditioned as the best of 25,000 random matrices."""
    assert numbers_of(InvertibleMLP) == {"layers": 3, "slope": 0.2, "draws": 25_000}
    assert numbers_of(CouplingFlow) == {"layers": 4, "hidden": 32, "strength": 0.5}
