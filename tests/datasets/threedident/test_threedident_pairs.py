import numpy as np
import pytest
import torch
from scipy.spatial import cKDTree

from identica import (
    Box,
    GenerativeProcess,
    InputError,
    InvertibleMLP,
    Joint,
    Laplace,
    Normal,
    Product,
    Sphere,
    Uniform,
    VonMisesFisher,
)
from identica.datasets.threedident import latents, render
from identica.datasets.threedident.pairs import (
    Renderer,
    as_images,
    augmented,
    labelled,
    nearest,
    neighbours,
    rendered,
)
from identica.datasets.threedident.storage import ImageSet, build

BOX = Box(10, low=-1.0, high=1.0)


def process(conditional, space=BOX, size=8):
    return GenerativeProcess(space, Uniform(), conditional, Renderer(size, samples=4))


def source(seed=0):
    return torch.Generator().manual_seed(seed)


def paint(z, size):
    return np.repeat(((z[:, :3] + 1) * 127).astype(np.uint8), size**2, axis=0).reshape(
        -1, size, size, 3
    )


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """3,000 images that cost nothing: of the colour of their first three latents."""
    z = np.random.default_rng(0).uniform(-1, 1, (3000, 10))
    return build(tmp_path_factory.mktemp("many"), z, paint, size=4)


# any space of ten dimensions within the cube, with the conditionals of the paper
SPACES = [
    (BOX, Normal(0.2)),
    (BOX, Laplace(0.1)),
    (Sphere(10), VonMisesFisher(20.0)),
    (Sphere(10), Normal(0.1)),
    (
        Product(Box(3, low=-1.0, high=1.0), *[Sphere(2)] * 2, Sphere(3)),
        Joint(
            (Normal(0.2), 3),
            (VonMisesFisher(5.0), 2),
            (VonMisesFisher(5.0), 2),
            (VonMisesFisher(9.0), 3),
        ),
    ),
]


@pytest.mark.parametrize(("space", "conditional"), SPACES, ids=lambda part: repr(part)[:40])
def test_positives_are_rendered_from_the_conditional(space, conditional):
    pairs = process(conditional, space).sample(3, generator=0)
    assert pairs.x.dtype == torch.uint8
    assert space.contains(pairs.z_pos).all()
    for z, x in ((pairs.z, pairs.x), (pairs.z_pos, pairs.x_pos)):
        assert x.shape == (3, 3, 8, 8)
        again = render(z.double().numpy().clip(-1, 1), 8, 4)
        np.testing.assert_array_equal(x.permute(0, 2, 3, 1).numpy(), again)


def test_a_renderer_of_few_factors(tmp_path):
    few = Renderer(8, samples=4, factors=["object_hue", "y"])
    truth = GenerativeProcess(Box(2, low=-1.0, high=1.0), Uniform(), Normal(0.2), few)
    pairs = truth.sample(3, generator=0)
    hue, y = pairs.z_pos.double().numpy().T
    wanted = render(latents(object_hue=hue, y=y), 8, 4)
    np.testing.assert_array_equal(pairs.x_pos.permute(0, 2, 3, 1).numpy(), wanted)

    for wrong in (["x", "size"], ["x", "x"]):
        with pytest.raises(InputError, match="factors must be"):
            Renderer(8, factors=wrong)
    with pytest.raises(InputError, match="all ten factors"):
        rendered(tmp_path, truth, pairs.z)


def test_a_renderer_knows_its_limits():
    with pytest.raises(InputError, match="10 columns"):
        Renderer(8)(torch.zeros(2, 9))
    with pytest.raises(InputError, match=r"\[-1, 1\]"):
        Renderer(8)(torch.full((1, 10), 1.01))
    assert Renderer(8)(torch.full((1, 10), 1 + 1e-7)).shape == (1, 3, 8, 8)
    with pytest.raises(InputError, match="train an encoder"):
        Renderer(8).inverse(torch.zeros(1))


def test_nearest_is_what_brute_force_finds():
    rng = np.random.default_rng(0)
    points, z = rng.normal(size=(50, 3)), rng.normal(size=(400, 3))
    z_pos = z + 0.2 * rng.normal(size=(400, 3))
    rows, rows_pos = nearest(cKDTree(points), z, z_pos)
    same = 0
    for a, b, i, j in zip(z, z_pos, rows, rows_pos, strict=True):
        first = np.linalg.norm(points - a, axis=1).argsort()
        second = np.linalg.norm(points - b, axis=1).argsort()
        assert i == first[0]
        same += second[0] == first[0]
        assert j == (second[1] if second[0] == first[0] else second[0])
    assert same > 50


