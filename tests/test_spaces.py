import math

import pytest
import torch
from scipy import stats

from helpers.defaults import numbers_of
from helpers.laws import SPACES
from identica import Box, Euclidean, InputError, Product, Sphere

BOUNDED = [s for s in SPACES if math.isfinite(s.log_volume)]


@pytest.mark.parametrize("space", BOUNDED, ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_uniform_draws_lie_in_the_space(space, dtype):
    z = space.sample(500, generator=0, dtype=dtype)
    assert z.shape == (500, space.dim)
    assert z.dtype == dtype
    assert space.contains(z).all()
    assert torch.equal(z, space.sample(500, generator=0, dtype=dtype))
    assert not torch.equal(z, space.sample(500, generator=1, dtype=dtype))


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_projection_is_the_nearest_point(space):
    outside = 3 * torch.randn(200, space.dim, generator=torch.Generator().manual_seed(0)).double()
    near = space.project(outside)
    assert space.contains(near).all()
    assert torch.allclose(space.project(near), near)
    if math.isfinite(space.log_volume):
        others = space.sample(2000, generator=1, dtype=torch.float64)
        nearest_other = torch.cdist(outside, others).amin(1)
        assert ((outside - near).norm(dim=1) <= nearest_other + 1e-9).all()


def test_uniform_on_the_sphere_has_the_known_law_of_a_coordinate():
    n = 10
    x = Sphere(n, radius=2.0).sample(20_000, generator=3)[:, 4] / 2.0
    # (1 + x)/2 of a coordinate of S^{n−1} is Beta((n−1)/2, (n−1)/2)
    assert stats.kstest((1 + x.numpy()) / 2, stats.beta((n - 1) / 2, (n - 1) / 2).cdf).pvalue > 1e-3


def test_uniform_on_the_box_fills_its_bounds():
    x = Box(2, low=(0.0, -3.0), high=(1.0, 7.0)).sample(20_000, generator=0).numpy()
    assert stats.kstest(x[:, 0], stats.uniform(0, 1).cdf).pvalue > 1e-3
    assert stats.kstest(x[:, 1], stats.uniform(-3, 10).cdf).pvalue > 1e-3


def test_log_volume():
    assert Sphere(2, radius=3.0).log_volume == pytest.approx(math.log(2 * math.pi * 3))
    assert Sphere(3, radius=3.0).log_volume == pytest.approx(math.log(4 * math.pi * 9))
    assert Box(3, -2.0, 0.5).log_volume == pytest.approx(3 * math.log(2.5))
    assert Euclidean(2).log_volume == math.inf
    parts = Product(Sphere(3), Box(2, 0.0, 3.0))
    assert parts.log_volume == pytest.approx(math.log(4 * math.pi * 9))


def test_points_off_the_space_are_not_members():
    assert not Sphere(3, radius=2.0).contains(torch.tensor([1.0, 0.0, 0.0]))
    assert not Box(2).contains(torch.tensor([0.5, 1.01]))
    assert not Product(Sphere(2), Box(1)).contains(torch.tensor([1.0, 0.0, 2.0]))


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_the_origin_is_a_member(space):
    assert space.contains(space.origin)


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: Sphere(1), "dim"),
        (lambda: Sphere(3, radius=0.0), "radius"),
        (lambda: Sphere(3, radius=math.nan), "radius"),
        (lambda: Sphere(2.5), "dim"),
        (lambda: Box(2, low=1.0, high=1.0), "low"),
        (lambda: Box(2, low=(0.0, 0.0, 0.0)), "low"),
        (lambda: Box(2, high=math.inf), "high"),
        (lambda: Euclidean(0), "dim"),
        (lambda: Product(), "spaces"),
        (lambda: Product(3), "spaces"),
        (lambda: Euclidean(2).sample(3, generator=0), "uniform"),
        (lambda: Box(2).sample(3, generator=-1), "generator"),
        (lambda: Box(2).check("z", torch.zeros(4, 3)), "z must have 2 columns"),
        (lambda: Box(2).check("z", torch.tensor([[0.0, math.nan]])), "z must be finite"),
        (lambda: Box(2).check("z", torch.tensor([[0.0, 2.0]])), "z must lie in"),
    ],
)
def test_bad_input_is_named(make, named):
    with pytest.raises(InputError, match=named):
        make()


