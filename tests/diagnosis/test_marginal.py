import numpy as np
import pytest
from scipy import stats

from helpers.codes import N, advice, judged, pairs, rotation, same
from identica import Box, Euclidean, Normal, Sphere, VonMisesFisher
from identica.diagnosis.marginal import as_directions, uniform_distances
from identica.diagnosis.verdict import LINEAR
from identica.metrics import linear_r2, procrustes


def test_distance_from_uniform_of_each_code():
    rng = np.random.default_rng(0)
    h = np.c_[rng.uniform(2, 5, N), rng.normal(size=N)]
    flat, normal = uniform_distances(h, Box(2))
    assert flat < 0.03
    low, high = np.quantile(h[:, 1], (0.001, 0.999))
    expected = stats.kstest(h[:, 1], stats.uniform(low, high - low).cdf).statistic
    assert normal == pytest.approx(expected)
    assert uniform_distances(Sphere(5).sample(N, generator=0).numpy(), Sphere(5)).max() < 0.05


def test_directions_are_recognised_in_a_space_without_them():
    z, z_pos = pairs(Sphere(3), VonMisesFisher(10.0))
    stretch = rotation(3) * [1, 3, 0.5]
    h, h_pos = (part @ stretch + 2 for part in (z, z_pos))
    y, y_pos = as_directions(h, h_pos)
    assert procrustes(z, y).error < 1e-6
    assert linear_r2(z_pos, y_pos) == pytest.approx(1)
    box = pairs(Box(3), Normal(0.05))
    assert as_directions(*box) is None
    half = z[:, 0] > 0  # a bowl is no sphere
    assert as_directions(h[half], h_pos[half]) is None
    found = judged([same, lambda z: z @ rotation(3)], Euclidean(3), Normal(1.0), pair=(h, h_pos))
    assert found.verdict == LINEAR
    assert advice(found, "space") == 'space="sphere".'
    assert found.dimensions.intrinsic.room == 2
