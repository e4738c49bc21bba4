import numpy as np
import pytest
from scipy import stats

from helpers.codes import N, advice, judged, level, pairs, rotation, same
from identica import Box, Euclidean, Laplace, Normal, Sphere, VonMisesFisher
from identica.diagnosis.marginal import as_directions, blur, uniform_distances
from identica.diagnosis.verdict import LINEAR, UNSURE
from identica.metrics import linear_r2, procrustes


def test_distance_from_uniform_of_each_code():
    rng = np.random.default_rng(0)
    h = np.c_[rng.uniform(2, 5, N), rng.normal(size=N)]
    flat, normal = uniform_distances(h, Box(2))
    assert flat < 0.03
    low, high = np.quantile(h[:, 1], (0.001, 0.999))
    expected = stats.kstest(h[:, 1], stats.uniform(low, high - low).cdf).statistic
    assert normal == pytest.approx(expected)
    around = Sphere(5).sample(N, generator=0).double().numpy()
    assert uniform_distances(around, Sphere(5)).max() < 0.05
    for radius in (0.1, 30.0):  # that of the codes, whatever that of the space
        found = uniform_distances(radius * around, Sphere(5))
        assert found == pytest.approx(uniform_distances(around, Sphere(5)), abs=1e-9)


def test_noise_blurs_what_is_uniform():
    rng = np.random.default_rng(0)
    for noise in (0.0, 0.05, 0.2):
        u = rng.uniform(size=20_000)
        h = u + np.sqrt(noise / (1 - noise) / 12) * rng.normal(size=u.shape)
        expected = uniform_distances(h[:, None], Box(1))[0]
        assert blur(noise, 0) == pytest.approx(expected, abs=0.02)


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


# --- axes -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("space", [Box(3), Sphere(3)])
def test_rotations_are_a_linear_map(space):
    conditional = VonMisesFisher(10.0) if isinstance(space, Sphere) else Normal(0.05)
    turns = [lambda z, seed=seed: z @ rotation(3, seed) for seed in range(2)]
    found = judged(turns, space, conditional)
    assert found.verdict == LINEAR
    assert level(found, "axes") == "caution"


def test_a_rotation_that_all_restarts_share_is_found_out():
    found = judged(
        [lambda z: z @ rotation(3), lambda z: 2 * z @ rotation(3)], Box(3), Laplace(0.05)
    )
    assert found.restarts.mean_permutation == pytest.approx(1)
    assert found.verdict == LINEAR


def test_no_axes_without_a_sign_of_them():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(N, 3))
    pair = z, z + 0.3 * rng.normal(size=z.shape)
    for conditional in (Laplace(1.0), Normal(1.0)):
        found = judged([same, same], Euclidean(3), conditional, pair=pair)
        assert found.verdict == UNSURE  # no theorem holds
        assert level(found, "axes") == "caution"
    walls = judged([same, same], Box(3), Normal(1.0), pair=pair)  # which nothing comes near to
    assert level(walls, "axes") == "caution"
