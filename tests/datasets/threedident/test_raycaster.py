import sys
from importlib import import_module
from pathlib import Path

import numba
import numpy as np
import pytest

from identica.datasets.threedident import latents, raycaster, render
from identica.datasets.threedident.bvh import DEPTH, blocked, closest
from identica.datasets.threedident.ground import AREA, LIT, OBJECT, SPOT, SUN, foresee
from identica.datasets.threedident.pictures import psnr
from identica.datasets.threedident.raycaster import _ground, _tree
from identica.datasets.threedident.sampling import sample_points
from identica.datasets.threedident.scene import SCENE, Area, Spot, Sun, place
from identica.datasets.threedident.view import Shot, stage
from identica.errors import InputError


@pytest.fixture(scope="module")
def z():
    return np.random.default_rng(0).uniform(-1, 1, (12, 10))


def test_images_are_those_of_cycles(real):
    with np.load(real("3dident_cycles", "renders.npz")) as cycles:
        z, images = cycles["raw_latents"], cycles["images"]
    # What remains is the noise of Cycles itself: its own long exposures score 47 to 50.
    default = psnr(render(z, 128), images)
    assert default.mean() > 44
    assert default.min() > 40
    assert psnr(render(z[:8], 128, samples=64), images[:8]).mean() > 47


def test_few_samples_come_close_to_many(z):
    many = render(z, 48, samples=256)
    assert psnr(render(z, 48, samples=4), many).mean() > 40
    assert psnr(render(z, 48), many).mean() > 43
    assert psnr(render(z, 48, samples=32), many).mean() > 48


def test_the_same_latents_give_the_same_image_in_any_batch(z):
    images = render(z)
    assert images.shape == (12, 64, 64, 3)
    assert images.dtype == np.uint8
    np.testing.assert_array_equal(images, render(z))
    np.testing.assert_array_equal(images[::-1], render(z[::-1]))
    for k in range(3):
        np.testing.assert_array_equal(images[k], render(z[k : k + 1])[0])
    before = numba.get_num_threads()
    try:
        numba.set_num_threads(1)
        np.testing.assert_array_equal(images, render(z))
    finally:
        numba.set_num_threads(before)


@pytest.mark.parametrize(("size", "samples"), [(16, 4), (33, 20), (40, 100)])
def test_any_size_is_the_same_picture(z, size, samples):
    images = render(z[:3], size, samples)
    assert images.shape == (3, size, size, 3)
    large = render(z[:3], 3 * size).reshape(3, size, 3, size, 3, 3).mean(axis=(2, 4))
    # The filter of the small image is three times as wide, in the world.
    assert psnr(images, large).min() > 25


@pytest.mark.parametrize(("size", "samples"), [(1, 1), (2, 3), (5, 1000)])
def test_even_the_smallest_images_are_drawn(z, size, samples):
    images = render(z[:2], size, samples)
    assert images.shape == (2, size, size, 3)
    assert images.max(axis=(1, 2, 3)).min() > 50


def test_no_images_for_no_latents():
    assert render(np.empty((0, 10))).shape == (0, 64, 64, 3)


def test_each_factor_moves_what_it_names(z):
    still = render(latents())[0].astype(int)
    right = render(latents(y=0.6))[0].astype(int)
    # The camera looks along -x: y is to the right, and the object is the only pure red.
    red = lambda image: np.argwhere((image[..., 0] > 60) & (image[..., 1] < 25))  # noqa: E731
    assert red(right)[:, 1].mean() - red(still)[:, 1].mean() > 5
    assert red(render(latents(z=0.6))[0].astype(int))[:, 0].mean() < red(still)[:, 0].mean() - 3
    green = render(latents(ground_hue=1))[0].astype(int)
    changed = np.abs(green - still).max(axis=2) > 3
    assert changed[:8].all()
    rows, columns = red(still).T
    assert not changed[rows[3:-3], columns[3:-3]].all()


