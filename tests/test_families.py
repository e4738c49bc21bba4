import math

import numpy as np
import pytest
import torch
from scipy import integrate, stats

from helpers.laws import COORDINATEWISE, IDS, PAIRS
from identica import (
    Box,
    Euclidean,
    GeneralizedNormal,
    InputError,
    Joint,
    Laplace,
    Normal,
    Product,
    Sphere,
    Uniform,
    VonMisesFisher,
)
from identica._bessel import log_mean_exp_gap, mean_cosine


def centres(space, size, dtype=torch.float32):
    """Points of the space away from anything special (and near the bounds of a box)."""
    z = 4 * torch.randn(size, space.dim, generator=torch.Generator().manual_seed(9), dtype=dtype)
    return space.project(z)


def scipy_frozen(family):
    """The coordinatewise family around 0 in scipy."""
    match family:
        case Normal(std):
            return stats.norm(scale=std)
        case Laplace(scale):
            return stats.laplace(scale=scale)
        case GeneralizedNormal(shape, scale):
            return stats.gennorm(shape, scale=scale)


@pytest.mark.parametrize(("space", "family"), PAIRS, ids=IDS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_draws_lie_in_the_space_and_follow_the_seed(space, family, dtype):
    centre = centres(space, 300, dtype)
    z = family.sample(space, centre, generator=0)
    assert z.shape == centre.shape
    assert z.dtype == dtype
    assert space.contains(z).all()
    assert torch.equal(z, family.sample(space, centre, generator=0))
    assert not torch.equal(z, family.sample(space, centre, generator=1))


@pytest.mark.parametrize("family", COORDINATEWISE, ids=str)
def test_draws_and_densities_on_r_n_agree_with_scipy(family):
    centre = torch.tensor([0.3, -2.0], dtype=torch.float64).expand(20_000, 2)
    z = family.sample(Euclidean(2), centre, generator=0)
    frozen = scipy_frozen(family)
    for i in range(2):
        assert stats.kstest((z - centre)[:, i].numpy(), frozen.cdf).pvalue > 1e-3
    expected = frozen.logpdf((z - centre).numpy()).sum(1)
    assert np.allclose(family.log_prob(Euclidean(2), z, centre).numpy(), expected)


@pytest.mark.parametrize("family", COORDINATEWISE, ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_draws_on_a_box_are_truncated_exactly(family, dtype):
    box, frozen = Box(3, low=-2.0, high=0.5), scipy_frozen(family)
    centre = torch.tensor([-1.9, -0.2, 0.5], dtype=dtype).expand(20_000, 3)
    z = family.sample(box, centre, generator=5)
    for i, c in enumerate(centre[0].tolist()):
        below, above = frozen.cdf(-2.0 - c), frozen.cdf(0.5 - c)

        def cdf(x, c=c, below=below, above=above):
            return (frozen.cdf(x - c) - below) / (above - below)

        assert stats.kstest(z[:, i].double().numpy(), cdf).pvalue > 1e-3


def test_truncated_normal_density_agrees_with_scipy():
    z, c, std = torch.linspace(0, 1, 11, dtype=torch.float64)[:, None], 0.9, 0.2
    ours = Normal(std).log_prob(Box(1), z, torch.full((11, 1), c, dtype=torch.float64))
    truth = stats.truncnorm((0 - c) / std, (1 - c) / std, loc=c, scale=std).logpdf(z[:, 0].numpy())
    assert np.allclose(ours.numpy(), truth)


@pytest.mark.parametrize("family", COORDINATEWISE, ids=str)
@pytest.mark.parametrize("c", [-2.0, 0.1, 0.5])
def test_truncated_densities_integrate_to_one(family, c):
    box, centre = Box(1, low=-2.0, high=0.5), torch.tensor([c], dtype=torch.float64)

    def density(x):
        return float(family.log_prob(box, torch.tensor([x], dtype=torch.float64), centre).exp())

    knots = [x for x in (c - 0.3, c - 0.1, c, c + 0.1, c + 0.3) if -2.0 < x < 0.5]
    assert integrate.quad(density, -2.0, 0.5, points=knots, limit=200)[0] == pytest.approx(
        1, abs=1e-6
    )


@pytest.mark.parametrize("radius", [1.0, 2.5])
@pytest.mark.parametrize(("n", "kappa"), [(2, 3.0), (3, 0.5), (10, 1.0), (10, 10.0), (10, 500.0)])
def test_von_mises_fisher_agrees_with_scipy(n, kappa, radius):
    space, size = Sphere(n, radius), 20_000
    pole = Sphere(n).sample(1, generator=4, dtype=torch.float64)
    z = VonMisesFisher(kappa).sample(space, radius * pole.expand(size, n), generator=0)
    ours = (z @ pole[0] / radius).numpy()
    rng = np.random.default_rng(0)
    theirs = (
        stats.vonmises_fisher(pole[0].numpy(), kappa).rvs(size, random_state=rng) @ pole[0].numpy()
    )
    assert stats.ks_2samp(ours, theirs).pvalue > 1e-3
    error = 4 * ours.std() / math.sqrt(size)
    assert ours.mean() == pytest.approx(mean_cosine(n, kappa), abs=error)
    density = VonMisesFisher(kappa).log_prob(space, z[:50], radius * pole)
    expected = stats.vonmises_fisher(pole[0].numpy(), kappa).logpdf((z[:50] / radius).numpy())
    assert np.allclose(density.numpy(), expected - (n - 1) * math.log(radius))


def test_von_mises_fisher_is_symmetric_about_its_centre():
    n, size = 5, 40_000
    pole = Sphere(n).sample(1, generator=0, dtype=torch.float64)
    z = VonMisesFisher(4.0).sample(Sphere(n), pole.expand(size, n), generator=1)
    mean = z.mean(0)
    sideways = mean - (mean @ pole[0]) * pole[0]
    assert sideways.norm() < 4 / math.sqrt(size)


@pytest.mark.parametrize("kappa", [0.0, 2.0, 30.0])
def test_von_mises_fisher_density_integrates_to_one(kappa):
    centre = torch.tensor([0.0, 2.0], dtype=torch.float64)  # a circle of radius 2

    def density(angle):
        z = 2 * torch.tensor([math.sin(angle), math.cos(angle)], dtype=torch.float64)
        return 2 * float(VonMisesFisher(kappa).log_prob(Sphere(2, 2.0), z, centre).exp())

    assert integrate.quad(density, -math.pi, math.pi, points=[0])[0] == pytest.approx(1)


def test_test_vectors_of_the_von_mises_fisher_distribution():
    assert mean_cosine(10, 1.0) == pytest.approx(0.09918, abs=5e-6)
    assert mean_cosine(10, 10.0) == pytest.approx(0.63367, abs=5e-6)
    assert 1.0 + log_mean_exp_gap(10, 1.0) == pytest.approx(0.04979, abs=5e-6)
    assert 10.0 + log_mean_exp_gap(10, 10.0) == pytest.approx(3.85221, abs=5e-6)
    information = [k * (mean_cosine(10, k) - 1) - log_mean_exp_gap(10, k) for k in (1.0, 10.0)]
    assert information == pytest.approx([0.0494, 2.4845], abs=5e-5)


def test_von_mises_fisher_in_many_dimensions():
    # small concentrations underflow the Bessel function: there log E e^{κ cos} ≈ κ²/2n
    assert 0.1 + log_mean_exp_gap(2000, 0.1) == pytest.approx(0.1**2 / 4000, rel=1e-3)
    assert mean_cosine(2000, 0.1) == pytest.approx(0.1 / 2000, rel=1e-3)
    centre = Sphere(200).sample(2000, generator=0)
    z = VonMisesFisher(1e4).sample(Sphere(200), centre, generator=1)
    assert float((z * centre).sum(1).mean()) == pytest.approx(mean_cosine(200, 1e4), abs=1e-4)


@pytest.mark.parametrize(
    "family", [Normal(0.3), Laplace(0.3), GeneralizedNormal(3.0, 0.3)], ids=str
)
def test_on_the_sphere_draws_are_projected(family):
    centre = Sphere(4, radius=2.0).sample(20_000, generator=0, dtype=torch.float64)
    z = family.sample(Sphere(4, radius=2.0), centre, generator=1)
    noise = scipy_frozen(family).rvs((20_000, 4), random_state=np.random.default_rng(2))
    there = centre.numpy() + noise
    there *= 2 / np.linalg.norm(there, axis=1, keepdims=True)
    ours, theirs = (z * centre).sum(1).numpy(), (there * centre.numpy()).sum(1)
    assert stats.ks_2samp(ours, theirs).pvalue > 1e-3
    with pytest.raises(InputError, match="no closed form"):
        family.log_prob(Sphere(4, radius=2.0), z, centre)


@pytest.mark.parametrize("family", [*COORDINATEWISE, VonMisesFisher(3.0)], ids=str)
def test_similarity_is_the_log_density_up_to_a_constant(family):
    space = Sphere(3) if isinstance(family, VonMisesFisher) else Euclidean(3)
    centre, z = centres(space, 20, torch.float64), centres(space, 40, torch.float64)[20:]
    gap = family.similarity(centre, z) - family.log_prob(space, z, centre)
    assert torch.allclose(gap, gap[0].expand(20))
    assert torch.allclose(family.pairwise(centre, z).diagonal(), family.similarity(centre, z))
    several = family.similarity(centre[:, None], z.expand(20, 20, 3))  # all of them for each centre
    assert torch.allclose(several, family.pairwise(centre, z))


def test_joint_is_the_sum_of_its_parts():
    space = Product(Sphere(3), Box(2))
    joint = Joint((VonMisesFisher(5.0), 3), (Laplace(0.1), 2))
    z = space.sample(6, generator=0, dtype=torch.float64)
    t = joint.sample(space, z, generator=1)
    parts = [
        (VonMisesFisher(5.0), Sphere(3), z[:, :3], t[:, :3]),
        (Laplace(0.1), Box(2), z[:, 3:], t[:, 3:]),
    ]
    expected = sum(f.log_prob(s, b, a) for f, s, a, b in parts)
    assert torch.allclose(joint.log_prob(space, t, z), expected)
    expected = sum(f.pairwise(a, b) for f, s, a, b in parts)
    assert torch.allclose(joint.pairwise(z, t), expected)


def test_uniform_ignores_the_centre_and_has_the_density_of_the_space():
    z = Box(2, 0.0, 4.0).sample(3, generator=0)
    assert torch.allclose(Uniform().log_prob(Box(2, 0.0, 4.0), z, z).exp(), torch.tensor(1 / 16))
    assert Uniform().log_prob(Box(2), torch.tensor([[2.0, 0.0]]), z[:1] / 4).item() == -math.inf


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: VonMisesFisher(-1.0), "kappa"),
        (lambda: VonMisesFisher(math.nan), "kappa"),
        (lambda: Normal(0.0), "std"),
        (lambda: Laplace(-0.1), "scale"),
        (lambda: GeneralizedNormal(0.0), "shape"),
        (lambda: GeneralizedNormal(2.0, "wide"), "scale"),
        (lambda: Joint(), "parts"),
        (lambda: Joint(Normal(1.0)), "parts"),
        (lambda: Uniform().p, "model"),
        (lambda: VonMisesFisher(1.0).sample(Box(2), torch.zeros(1, 2), generator=0), "not defined"),
        (lambda: Normal(1.0).sample(Box(2), torch.full((1, 2), 3.0), generator=0), "centre"),
        (lambda: Normal(1.0).sample(Box(2), torch.zeros(1, 3), generator=0), "centre"),
        (
            lambda: Normal(1.0).sample(torch.zeros(1, 2), Box(2), generator=0),
            "space must be a space",
        ),
        (lambda: Normal(1.0).sample(Sphere(2), torch.zeros(1, 2), generator=0), "centre"),
        (lambda: Uniform().sample(Euclidean(2), torch.zeros(1, 2), generator=0), "not defined"),
        (lambda: Normal(1.0).log_prob(Box(2), torch.zeros(1, 3), torch.zeros(1, 2)), "z must"),
    ],
)
def test_bad_input_is_named(make, named):
    with pytest.raises(InputError, match=named):
        make()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("space", [Euclidean(3), Box(3, -1.0, 0.5), Sphere(3, radius=2.0)], ids=str)
