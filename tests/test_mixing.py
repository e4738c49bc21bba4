import numpy as np
import pytest
import torch
from numpy.random import default_rng

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


@pytest.mark.parametrize("observed", [2, 3])
def test_each_layer_is_the_best_conditioned_of_its_draws(observed):
    """One matrix after the other; 5,000 are drawn at a time, so 5,001 take two turns."""
    g, rng = InvertibleMLP(2, seed=4, layers=2, observed=observed, draws=5001), default_rng(4)
    for layer, rows in ((0, 2), (1, observed)):
        drawn = [rng.uniform(-1, 1, (rows, 2)) for _ in range(5001)]
        drawn = [weight / np.linalg.norm(weight, axis=0) for weight in drawn]
        conditions = np.linalg.cond(np.array(drawn))
        weight = g.get_buffer(f"weight{layer}").numpy()
        assert np.linalg.cond(weight) == pytest.approx(conditions.min(), rel=1e-6)
        assert min(np.abs(weight - other).max() for other in drawn) < 1e-12


@pytest.mark.parametrize("dim", [4, 5])
def test_the_flow_is_the_formula(dim):
    """Of an odd number of coordinates, the smaller half is changed."""
    g, z = CouplingFlow(dim, seed=0, layers=2, strength=0.3), torch.randn(7, dim).double().numpy()
    expected, half = z, dim // 2
    for layer in range(2):
        turn, inner, bias, outer = (
            g.get_buffer(f"{name}{layer}").numpy()
            for name in ("rotation", "inner", "bias", "outer")
        )
        turned = expected @ turn.T
        hidden = np.tanh(turned[:, half:] @ inner.T + bias)
        scale, shift = np.split(hidden @ outer.T, 2, axis=1)
        changed = turned[:, :half] * np.exp(0.3 * np.tanh(scale)) + shift
        expected = np.c_[changed, turned[:, half:]]
    expected = expected @ g.get_buffer("lift").numpy().T
    assert np.allclose(g(torch.from_numpy(z)).numpy(), expected)


def test_the_weights_of_a_flow():
    """Mean squares of n normal draws deviate by √(2/n) of themselves."""
    g = CouplingFlow(20, seed=0, layers=1, hidden=400)
    for name, shape, wanted in (("inner", (400, 10), 4 / 10), ("outer", (20, 400), 1 / 400)):
        weight = g.get_buffer(f"{name}0")
        assert weight.shape == shape
        rel = 5 * (2 / weight.numel()) ** 0.5
        assert weight.square().mean().item() == pytest.approx(wanted, rel=rel)
    bias = g.get_buffer("bias0")
    assert bias.abs().max() <= 1
    assert (bias.min(), bias.max()) == pytest.approx((-1, 1), abs=2 * 20 / 400)