def test_a_scene_without_lights_is_black_and_lights_add_up(z, monkeypatch):
    none = {"sun": Sun(strength=0.0), "area": Area(radiance=0.0), "spot": Spot(intensity=0.0)}

    def linear(**lights):
        monkeypatch.setattr(raycaster, "SCENE", SCENE._replace(**lights))
        image = render(z[:3], 32, 64) / 255
        return np.where(image < 0.04045, image / 12.92, ((image + 0.055) / 1.055) ** 2.4)

    assert linear(**none).max() == 0
    parts = [linear(**{k: v for k, v in none.items() if k != kept}) for kept in none]
    assert min(part.max() for part in parts) > 0.05
    total = linear()
    whole = total < 0.95  # bytes end at 1
    # Each has its own blocks with more rays, so noise remains at edges.
    gaps = np.abs(sum(parts) - total)[whole]
    assert np.quantile(gaps, 0.9) < 0.004
    assert gaps.max() < 0.05


def test_what_is_foreseen_covers_what_happens(z):
    size = 32
    tree, ground, scene_stage = _tree(), _ground(SCENE, size, 1), stage(SCENE)
    events = np.empty((size + 2, size + 2), np.uint8)
    stack = np.empty(DEPTH, np.int32)
    rng = np.random.default_rng(0)
    points = sample_points(8).reshape(-1, 8).astype(float)
    frames = place(z)
    happened = dict.fromkeys((SUN, AREA, SPOT, OBJECT, LIT), 0)
    for i in range(len(z)):
        turn = frames.rotation[i]
        shot = Shot(*(tuple(map(tuple, v[i])) if v.ndim == 3 else tuple(v[i]) for v in frames))
        foresee(scene_stage, shot, tree.balls, ground.points, size, 1, events)
        eye = np.array(scene_stage.eye)
        for _ in range(150):
            row, column = rng.integers(0, size + 2, 2)
            s = points[rng.integers(len(points))]
            # A ray through a random place of the block, without the code under test.
            x = 2 * (column + 0.5 + s[0] - 1) / size - 1
            y = 1 - 2 * (row + 0.5 + s[1] - 1) / size
            half = np.tan(1.2405 / 2)
            d = np.array([-1, 0, -1]) / 2**0.5 + half * (
                x * np.array([0, 1, 0]) + y * np.array([-1, 0, 1]) / 2**0.5
            )
            d /= np.linalg.norm(d)
            p = eye + d * (SCENE.ground - eye[2]) / d[2]
            sun = np.array([s[2] * np.sin(0.09967), s[3] * np.sin(0.09967), 1])
            lamp = np.array([s[4], s[5], 7.0]) - p
            spot = frames.spot[i] - p
            lit = -spot @ frames.aim[i] / np.linalg.norm(spot) > np.cos(np.deg2rad(17.5))

            def local(a, turn=turn, i=i, point=False):
                return tuple((a - frames.position[i] if point else a) @ turn)

            def hidden(to):
                far = np.linalg.norm(to)
                return blocked(tree, stack, local(p, point=True), local(to / far), far, -1)  # noqa: B023

            truth = {
                SUN: hidden(1e3 * sun / np.linalg.norm(sun)),
                AREA: hidden(lamp),
                SPOT: lit and hidden(spot),
                OBJECT: closest(tree, stack, local(eye, point=True), local(d), 1e3)[1] >= 0,
                LIT: lit,
            }
            for event, happens in truth.items():
                happened[event] += happens
                assert events[row, column] & event or not happens
    assert min(happened.values()) > 20


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"size": 0}, "size"),
        ({"size": 64.0}, "size"),
        ({"samples": 0}, "samples"),
        ({"raw_latents": np.zeros((3, 4))}, "raw_latents"),
        ({"raw_latents": np.full((3, 10), 1.5)}, "raw_latents"),
    ],
)
def test_bad_input_is_named(arguments, message):
    with pytest.raises(InputError, match=message):
        render(**{"raw_latents": np.zeros((1, 10)), **arguments})


@pytest.fixture
def benchmark(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[3])
    return import_module("benchmarks.threedident")


