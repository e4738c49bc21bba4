"""Distances from uniform, ellipsoids and axes beside plain loops and scipy, and their limits."""

import math

import numpy as np
import pytest
from scipy import stats
from sklearn.decomposition import FastICA

from helpers.codes import pairs, rotation
from identica import Box, Euclidean, Joint, Laplace, Normal, Product, Sphere, VonMisesFisher
from identica.diagnosis.marginal import (
    as_directions,
    axes,
    blur,
    fixes_axes,
    independent_components,
    least_squares,
    marginal,
    own_range,
    uniform_distances,
)
from identica.metrics import mcc
from identica.theory import distance_from_uniform

STREAM = 7_215_803
RNG = np.random.default_rng(0)


def test_a_thousandth_lies_beyond_either_end():
    h = RNG.permutation(np.arange(2001.0))[:, None] * [1, -2]
    low, high = own_range(h)
    assert low == pytest.approx([2, -3996])
    assert high == pytest.approx([1998, -4])


def test_distances_beside_kolmogorov_and_smirnov():
    h = np.c_[RNG.normal(size=50), RNG.exponential(size=50), np.full(50, 3.0)]
    found = uniform_distances(h, Euclidean(3))
    for k in range(2):
        low, high = np.quantile(h[:, k], (0.001, 0.999))
        expected = stats.kstest(h[:, k], stats.uniform(low, high - low).cdf).statistic
        assert found[k] == pytest.approx(expected)
    assert found[2] == 1  # a constant code
    for n in (2, 3, 6):
        around = RNG.normal(size=(40, n)) + 0.5
        around *= 7 / np.linalg.norm(around, axis=1)[:, None]
        half = (n - 1) / 2  # (1 + x)/2 of a uniform point has a beta distribution
        expected = [stats.kstest(x, stats.beta(half, half, -7, 14).cdf).statistic for x in around.T]
        assert uniform_distances(around, Sphere(n)) == pytest.approx(expected)


@pytest.mark.parametrize("noise", [0.0, 0.2, 0.99, 1.0])
def test_blur_beside_scipy(noise):
    """A uniform signal of variance 1/12, with noise of which the given share of the sum consists."""
    rng = np.random.default_rng(STREAM + 5)
    even = rng.permutation(np.linspace(0, 1, 4000))
    share = min(noise, 0.99)
    h = even + math.sqrt(share / (1 - share) / 12) * rng.normal(size=4000)
    assert h.var() == pytest.approx(1 / 12 / (1 - share), rel=0.1)
    assert blur(noise, 5) == pytest.approx(uniform_distances(h[:, None], Box(1))[0])


def test_the_marginal_of_each_part():
    rng = np.random.default_rng(1)
    ball = rng.normal(1, 2, size=(200, 3))
    ball /= np.linalg.norm(ball, axis=1)[:, None]
    flat = rng.uniform(size=(200, 2)) @ rotation(2)
    found = marginal(ball, Sphere(3), 3)
    assert found.uniform.tolist() == uniform_distances(ball, Sphere(3)).tolist()
    assert found.energy == distance_from_uniform(ball, Sphere(3), random_state=STREAM + 3)
    turned = independent_components(flat, slice(None), 3)
    assert uniform_distances(turned, Box(2)).max() < uniform_distances(flat, Box(2)).max()
    in_box = marginal(flat, Box(2), 3)
    assert in_box.uniform.tolist() == uniform_distances(turned, Box(2)).tolist()
    low, high = np.quantile(turned, (0.001, 0.999), axis=0)
    filling = (turned - low) / (high - low)
    assert in_box.energy == distance_from_uniform(filling, Box(2), random_state=STREAM + 3)
    outside = marginal(flat, Euclidean(2), 3)
    assert outside.energy is None
    assert outside.uniform.tolist() == in_box.uniform.tolist()
    both = marginal(np.c_[ball, flat], Product(Sphere(3), Box(2)), 3)
    assert both.uniform.tolist() == [*found.uniform, *in_box.uniform]
    assert both.energy == max(found.energy, in_box.energy)
    assert marginal(flat, Product(Euclidean(1), Euclidean(1)), 3).energy is None
    straight = np.c_[np.linspace(0, 1, 200), rng.permutation(np.linspace(0, 1, 200))]
    for space in (Box(2), Euclidean(2)):  # what is uniform already is not turned
        expected = uniform_distances(straight, space)
        assert marginal(straight, space, 3).uniform.tolist() == expected.tolist()


def circle(rows, noise=0.0):
    angle = 2 * math.pi * np.arange(rows) / rows
    size = 1 + noise * math.sqrt(2) * np.where(np.arange(rows) % 2, 1, -1)
    return size[:, None] * np.c_[np.cos(angle), np.sin(angle)]


