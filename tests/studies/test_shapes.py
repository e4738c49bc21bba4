"""Marginals by name: the draws of a seed, and which coordinates are independent."""

import numpy as np
import pytest
import torch

from identica import Box, Euclidean, Sphere
from identica.studies.shapes import SHAPES, Shape

# the last of 40 draws with seed 3
ON_REAL = {
    "normal": [1.9962, -0.2039, -0.7219, 1.6073, 0.3807],
    "laplace": [-1.4634, -0.7512, -0.9622, -0.3194, -3.6367],
    "bimodal": [1.4324, 2.0716, 0.9404, -1.0128, 1.1763],
    "correlated": [2.3955, 1.5021, 0.4328, 1.6804, 1.5026],
    "heavy": [2.2727, -0.2597, -0.7915, 1.3309, 0.3747],
    "ring": [-1.6578, -0.2667, 0.942, -2.0226, 1.286],
    "skewed": [0.6445, 0.0555, -0.4764, -0.6555, 3.7123],
    "mixture": [1.1933, -1.3071, 3.0527, -0.6414, -0.8939],
}
IN_BOX = {
    "normal": [0.8992, 0.4592, 0.3556, 0.8215, 0.5761],
    "laplace": [0.2805, 0.3873, 0.3557, 0.4521, 0.0455],
    "bimodal": [0.7054, 0.8438, 0.5987, 0.3856, 0.6499],
    "correlated": [0.977, 0.8947, 0.6408, 0.9193, 0.8947],
    "heavy": [0.6124, 0.5089, 0.5388, 0.4137, 0.2942],
    "ring": [0.2347, 0.4573, 0.6507, 0.1764, 0.7058],
    "skewed": [0.3659, 0.1878, 0.2406, 0.0799, 0.9092],
    "mixture": [0.6624, 0.1973, 0.9799, 0.3696, 0.3602],
}
ON_SPHERE = {
    "normal": [0.8554, -0.0582, -0.2061, 0.4589, 0.1087],
    "laplace": [-0.0091, -0.1951, -0.2499, -0.083, -0.9447],
    "bimodal": [0.5953, -0.6079, 0.3733, 0.0291, 0.3685],
    "correlated": [0.6577, 0.4125, 0.1188, 0.4614, 0.4126],
    "heavy": [0.9588, -0.0319, -0.113, 0.2516, 0.0596],
    "ring": [-0.8727, -0.3846, 0.2136, 0.0167, 0.2109],
    "skewed": [0.2742, 0.1445, 0.0272, -0.0122, 0.9503],
    "mixture": [0.098, -0.5234, 0.833, -0.135, -0.0661],
}
KNOWN = [(Euclidean(5), ON_REAL), (Box(5), IN_BOX), (Sphere(5), ON_SPHERE)]


@pytest.mark.parametrize(
    ("space", "name", "expected"),
    [(space, name, known[name]) for space, known in KNOWN for name in SHAPES],
    ids=str,
)
def test_a_seed_gives_the_draws_it_always_gave(space, name, expected):
    """Those of the runs in results/marginals; rounded to four digits."""
    z = Shape(name).sample(space, torch.eye(5)[:1].expand(40, 5), generator=3)
    assert z[-1].tolist() == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("space", [Euclidean(4), Box(4), Sphere(4)], ids=str)
@pytest.mark.parametrize("name", SHAPES)
def test_coordinates_are_independent_of_those_of_other_blocks(space, name):
    """By correlations of their waves, 0 between blocks; every coordinate depends on some of its own block."""
    block = Shape(name).independent(space)
    number = 20_000
    z = Shape(name).sample(space, torch.eye(4)[:1].expand(number, 4), generator=0)
    waves = torch.cat([(k * z).cos() for k in (1, 2, 5)] + [(k * z).sin() for k in (1, 2, 5)], 1)
    together = np.abs(np.corrcoef(waves.double().numpy().T)).reshape(6, 4, 6, 4).max((0, 2))
    same = np.arange(4)[:, None] // block == np.arange(4) // block
    noise = 6 / number**0.5  # the largest of some hundred correlations of independent numbers
    assert (together[~same] < noise).all()
    if block > 1:
        assert (np.where(same & ~np.eye(4, dtype=bool), together, 0).max(1) > noise).all()
