import math

import numpy as np
import pytest
import torch

from identica import Box, InputError, Sphere, VonMisesFisher
from identica._bessel import mean_cosine
from identica.theory import distance_from_uniform, isometry, measures, vmf_cross_entropy

SPHERE = Sphere(10)


@pytest.mark.parametrize(("kappa", "optimum"), [(1.0, 8.6738), (10.0, 6.2388)])
def test_cross_entropy_gives_the_derived_optimum(kappa, optimum):
    limit = vmf_cross_entropy(10, kappa) - SPHERE.log_volume + math.log(6144)
    assert limit == pytest.approx(optimum, abs=5e-5)


def test_cross_entropy_is_least_at_the_truth_and_the_mean_of_the_log_density():
    others = [vmf_cross_entropy(5, 4.0, k) for k in (2.0, 3.9, 4.1, 8.0)]
    assert vmf_cross_entropy(5, 4.0) < min(others)
    space = Sphere(5, radius=2.0)
    z = space.sample(20_000, generator=0, dtype=torch.float64)
    z_pos = VonMisesFisher(4.0).sample(space, z, generator=1)
    sampled = -VonMisesFisher(3.0).log_prob(space, z_pos, z)
    error = 4 * float(sampled.std()) / math.sqrt(20_000)
    exact = vmf_cross_entropy(5, 4.0, 3.0, radius=2.0)
    assert float(sampled.mean()) == pytest.approx(exact, abs=error)


CONCENTRATIONS = [1e-12, 1e-3, 1.0, 30.0, 1e3, 1e5, 1e8, 1e10, 1e20, 1e155, 1e300]


def exact(dim, kappa):
    """Mean cosine, 1 minus it, and the entropy on the unit sphere, of mpmath's Bessel functions."""
    import mpmath

    # 1 − cos has some 300 zeros before its first digit
    with mpmath.workdps(50 if kappa < 1e6 else 340):
        k, order = mpmath.mpf(kappa), mpmath.mpf(dim) / 2 - 1

        def scaled(order):  # e^{−κ} I(κ) √(2πκ)
            if kappa <= 1e6:
                return mpmath.besseli(order, k) * mpmath.exp(-k) * mpmath.sqrt(2 * mpmath.pi * k)
            term = total = mpmath.mpf(1)  # DLMF 10.40.1
            for j in range(1, 40):
                term *= -(4 * order**2 - (2 * j - 1) ** 2) / (8 * k * j)
                total += term
            return total

        cosine = scaled(order + 1) / scaled(order)
        normaliser = (order + 1) * mpmath.log(2 * mpmath.pi) - order * mpmath.log(k)
        normaliser += mpmath.log(scaled(order)) - mpmath.log(2 * mpmath.pi * k) / 2
        entropy = normaliser + k * (1 - cosine)
        return float(cosine), float(1 - cosine), float(entropy)


@pytest.mark.parametrize("dim", [2, 3, 10, 100, 1000])
@pytest.mark.parametrize("kappa", CONCENTRATIONS)
def test_means_of_von_mises_fisher_keep_their_digits(dim, kappa):
    """Logarithms of Gamma and Bessel functions reach some thousands, of which each has 16 digits."""
    cosine, gap, entropy = exact(dim, kappa)
    assert -1 <= mean_cosine(dim, kappa) <= 1
    assert mean_cosine(dim, kappa) == pytest.approx(cosine, rel=1e-12)
    assert measures._mean_gap(dim, kappa) == pytest.approx(gap, rel=1e-11)
    size = abs(math.lgamma(dim / 2)) + dim * abs(math.log(kappa)) + dim
    assert vmf_cross_entropy(dim, kappa) == pytest.approx(entropy, abs=1e-13 * size)


def test_isometry_knows_its_maps():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(500, 3))
    rotation, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    assert isometry(z, 7 * z @ rotation + 3) < 1e-9
    # a stretch of one axis: the ratio's spread from its own integral over directions
    u = rng.normal(size=(200_000, 3))
    ratio = np.linalg.norm(u * [1, 1, 2], axis=1) / np.linalg.norm(u, axis=1)
    assert isometry(z, z * [1, 1, 2]) == pytest.approx(ratio.std() / ratio.mean(), rel=0.03)
    assert isometry(z, np.zeros((500, 1))) == math.inf


