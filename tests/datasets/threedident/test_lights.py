import numpy as np
import pytest
from scipy.stats.qmc import discrepancy

from identica.datasets.threedident.lights import area_sample, spot_mean, spot_sample, sun_sample
from identica.datasets.threedident.sampling import TILE, sample_points
from identica.datasets.threedident.scene import Area, Spot, Sun


@pytest.fixture(scope="module")
def points():
    return sample_points(8).reshape(-1, 8).astype(float)


def test_points_cover_disc_and_square_evenly():
    points = sample_points(4).astype(float)
    assert points.shape == (TILE, TILE, 4, 8)
    discs = points[..., [2, 3, 6, 7]].reshape(-1, 2, 2)
    radius2 = (discs**2).sum(axis=-1)
    assert radius2.max() <= 1
    np.testing.assert_allclose(radius2.mean(axis=0), 0.5, atol=0.01)
    np.testing.assert_allclose(points.mean(axis=(0, 1, 2)), 0, atol=0.01)


def test_small_blocks_of_cells_cover_the_lights_better_than_chance():
    square = sample_points(1)[:, :, 0, 4:6].astype(float) + 0.5
    blocks = square.reshape(4, 4, 4, 4, 2).transpose(0, 2, 1, 3, 4).reshape(16, 16, 2)
    chance = np.random.default_rng(0).random((16, 16, 2))
    ours, theirs = (np.mean([discrepancy(b) for b in some]) for some in (blocks, chance))
    assert ours < theirs / 4


def test_a_surface_that_faces_the_sun_gets_its_strength(points):
    sun = Sun()
    samples = [sun_sample(sun, x, y) for x, y in points[:, 2:4]]
    assert np.mean([power * d[2] for d, power in samples]) == pytest.approx(0.5)
    # Uniform over the disc as seen from below: the cosine of the rim is that of half the angle.
    assert min(d[2] for d, _ in samples) > np.cos(0.19934 / 2) - 1e-12
    np.testing.assert_allclose([np.linalg.norm(d) for d, _ in samples], 1)


def test_light_under_a_square_lamp_is_the_closed_form(points):
    """Four times the form factor of a parallel rectangle over one of its corners."""
    area = Area()
    for height in (0.5, 2.0, 11.0):
        samples = [area_sample(area, (0.0, 0.0, 7 - height), x, y) for x, y in points[:, 4:6]]
        found = np.mean([power * d[2] for d, _, power in samples])
        a = 0.5 / height
        root = np.sqrt(1 + a * a)
        factor = 4 * (2 * a / root * np.arctan(a / root)) / (2 * np.pi)
        assert found == pytest.approx(12.5 * np.pi * factor, rel=2e-3)


def test_the_area_light_does_not_shine_upwards():
    assert area_sample(Area(), (0.3, 0.1, 7.5), 0.0, 0.0)[2] == 0


def test_the_mean_of_the_spotlight_is_that_of_its_samples(points):
    spot = Spot()
    place, aim = (1.0, 3.0, 10.0), (0.0, 0.0, -1.0)
    seen = []
    for x in np.linspace(-4, 8, 25):
        p = (float(x), 3.0, -4.4)
        d, far, power = spot_mean(spot, place, aim, p)
        samples = [spot_sample(spot, place, aim, p, *uv) for uv in points[:, 6:8]]
        assert np.mean([s[2] for s in samples]) == pytest.approx(power, abs=0.004 * 238.7 / far**2)
        np.testing.assert_allclose(np.add(p, np.multiply(far, d)), place)
        for direction, distance, _ in samples[:5]:
            on_disc = np.add(p, np.multiply(distance, direction)) - place
            assert abs(on_disc @ d) < 1e-9
            assert np.linalg.norm(on_disc) <= 0.5
        seen.append(power * far**2 / spot.intensity)
    # 17.5° to each side of the axis
    assert max(seen) == pytest.approx(1)
    assert min(seen) == 0