@pytest.mark.parametrize("size", [1e-300, 1e-6, 1.0, 1e6, 1e300])
def test_membership_is_relative_to_the_size_of_the_space(size):
    def points(*rows):
        return size * torch.tensor(rows, dtype=torch.float64)

    sphere = points([1.0, 0.0, 0.0], [0.6, 0.0, 0.80005], [0.0, 0.0, 0.0], [0.999, 0.0, 0.0])
    assert Sphere(3, size).contains(sphere).tolist() == [True, True, False, False]
    assert Sphere(3, size).distance(sphere[3]).item() == pytest.approx(1e-3 * size)
    box = points([0.5, 1.0], [-0.00005, 0.5], [-0.001, 0.5], [0.5, 1.001])
    assert Box(2, 0.0, size).contains(box).tolist() == [True, True, False, False]
    parts = Product(Sphere(2, size), Box(1, 0.0, 1e9))
    assert not parts.contains(
        points([0.9, 0.0, 0.0])
    )  # what a wide part allows is not for the other


def test_a_box_far_from_the_origin_or_with_unequal_sides_keeps_its_walls():
    far = Box(1, 1000.0, 1000.01)
    assert far.contains(far.sample(100, generator=0)).all()
    assert not far.contains(torch.tensor([1000.02]))
    flat = Box(2, 0.0, (1.0, 1e6))
    assert flat.contains(torch.tensor([[1.0, 1e6], [1.01, 1.0]])).tolist() == [True, False]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("space", [Sphere(3), Box(3, -2.0, 0.5)], ids=str)
def test_rounding_to_half_precision_leaves_no_draw_outside(space, dtype):
    assert space.contains(space.sample(500, generator=0, dtype=dtype)).all()


def test_projection_on_the_sphere_at_any_scale():
    z = torch.tensor([[3e300, 4e300], [3e-300, 4e-300], [3e-14, 4e-14]], dtype=torch.float64)
    expected = torch.tensor([0.6, 0.8], dtype=torch.float64)
    assert torch.allclose(Sphere(2).project(z), expected)
    assert torch.allclose(Sphere(2, 1e-300).project(z) / 1e-300, expected)
    assert Sphere(2).contains(Sphere(2).project(torch.zeros(2)))


@pytest.mark.parametrize(
    "make",
    [
        lambda: Box(1, -1e308, 1e308),
        lambda: Box(1, 0.0, 1e300).sample(2, generator=0),
        lambda: Box(1, 1e9, 1e9 + 1).sample(2, generator=0),
        lambda: Sphere(2, 1e300).sample(2, generator=0),
        lambda: Sphere(2, 1e-300).sample(2, generator=0),
    ],
)
def test_spaces_beyond_the_range_of_floats_are_refused(make):
    with pytest.raises(InputError, match=r"finite width|exceeds"):
        make()


@pytest.mark.parametrize("n", [2, 1000])
@pytest.mark.parametrize("radius", [1e-300, 1e300])
def test_volumes_of_extreme_spheres(n, radius):
    # of the unit ball times n, and the radius to the power of the dimension
    ball = n / 2 * math.log(math.pi) - math.lgamma(n / 2 + 1)
    expected = ball + math.log(n) + (n - 1) * math.log(radius)
    assert Sphere(n, radius).log_volume == pytest.approx(expected)


def test_the_defaults_are_the_unit_sphere_and_box():
    assert numbers_of(Sphere) == {"radius": 1.0}
    assert numbers_of(Box) == {"low": 0.0, "high": 1.0}
    for kind in (Sphere, Box, Euclidean, Product):
        assert numbers_of(kind.contains) == {"tolerance": 1e-4}


def test_distances_are_to_the_nearest_wall_or_surface():
    box = Box(2, low=(0.0, -1.0), high=1.0)
    z = torch.tensor([[0.5, -0.5], [1.5, -1.25], [2.0, -4.0]], dtype=torch.float64)
    assert box.distance(z).tolist() == [0.0, 0.5, 3.0]
    assert Sphere(2, radius=2.0).distance(torch.tensor([[3.0, 4.0], [0.0, 0.5]])).tolist() == (
        pytest.approx([3.0, 1.5])
    )
    both = Product(Box(1), Sphere(2), Euclidean(1))
    assert both.distance(torch.tensor([1.25, 0.0, 3.0, 1e9])).item() == pytest.approx(2.0)
    assert Euclidean(2).distance(z).tolist() == [0.0, 0.0, 0.0]
    assert Euclidean(2).contains(torch.tensor([[1e30, 0.0], [math.inf, 0.0]])).tolist() == [
        *(True, False)
    ]


def test_the_smallest_spaces_and_draws():
    for space in (Box(1), Sphere(2), Product(Box(1), Sphere(2))):
        assert space.sample(0, generator=0).shape == (0, space.dim)
        with pytest.raises(InputError, match="size must be a whole number of at least 0"):
            space.sample(-1, generator=0)
    assert Euclidean(1).origin.tolist() == [0.0]
    assert Sphere(2, radius=3.0).origin.tolist() == [3.0, 0.0]


def test_points_outside_are_counted():
    z = torch.tensor([[0.5, 0.5], [2.0, 0.5], [0.5, -1.0]])
    with pytest.raises(InputError, match="2 of its points do not"):
        Box(2).check("z", z)
