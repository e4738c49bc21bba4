from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.signal.windows import blackmanharris

from identica.datasets.threedident.film import develop, filter_taps, srgb_bytes


@pytest.mark.parametrize("cells", [1, 2, 4])
def test_taps_integrate_the_window(cells):
    taps = filter_taps(cells).astype(float)
    window = blackmanharris(3001, sym=True)
    x = np.linspace(-1.5, 1.5, 3001)

    def integral(a, b):
        return quad(lambda t: np.interp(t, x, window), a, b, limit=200)[0]

    edges = np.linspace(-1.5, 1.5, 3 * cells + 1)
    expected = np.array([integral(a, b) for a, b in pairwise(edges)])
    np.testing.assert_allclose(taps, expected / expected.sum(), atol=1e-5)


def test_developing_is_a_filter_and_srgb():
    rng = np.random.default_rng(0)
    size, cells = 6, 2
    light = rng.uniform(0, 1.2, (16, 16, 3)).astype(np.float32)
    image = np.empty((size, size, 3), np.uint8)
    taps = filter_taps(cells)
    develop(light, taps, srgb_bytes(), image)
    weights = np.outer(taps, taps)[..., None].astype(float)
    for y in range(size):
        for x in range(size):
            mean = (
                (weights * light[2 * y : 2 * y + 6, 2 * x : 2 * x + 6]).sum(axis=(0, 1)).clip(0, 1)
            )
            exact = 255 * np.where(
                mean < 0.0031308, 12.92 * mean, 1.055 * mean ** (1 / 2.4) - 0.055
            )
            np.testing.assert_allclose(image[y, x], exact, atol=0.55)


def test_light_beyond_white_stays_white():
    image = np.empty((2, 2, 3), np.uint8)
    develop(np.full((4, 4, 3), 7.0, np.float32), filter_taps(1), srgb_bytes(), image)
    assert (image == 255).all()
