import pytest
import torch

from identica import (
    Box,
    Euclidean,
    GenerativeProcess,
    InputError,
    InvertibleMLP,
    Laplace,
    Normal,
    Sphere,
    Uniform,
    VonMisesFisher,
)
from identica.process import Pairs, Walk


def mixing(n):
    return InvertibleMLP(n, seed=0, draws=20)


def test_a_batch_is_what_the_objects_say():
    process = GenerativeProcess(Box(3), Uniform(), Laplace(0.05), mixing(3))
    z, z_pos, x, x_pos = process.sample(2000, generator=0)
    assert torch.equal(x, process.mixing(z))
    assert torch.equal(x_pos, process.mixing(z_pos))
    assert Box(3).contains(z).all()
    assert Box(3).contains(z_pos).all()
    assert (z_pos - z).abs().median() < 0.05
    assert torch.equal(process.sample(2000, generator=0).x_pos, x_pos)


@pytest.mark.parametrize(
    ("space", "pole"), [(Sphere(3, 2.0), [2.0, 0.0, 0.0]), (Euclidean(3), [0.0, 0.0, 0.0])]
)
def test_marginals_are_centred_where_the_paper_puts_them(space, pole):
    process = GenerativeProcess(space, Normal(0.1), Normal(0.1), mixing(3))
    mean = process.latents(4000, generator=0).mean(0)
    assert torch.allclose(mean, torch.tensor(pole), atol=0.03)


def test_a_centre_of_ones_own():
    centre = torch.tensor([0.0, 1.0])
    process = GenerativeProcess(
        Sphere(2), VonMisesFisher(500.0), Normal(0.1), mixing(2), centre=centre
    )
    assert torch.allclose(process.latents(4000, generator=0).mean(0), centre, atol=0.01)


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: GenerativeProcess(Box(3), Uniform(), Laplace(0.1), mixing(2)), "mixing"),
        (
            lambda: GenerativeProcess(Box(3), Uniform(), VonMisesFisher(1.0), mixing(3)),
            "not defined",
        ),
        (lambda: GenerativeProcess(Euclidean(3), Uniform(), Normal(1.0), mixing(3)), "not defined"),
        (
            lambda: GenerativeProcess(
                Sphere(2), Normal(1.0), Normal(1.0), mixing(2), centre=torch.tensor([3.0, 0.0])
            ),
            "centre must lie in",
        ),
        (
            lambda: GenerativeProcess(Box(2), Uniform(), Laplace(0.1), mixing(2)).sample(
                0, generator=0
            ),
            "size",
        ),
    ],
)
def test_bad_input_is_named(make, named):
    with pytest.raises(InputError, match=named):
        make()


def test_a_pool_holds_draws_of_the_conditional_on_the_sphere():
    process = GenerativeProcess(Sphere(10), Uniform(), VonMisesFisher(1.0), mixing(10))
    pool = process.pool(4000, 25, generator=0)
    assert torch.equal(pool.x, process.mixing(pool.z))
    assert not (pool.positives == torch.arange(4000)[:, None]).any()
    cosine = (pool.z[:, None] * pool.z[pool.positives]).sum(-1)
    # mean cosine of vMF(1) at n = 10, and its spread over that many (nearly independent) pairs
    assert abs(cosine.mean() - 0.09918) < 4 * cosine.std() / cosine.numel() ** 0.5 + 1e-4
    # the density of the cosine t is proportional to e^t (1 − t²)^{7/2}
    edges = torch.linspace(-1, 1, 9)
    grid = torch.linspace(-1, 1, 80_001, dtype=torch.float64)
    mass = torch.cumulative_trapezoid((grid.exp()) * (1 - grid**2).clamp(min=0) ** 3.5, grid)
    expected = torch.diff(torch.cat([torch.zeros(1), mass])[::10_000] / mass[-1])
    share = torch.histogram(cosine.flatten(), edges).hist / cosine.numel()
    assert torch.allclose(share.double(), expected, atol=0.006)


def test_a_pool_holds_draws_of_the_truncated_conditional_on_the_box():
    process = GenerativeProcess(Box(1), Uniform(), Laplace(0.2), mixing(1))
    pool = process.pool(2000, 50, generator=0)
    near = (pool.z[:, 0] - 0.1).abs() < 0.02
    found = pool.z[pool.positives[near], 0]
    centre = pool.z[near, 0].double()
    below = 1 - (-centre / 0.2).exp()
    above = 1 - (-(1 - centre) / 0.2).exp()
    expected = (below / (below + above)).mean()  # the share of the mass that lies below z
    share = (found < pool.z[near]).double().mean()
    assert abs(share - expected) < 0.04
    reached = ((1 - (-(0.5 - centre) / 0.2).exp() + below) / (below + above)).mean()
    assert abs((found < 0.5).double().mean() - reached) < 0.03


def test_a_pool_needs_a_wide_conditional_and_a_uniform_marginal():
    narrow = GenerativeProcess(Sphere(10), Uniform(), VonMisesFisher(100.0), mixing(10))
    with pytest.raises(InputError, match="too narrow for a pool of 20"):
        narrow.pool(20, 2, generator=0)
    lumpy = GenerativeProcess(Sphere(3), Normal(1.0), VonMisesFisher(1.0), mixing(3))
    with pytest.raises(InputError, match="marginal"):
        lumpy.pool(20, 2, generator=0)
    with pytest.raises(InputError, match="size"):
        lumpy.pool(1, 2, generator=0)


def test_pairs_of_codes_are_those_of_the_observations():
    """Codes are made for all observations at once, and come apart again."""
    codes = torch.arange(8.0).reshape(4, 2)
    pairs = Pairs(*torch.rand(4, 2, 3))
    assert [part.tolist() for part in pairs.split(codes)] == [
        codes[:2].tolist(),
        codes[2:].tolist(),
    ]
    assert torch.equal(pairs.observed, torch.cat([pairs.x, pairs.x_pos]))
    walk = Walk(torch.rand(4, 3), torch.rand(4, 5))
    assert [part.tolist() for part in walk.split(codes)] == [codes[:3].tolist(), codes[1:].tolist()]
    assert walk.observed is walk.x
