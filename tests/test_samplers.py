"""Draws and densities of families with extreme parameters, against scipy and mpmath."""

import math

import mpmath
import numpy as np
import pytest
import torch
from scipy import stats

from identica import (
    Box,
    Euclidean,
    GeneralizedNormal,
    InputError,
    Laplace,
    Normal,
    Sphere,
    Uniform,
    VonMisesFisher,
)
from identica._bessel import mean_cosine
from identica._samplers import reach

N = 4000
SHAPES = [0.02, 0.05, 0.1, 0.3, 0.7, 1.0, 2.0, 5.0, 50.0]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("scale", [1e-9, 0.1, 1.0, 1e10])
def test_generalized_normal_draws_of_any_shape_agree_with_scipy(shape, scale):
    centre = torch.zeros(N, 1, dtype=torch.float64)
    z = GeneralizedNormal(shape, scale).sample(Euclidean(1), centre, generator=2)
    law = stats.gennorm(shape, scale=scale)
    assert stats.kstest(z[:, 0].numpy(), law.cdf).pvalue > 1e-3


def truncated_cdf(shape, scale, centre):
    """The distribution function on [0, 1], from an integral by mpmath at 200 places."""

    def mass(length):
        with mpmath.workdps(30):
            a, s = mpmath.mpf(1) / shape, mpmath.mpf(length) / scale
            return float(scale * mpmath.gammainc(a, 0, s**shape) / shape) if length else 0.0

    places = np.unique(np.concatenate([np.linspace(0, 1, 200), [centre]]))
    values = np.array([math.copysign(mass(abs(x - centre)), x - centre) for x in places])
    values = (values - values[0]) / (values[-1] - values[0])
    return lambda x: np.interp(x, places, values)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("scale", [0.1, 1.0, 1e10])
def test_truncated_draws_of_any_shape_and_scale(shape, scale):
    box, family = Box(2), GeneralizedNormal(shape, scale)
    centre = torch.tensor([0.0, 0.7], dtype=torch.float64).expand(N, 2)
    z = family.sample(box, centre, generator=3)
    assert box.contains(z).all()
    for i, c in enumerate((0.0, 0.7)):
        cdf = truncated_cdf(shape, scale, c)
        assert stats.kstest(z[:, i].numpy(), cdf).pvalue > 1e-3


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_a_scale_beyond_all_others_gives_a_point_or_the_uniform_law(scale):
    for family in (Normal(scale), Laplace(scale), GeneralizedNormal(0.5, scale)):
        z = family.sample(Box(1), torch.full((N, 1), 0.3), generator=0)
        if scale < 1:
            assert (z == 0.3).all()
        else:
            assert stats.kstest(z[:, 0].numpy(), "uniform").pvalue > 1e-3
        ball = family.sample(Sphere(3), Sphere(3).origin.expand(N, 3), generator=0)
        assert torch.allclose(ball.norm(dim=1), torch.ones(N, dtype=torch.float64))


def test_a_centre_that_rounding_put_outside_the_box_is_drawn_around_its_wall():
    z = Laplace(1e-9).sample(
        Box(1), torch.full((100, 1), 1.00005, dtype=torch.float64), generator=0
    )
    assert (z <= 1).all()
    assert (z > 1 - 1e-7).all()


def test_what_floats_cannot_hold_is_refused():
    with pytest.raises(InputError, match=r"shape must be at least 0\.02"):
        GeneralizedNormal(0.01).sample(Box(1), torch.zeros(3, 1), generator=0)
    with pytest.raises(InputError, match=r"exceed the range of torch\.float32"):
        GeneralizedNormal(0.03).sample(Euclidean(1), torch.zeros(3, 1), generator=0)
    with pytest.raises(InputError, match=r"exceed the range of torch\.float32"):
        Normal(1e38).sample(Euclidean(1), torch.zeros(3, 1), generator=0)
    for family in (Normal(1e-300), Laplace(1e300), VonMisesFisher(1e300)):
        with pytest.raises(InputError, match="precision"):
            family.similarity(torch.ones(2, 3), torch.ones(2, 3))