def test_distance_from_uniform_knows_uniform_codes():
    box = Box(3)
    uniform = box.sample(1500, generator=5)
    assert distance_from_uniform(uniform, box) < 0.003
    assert distance_from_uniform(uniform.square(), box) > 0.02
    sphere = Sphere(3).sample(1500, generator=5)
    assert distance_from_uniform(sphere, Sphere(3)) < 0.003
    assert distance_from_uniform(Sphere(3).project(sphere + 0.3), Sphere(3)) > 0.01


def test_distance_from_uniform_is_unbiased_for_few_codes():
    """The mean over draws of few uniform codes is 0 before negative values are cut off: with n(n − 1)
    pairs of different points, and not n². A loop over plain floats says the same of one draw."""
    space, n = Box(1), 4
    codes = np.array([[0.1], [0.2], [0.4], [0.9]])
    uniform = space.sample(n, generator=0, dtype=torch.float64).numpy()[:, 0].tolist()
    own = codes[:, 0].tolist()
    across = sum(abs(a - u) for a in own for u in uniform) / n**2
    within = sum(abs(a - b) for x in (own, uniform) for a in x for b in x) / (n * (n - 1))
    expected = max(0.0, (2 * across - within) / (2 * across))
    assert distance_from_uniform(codes, space) == pytest.approx(expected, abs=1e-12)
    corner = np.zeros((n, 1))  # far from uniform, so that nothing is cut off
    across = sum(uniform) / n
    within = sum(abs(a - b) for a in uniform for b in uniform) / (n * (n - 1))
    expected = (2 * across - within) / (2 * across)
    assert 0.1 < expected < 1
    assert distance_from_uniform(corner, space) == pytest.approx(expected, abs=1e-12)
    drawn = [
        distance_from_uniform(space.sample(2, generator=k), space, random_state=1000 + k)
        for k in range(300)
    ]
    assert 0.2 < np.mean(np.array(drawn) == 0) < 0.8  # cut off about as often as not


@pytest.mark.parametrize("scale", [1e300, 1e-300])
def test_isometry_of_any_size(scale):
    z = np.random.default_rng(0).normal(size=(100, 3))
    h = z * [1, 1, 2]
    for pair in ((scale * z, h), (z, scale * h), (scale * z, scale * h)):
        assert isometry(*pair) == pytest.approx(isometry(z, h), rel=1e-12)


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: isometry(np.zeros((5, 2)), np.zeros((5, 2))), "z must vary"),
        (lambda: isometry(np.zeros((5, 2)), np.zeros((4, 2))), "same number of rows"),
        (lambda: distance_from_uniform(np.zeros((5, 2)), Box(3)), "3 columns"),
        (lambda: vmf_cross_entropy(10, -1.0), "kappa"),
    ],
)
def test_bad_input_is_named(make, named):
    with pytest.raises(InputError, match=named):
        make()


@pytest.mark.parametrize("bad", ["seed", -1, 0.5, None, [[1.0]]])
def test_a_bad_seed_is_named(bad):
    z = np.random.default_rng(0).normal(size=(30, 2))
    for ask in (
        lambda: isometry(z, z, random_state=bad),
        lambda: distance_from_uniform(z, Box(2), random_state=bad),
    ):
        with pytest.raises(InputError, match="whole number"):
            ask()


def test_codes_of_any_size_are_at_a_distance_from_uniform():
    far = np.linspace(-1e300, 1e300, 60).reshape(20, 3)
    # twice the mean distance to 0, less that within, of codes beside which the cube is a point
    across = np.linalg.norm(far / 1e300, axis=1).mean()
    apart = np.linalg.norm((far[:, None] - far) / 1e300, axis=-1).sum() / (20 * 19)
    expected = (2 * across - apart) / (2 * across)
    assert distance_from_uniform(far, Box(3)) == pytest.approx(expected)