def test_an_ellipse_is_mapped_to_the_circle():
    z = circle(200)
    stretch = np.array([[2.0, 1.0], [0.0, 0.3]])
    found, found_pos = as_directions(z @ stretch + 5, 2 * z[::-1] @ stretch - 5)
    assert np.linalg.norm(found, axis=1) == pytest.approx(np.ones(200))
    assert np.linalg.norm(found_pos, axis=1) == pytest.approx(np.ones(200))
    # an affine map that keeps the circle is a rotation or reflection
    turn = np.linalg.lstsq(z, found, rcond=None)[0]
    assert turn @ turn.T == pytest.approx(np.eye(2), abs=1e-6)
    assert found == pytest.approx(z @ turn, abs=1e-6)


def test_points_on_an_ellipse_are_asked_for():
    z = circle(200)
    assert as_directions(z[:, :1], z[:, :1]) is None
    assert as_directions(np.c_[z, np.ones(200)], np.c_[z, np.ones(200)]) is None
    # five weights of the quadric need twenty rows
    assert as_directions(z[::10], z[::10]) is not None
    assert as_directions(z[::11], z[::11]) is None
    # distances from the centre vary by less than .3 of those of shuffled coordinates
    shuffled = np.random.default_rng(0).permuted(circle(2000), axis=0)
    loose = np.linalg.norm(shuffled, axis=1)
    limit = 0.3 * loose.std() / loose.mean()
    for noise, expected in ((0.6 * limit, True), (1.4 * limit, False)):
        h = circle(2000, noise / math.sqrt(2))
        assert (as_directions(h, h) is not None) == expected


@pytest.mark.parametrize(("power", "expected"), [(1.0, True), (1.25, True), (1.35, False)])
def test_directions_are_even(power, expected):
    """Up to a distance of a tenth from uniform."""
    angle = math.pi * np.linspace(-1, 1, 2000)
    angle = math.pi * np.sign(angle) * np.abs(angle / math.pi) ** power
    h = np.c_[np.cos(angle), np.sin(angle)]
    assert (uniform_distances(h, Sphere(2)).max() < 0.1) == expected
    assert (as_directions(h, h) is not None) == expected


def test_a_hyperbola_is_no_ellipse():
    t = np.linspace(-1, 1, 200)
    h = np.r_[np.c_[np.cosh(t), np.sinh(t)], np.c_[-np.cosh(t), np.sinh(t)]]
    assert as_directions(h, h) is None


def test_least_squares_leaves_out_weak_directions():
    one, other = RNG.normal(size=(2, 100))
    target = (one + other)[:, None]
    strong = least_squares(np.c_[one, one + 1e-3 * other], target)
    assert strong.ravel() == pytest.approx([-999, 1000])
    weak = least_squares(np.c_[one, one + 1e-7 * other], target)
    share = (one @ target).item() / (one @ one) / 2
    assert weak.ravel() == pytest.approx([share, share], rel=1e-4)


# --- axes -------------------------------------------------------------------------------------------


def test_components_of_halves_beside_sklearn():
    z, z_pos = pairs(Box(2), Laplace(0.1), 300)
    h, h_pos = (np.c_[part @ rotation(2), np.ones(300)] for part in (z, z_pos))
    found = axes(h, h_pos, 4)
    assert sorted(found) == ["codes", "differences"]
    half = np.random.default_rng(4).permutation(300) % 2 == 0
    for name, values in (("codes", h[:, :2]), ("differences", (h_pos - h)[:, :2])):
        one, other = (
            FastICA(whiten="unit-variance", max_iter=300, random_state=seed)
            .fit(values[rows])
            .transform(values)
            for seed, rows in ((4, half), (5, ~half))
        )
        assert found[name].sure == pytest.approx((mcc(one, other) + mcc(other, one)) / 2)
        same = [(mcc(part, values) + mcc(values, part)) / 2 for part in (one, other)]
        assert found[name].same == pytest.approx(np.mean(same))
    assert axes(h[:, 1:], h_pos[:, 1:], 0) == {}  # a single code that varies


def test_no_components_of_what_does_not_vary():
    h = RNG.normal(size=(100, 2))
    found = axes(h, h, 0)["differences"]
    assert (found.sure, found.same) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("space", "conditional", "learnt", "uniform", "expected"),
    [
        (Box(2), Normal(1.0), False, True, True),
        (Box(2), Normal(1.0), False, False, False),
        (Box(2), Normal(1.0), True, False, True),
        (Euclidean(2), Normal(1.0), False, True, False),
        (Euclidean(2), Normal(1.0), True, True, True),
        (Euclidean(2), Laplace(1.0), False, False, True),
        (Sphere(2), VonMisesFisher(1.0), False, True, False),
        (Sphere(2), VonMisesFisher(1.0), True, False, True),
    ],
)
def test_what_fixes_axes(space, conditional, learnt, uniform, expected):
    assert fixes_axes(space, conditional, learnt, uniform=uniform) is expected
    for other, family, fixed in (
        (Box(1), Laplace(1.0), True),
        (Sphere(2), VonMisesFisher(1.0), learnt),
    ):
        joint = Joint((conditional, 2), (family, other.dim))
        both = fixes_axes(Product(space, other), joint, learnt, uniform=uniform)
        assert both is (expected and fixed)