@pytest.mark.parametrize("shape", SHAPES)
def test_reach_is_the_end_of_the_tail(shape):
    with mpmath.workdps(30):
        a = 1 / mpmath.mpf(shape)
        tail = mpmath.gammainc(a, mpmath.mpf(reach(shape)) ** shape, regularized=True)
    assert float(tail * 2**63) == pytest.approx(1, rel=1e-6)


def von_mises_fisher_draws(n, kappa, size):
    """Draws around the pole."""
    return VonMisesFisher(kappa).sample(Sphere(n), Sphere(n).origin.expand(size, n), generator=0)


@pytest.mark.parametrize("kappa", [1e10, 1e100, 1e300])
@pytest.mark.parametrize("n", [2, 3, 1000])
def test_von_mises_fisher_of_huge_concentration_has_normal_tangents(n, kappa):
    # κ times the square of the sine is that of a normal vector in n − 1 dimensions, up to order n/κ
    z = von_mises_fisher_draws(n, kappa, 400)
    size = kappa * z[:, 1:].square().sum(1).numpy()
    assert stats.kstest(size, stats.chi2(n - 1).cdf).pvalue > 1e-3


def test_von_mises_fisher_where_its_density_underflows():
    # sin^{998}θ at the mode is about 1e-512
    z = von_mises_fisher_draws(1000, 1e4, 400)
    error = 5 * z[:, 0].std() / math.sqrt(400)
    assert z[:, 0].mean().item() == pytest.approx(mean_cosine(1000, 1e4), abs=error.item())


@pytest.mark.parametrize("radius", [1e-300, 1e300])
def test_spheres_of_extreme_radius_have_the_draws_of_the_unit_sphere(radius):
    centre = Sphere(4).sample(50, generator=0, dtype=torch.float64)
    small = Sphere(4, radius)
    pairs = [(VonMisesFisher(5.0), VonMisesFisher(5.0)), (Uniform(), Uniform())]
    pairs.append((Laplace(0.5), Laplace(0.5 * radius)))
    for on_unit, there in pairs:
        expected = on_unit.sample(Sphere(4), centre, generator=1)
        assert torch.allclose(there.sample(small, radius * centre, generator=1) / radius, expected)


@pytest.mark.parametrize("kappa", [0.0, 1.0, 1e4, 1e10])
@pytest.mark.parametrize("n", [2, 3, 1000])
def test_von_mises_fisher_densities_agree_with_mpmath(n, kappa):
    angle = 1 / math.sqrt(max(kappa, 1.0))
    z = torch.zeros(n, dtype=torch.float64)
    z[0], z[1] = math.cos(angle), math.sin(angle)
    with mpmath.workdps(60):
        order, k = mpmath.mpf(n) / 2 - 1, mpmath.mpf(kappa)
        volume = 2 * mpmath.pi ** (order + 1) / mpmath.gamma(order + 1)
        scale = 1 / volume
        if kappa:
            scale = k**order / ((2 * mpmath.pi) ** (order + 1) * mpmath.besseli(order, k))
        expected = mpmath.log(scale) + k * mpmath.cos(mpmath.mpf(angle))
    found = VonMisesFisher(kappa).log_prob(Sphere(n), z, Sphere(n).origin)
    # cos and sin are rounded: an error of 1e-16 in the angle counts κ·angle times
    tolerance = 1e-15 * math.sqrt(max(kappa, 1.0))
    assert found.item() == pytest.approx(float(expected), rel=1e-11, abs=tolerance)


@pytest.mark.parametrize("shape", [0.01, 0.05, 0.5, 1.0, 2.0, 50.0])
@pytest.mark.parametrize("scale", [1e-300, 1e-3, 1.0, 1e3, 1e300])
@pytest.mark.parametrize("c", [0.0, 0.7])
def test_densities_of_any_shape_and_scale_agree_with_mpmath(shape, scale, c):
    z = 0.3 if scale > 1e-100 else c  # away from the centre nothing is left
    with mpmath.workdps(60):
        width, power = mpmath.mpf(scale), mpmath.mpf(shape)
        a = 1 / power

        def mass(length):
            w = (mpmath.mpf(length) / width) ** power
            return width * a * mpmath.gammainc(a, 0, w) if w < 1e6 else width * mpmath.gamma(1 + a)

        exponent = (abs(mpmath.mpf(z) - mpmath.mpf(c)) / width) ** power
        plain = float(-exponent - mpmath.log(2 * width * mpmath.gamma(1 + a)))
        inside = float(-exponent - mpmath.log(mass(c) + mass(1 - c)))
    family, at = GeneralizedNormal(shape, scale), torch.tensor([[z]], dtype=torch.float64)
    centre = torch.tensor([[c]], dtype=torch.float64)
    assert family.log_prob(Euclidean(1), at, centre).item() == pytest.approx(plain, rel=1e-10)
    found = family.log_prob(Box(1), at, centre).item()
    assert found == pytest.approx(inside, rel=1e-10, abs=1e-10)