@pytest.mark.parametrize("family", [*COORDINATEWISE, VonMisesFisher(7.0)], ids=str)
def test_half_precision_draws_from_the_same_law(space, family, dtype):
    if not family.supports(space):
        pytest.skip(f"{family} is not defined on {space}")
    centre = centres(space, 1, dtype).expand(20_000, 3)
    ours = family.sample(space, centre, generator=0)
    theirs = family.sample(space, space.project(centre.double()), generator=1).to(dtype)
    assert ours.dtype == dtype
    assert isinstance(space, Sphere) or space.contains(ours).all()
    for i in range(3):
        assert stats.ks_2samp(ours[:, i].double(), theirs[:, i].double()).pvalue > 1e-4


def test_draws_of_rows_and_coordinates_are_independent():
    centre = torch.zeros(50_000, 4, dtype=torch.float64)
    z = Laplace(1.0).sample(Euclidean(4), centre, generator=0).numpy()
    sign, size = np.sign(z), np.abs(z)
    correlation = np.corrcoef(np.hstack([sign[:-1], sign[1:], size[:-1], size[1:]]).T)
    np.fill_diagonal(correlation, 0)
    # the size of a coordinate knows nothing of its sign, of the next row or of other coordinates
    assert np.abs(correlation).max() < 5 / math.sqrt(50_000)
