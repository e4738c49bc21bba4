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