def test_densities_in_a_thousand_dimensions_add_up():
    centre = torch.full((1000,), 0.3, dtype=torch.float64)
    z = Normal(0.2).sample(Box(1000), centre, generator=0)
    law = stats.truncnorm(-1.5, 3.5, loc=0.3, scale=0.2)
    assert Normal(0.2).log_prob(Box(1000), z, centre).item() == pytest.approx(
        law.logpdf(z.numpy()).sum()
    )
    assert Normal(0.2).similarity(centre, z).item() == pytest.approx(
        -((z - centre).square().sum() / 0.08).item()
    )


@pytest.mark.parametrize(
    ("space", "family", "draws"),
    [
        (Euclidean(2), Laplace(1.0), [[-0.3890450, -1.8380317], [0.4400822, -0.8843718]]),
        (Euclidean(2), GeneralizedNormal(3.0), [[-0.2891552, -0.8700403], [0.3200949, -0.5445621]]),
        (Box(2), Normal(0.5), [[0.0923745, 0.7943906], [0.5308716, 0.6779955]]),
        (
            *(Sphere(3), VonMisesFisher(5.0)),
            [[0.8649776, 0.3205585, 0.3860778], [0.8140606, 0.5133235, -0.2716695]],
        ),
    ],
    ids=str,
)
def test_a_seed_gives_the_draws_it_always_gave(space, family, draws):
    """Any other law or order of random numbers would change the results of every seed."""
    pole = torch.tensor([1.0, 0.0, 0.0]) if isinstance(space, Sphere) else torch.full((2,), 0.3)
    centre = pole.double().expand(2, -1) * (not isinstance(space, Euclidean))
    found = family.sample(space, centre, generator=7)
    np.testing.assert_allclose(found.numpy(), draws, atol=1e-6)


@pytest.mark.parametrize("shape", [(3,), (5, 3), (4, 5, 3)])
@pytest.mark.parametrize("space", [Sphere(3, radius=2.0), Box(3)], ids=str)
def test_centres_come_in_any_shape(space, shape):
    centre = space.sample(math.prod(shape[:-1]), generator=0, dtype=torch.float64).reshape(shape)
    generator = torch.Generator().manual_seed(0)
    family = VonMisesFisher(1e6) if isinstance(space, Sphere) else Laplace(1e-3)
    z = family.sample(space, centre, generator=generator)
    assert z.shape == shape
    assert space.contains(z, tolerance=1e-9).all()
    assert (z - centre).abs().max() < 0.05  # twenty times the spread, or more
    assert (z != centre).any(dim=-1).all()


@pytest.mark.parametrize(
    ("n", "dtype"),
    [(2, torch.float64), (3, torch.float32), (3, torch.float64), (10, torch.float32)],
)
def test_centres_and_draws_may_have_the_same_seed(n, dtype):
    """Both start from the same normal numbers then, which say nothing of a direction to go."""
    space = Sphere(n, radius=2.0)
    centre = space.sample(N, generator=0, dtype=dtype)
    z = VonMisesFisher(5.0).sample(space, centre, generator=0)
    assert space.contains(z).all()
    cosine = (z * centre).sum(dim=1).double() / 4
    # a cosine is within [−1, 1], so its mean deviates by less than 5/√N
    assert cosine.mean().item() == pytest.approx(mean_cosine(n, 5.0), abs=5 / math.sqrt(N))
    assert len(z.unique(dim=0)) == N