@pytest.mark.parametrize("found", [[], ["Cycles"], ["Cycles", "our scene in Blender"]])
def test_the_benchmark_writes_its_table_only_where_nothing_is_missing(
    tmp_path, monkeypatch, capsys, benchmark, found
):
    others = {name: np.zeros((1, 128, 128, 3), np.uint8) for name in found}
    latents = np.zeros((1, 10)) if found else None
    results = tmp_path / "raycaster.md"
    results.write_text("of a machine that had everything")
    monkeypatch.setattr(benchmark, "RESULTS", results)
    monkeypatch.setattr(benchmark, "SAMPLES", (4,))
    monkeypatch.setattr(benchmark, "matmul_rate", lambda: 1e9)
    monkeypatch.setattr(benchmark, "seconds", lambda work, repeat: 1.0)
    monkeypatch.setattr(benchmark, "references", lambda: (latents, others))
    monkeypatch.setattr(sys, "argv", ["threedident"])
    benchmark.main()
    told = capsys.readouterr()
    assert "| samples | images per second |" in told.out
    assert all(f"PSNR from {name}" in told.out for name in found)
    if len(found) == 2:
        assert results.read_text() in told.out
        assert not told.err
    else:
        assert results.read_text() == "of a machine that had everything"
        assert "is left as it is: there is no PSNR from" in told.err


def test_the_benchmark_does_without_a_blender_that_does_not_load(
    tmp_path, monkeypatch, capsys, benchmark
):
    path = tmp_path / "renders.npz"
    np.savez(path, raw_latents=np.zeros((1, 10)), images=np.zeros((1, 128, 128, 3), np.uint8))
    monkeypatch.setattr(benchmark, "CYCLES", path)
    (tmp_path / "bpy.py").write_text("raise ImportError('libXrender.so.1: no such file')")
    monkeypatch.delitem(sys.modules, "bpy", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    assert list(benchmark.references()[1]) == ["Cycles"]
    assert "libXrender.so.1" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"size": 10**9}, r"size must be .* at most 4096, got 1000000000"),
        ({"size": 0}, "size must be a whole number of at least 1"),
        ({"size": -3}, "size must be"),
        ({"size": 2.5}, "size must be"),
        ({"size": True}, "size must be"),
        ({"samples": 10**9}, r"samples must be .* at most 4096"),
        ({"samples": 0}, "samples must be"),
        ({"samples": np.nan}, "samples must be"),
        ({"size": 2000, "samples": 4096}, "size must be at most 256 with 4096 samples"),
        ({"raw_latents": np.full((2, 10), np.nan)}, "raw_latents must be finite"),
        ({"raw_latents": np.full((2, 10), 1.5)}, r"raw_latents must lie in \[-1, 1\]"),
        ({"raw_latents": np.full((2, 10), 1e306)}, r"raw_latents must lie in \[-1, 1\]"),
        ({"raw_latents": np.zeros((2, 9))}, "raw_latents must have shape N×10"),
        ({"raw_latents": np.zeros(10)}, "raw_latents must have shape N×10"),
        ({"raw_latents": np.zeros((2, 10, 1))}, "raw_latents must have shape"),
        ({"raw_latents": np.zeros((2, 10), complex)}, "raw_latents must be numeric"),
        ({"raw_latents": np.zeros((2, 10), "m8[s]")}, "raw_latents must be numeric"),
        ({"raw_latents": np.zeros((2, 10), object)}, "raw_latents must be numeric"),
        ({"raw_latents": [["0"] * 10]}, "raw_latents must be numeric"),
        ({"raw_latents": None}, "raw_latents must be numeric"),
    ],
)
def test_arguments_that_cannot_be_used(arguments, match):
    with pytest.raises(InputError, match=match):
        render(**{"raw_latents": np.zeros((1, 10)), **arguments})


def test_no_latents_give_no_images():
    assert render(np.zeros((0, 10)), size=16).shape == (0, 16, 16, 3)
