import colorsys

import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation

from identica.datasets.threedident import FACTORS, latents, place
from identica.errors import InputError


@pytest.fixture(scope="module")
def z():
    return np.random.default_rng(0).uniform(-1, 1, (20, 10))


def test_hues_are_those_of_colorsys(z):
    frames = place(z)
    pairs = [(7, 1.0, frames.object_rgb), (8, 0.8, frames.spot_rgb), (9, 0.6, frames.ground_rgb)]
    for column, saturation, found in pairs:
        expected = [colorsys.hsv_to_rgb((r / 4) % 1, saturation, 1) for r in z[:, column]]
        np.testing.assert_allclose(found, expected, atol=1e-12)


def test_rotations_are_euler_angles_about_fixed_axes(z):
    expected = Rotation.from_euler("xyz", z[:, 3:6] * np.pi / 2).as_matrix()
    np.testing.assert_allclose(place(z).rotation, expected, atol=1e-12)


def test_the_spotlight_stays_on_its_arc_and_aims_at_the_object(z):
    frames = place(z)
    np.testing.assert_allclose(frames.position[:, 2], 3 * z[:, 2] + 2.22106)
    np.testing.assert_allclose(np.hypot(*frames.spot[:, :2].T), 4)
    np.testing.assert_allclose(np.arctan2(*frames.spot[:, :2].T), np.pi / 2 * z[:, 6])
    np.testing.assert_allclose(frames.spot[:, 2], 10.44212)
    gap = np.cross(frames.position - frames.spot, frames.aim)
    np.testing.assert_allclose(gap, 0, atol=1e-12)


def test_latents_names_the_columns():
    for k, name in enumerate(FACTORS):
        assert np.argwhere(latents(**{name: 0.5})).tolist() == [[0, k]]
    assert latents(x=[0.1, 0.2, 0.3], object_hue=1).shape == (3, 10)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (np.zeros((2, 9)), "N×10"),
        (np.zeros(10), "N×10"),
        (np.zeros((2, 10, 1)), "N×d"),
        (np.full((2, 10), np.nan), "finite"),
        (np.full((2, 10), np.inf), "finite"),
        ([[0] * 9 + [1.001]], r"\[-1, 1\].*1 of 1"),
        ([["a"] * 10], "numeric"),
    ],
)
def test_latents_that_cannot_be_drawn(bad, message):
    with pytest.raises(InputError, match=message):
        place(bad)


def test_factors_that_cannot_be_used():
    with pytest.raises(InputError, match="got colour"):
        latents(colour=0.5)
    with pytest.raises(InputError, match="factors"):
        latents(x=[0, 0.1], y=[0, 0.1, 0.2])
    with pytest.raises(InputError, match="factors"):
        latents(x="left")
    with pytest.raises(InputError, match="x must be an array of numbers"):
        latents(x=torch.empty(3, device="meta"))
    with pytest.raises(InputError, match=r"\[-1, 1\]"):
        latents(x=2)


def test_factors_of_other_kinds_are_refused():
    for values in (np.array([1 + 1j]), np.zeros(1, "m8[s]"), np.zeros(1, object), ["0.5"]):
        with pytest.raises(InputError, match="factors must be numbers"):
            latents(x=values)