def test_neighbours_are_nearer_than_chance_and_never_the_same(many):
    pairs = neighbours(process(Normal(0.1)), many)(500, generator=source())
    gap = (pairs.z - pairs.z_pos).norm(dim=1)
    assert gap.min() > 0
    shuffled = (pairs.z - pairs.z_pos.roll(1, 0)).norm(dim=1)
    assert gap.mean() < 0.6 * shuffled.mean()
    # images belong to their latents, which are those of the data set
    assert np.isin(pairs.z_pos[:, 0].numpy(), many.raw_latents[:, 0].astype(np.float32)).all()
    wanted = paint(pairs.z_pos.double().numpy(), 4)
    gap = pairs.x_pos.permute(0, 2, 3, 1).numpy().astype(int) - wanted
    assert np.abs(gap).max() <= 1  # latents in single precision may round otherwise


def test_neighbours_of_a_sphere_too(many):
    pairs = neighbours(process(VonMisesFisher(50.0), Sphere(10)), many)(50, generator=source())
    assert pairs.x.shape == (50, 3, 4, 4)
    other = GenerativeProcess(Box(2), Uniform(), Normal(0.1), InvertibleMLP(2, seed=0, draws=2))
    with pytest.raises(InputError, match="10 latents"):
        neighbours(other, many)


def test_neighbours_need_two_images(tmp_path):
    one = build(tmp_path, np.zeros((1, 10)), paint, size=4)
    with pytest.raises(InputError, match="at least 2"):
        neighbours(process(Normal(0.5)), one)


def test_images_of_latents_are_rendered_once(tmp_path, monkeypatch):
    truth = process(Laplace(0.1))
    z = truth.latents(12, generator=3, dtype=torch.float64)
    told = []
    found = rendered(tmp_path, truth, z, tick=lambda *now: told.append(now))
    assert told[-1] == (12, 12)
    np.testing.assert_array_equal(found.raw_latents, z.numpy())
    np.testing.assert_array_equal(found.images(range(12)), render(z.numpy(), 8, 4))
    monkeypatch.setattr(Renderer, "draw", lambda *_: pytest.fail("nothing is rendered again"))
    assert len(rendered(tmp_path, truth, z)) == 12


def test_a_cache_needs_a_renderer(tmp_path):
    other = GenerativeProcess(BOX, Uniform(), Normal(0.1), InvertibleMLP(10, seed=0, draws=2))
    with pytest.raises(InputError, match="Renderer"):
        rendered(tmp_path, other, torch.zeros(2, 10))


def test_what_is_no_data_set_and_no_factor(tmp_path):
    for make in (labelled, augmented, lambda data: neighbours(process(Laplace(0.1)), data)):
        with pytest.raises(InputError, match="data must be an ImageSet, got 3"):
            make(3)
    with pytest.raises(InputError, match="factors must be names of factors, got 3"):
        Renderer(16, factors=3)
    with pytest.raises(InputError, match="folder must be a path, got 3"):
        ImageSet(3)
    for name in ("packed", "settings", "draw", "tick"):
        given = {"draw": render, name: 3}
        with pytest.raises(InputError, match=f"{name} must be .*, got 3"):
            build(tmp_path / "new", latents(x=[0, 1]), size=8, **given)
    assert not (tmp_path / "new").exists()


def test_labelled_images_and_views_of_one_image(many):
    z, x = labelled(many)(64, generator=source())
    assert np.abs(x[:, :, 0, 0].numpy() / 127 - 1 - z[:, :3].numpy()).max() < 0.01
    pairs = augmented(many)(64, generator=source())
    assert torch.equal(pairs.z, pairs.z_pos)
    assert pairs.x.is_floating_point()
    assert not torch.equal(pairs.x, pairs.x_pos)
    again = augmented(many)(64, generator=source())
    assert torch.equal(pairs.x_pos, again.x_pos)


def test_images_are_not_copied_and_ready_for_convolutions(many):
    images = many.images(range(3))
    x = as_images(images)
    assert x.data_ptr() == images.ctypes.data
    assert x.is_contiguous(memory_format=torch.channels_last)


def test_a_renderer_of_absurd_size_is_refused():
    with pytest.raises(InputError, match=r"size must be .* at most 4096"):
        Renderer(size=10**9)
    with pytest.raises(InputError, match=r"samples must be .* at most 4096"):
        Renderer(samples=10**9)
