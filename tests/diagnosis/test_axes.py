import numpy as np
import pytest

from helpers.codes import N, judged, level, rotation, same
from identica import Box, Euclidean, Laplace, Normal, Sphere, VonMisesFisher
from identica.diagnosis.verdict import LINEAR, UNSURE


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
