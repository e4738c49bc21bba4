import math

import numpy as np
import pytest

from helpers.codes import N, held_out, noisy, pairs, rotation, walk
from identica import Box, Normal, Sphere
from identica.diagnosis.dimension import (
    canonical_correlations,
    intrinsic_dimension,
    missed,
    own_share,
    pair_correlations,
    related,
)
from identica.diagnosis.sequence import Order, order_of


def unordered(rows):
    """The order of rows that are independent of each other."""
    return Order(np.arange(len(rows)), 0)


def test_correlations_of_pairs():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(4000, 3))
    z_pos = z * [1, 0.5, 0] + rng.normal(size=z.shape) * [0, math.sqrt(0.75), 1]
    expected = [np.corrcoef(z[:, k], z_pos[:, k])[0, 1] for k in range(3)]
    assert pair_correlations(z, z_pos) == pytest.approx(expected)
    turned = canonical_correlations(z @ rotation(3), z_pos @ rotation(3, seed=1))
    assert turned == pytest.approx([1, 0.5, 0], abs=0.06)
    still = np.c_[z[:, :2], np.ones(len(z))]
    assert canonical_correlations(still, still) == pytest.approx([1, 1, 0])
    assert pair_correlations(still, still)[2] == 0


@pytest.mark.parametrize("n", [2, 4])
def test_codes_that_fill_their_space(n):
    cube = Box(n).sample(4000, generator=0).numpy() @ rotation(n)
    full = intrinsic_dimension(cube, Box(n), unordered(cube))
    assert full.dimension == pytest.approx(n, abs=0.3)
    ball = Sphere(n + 1).sample(4000, generator=0).numpy()
    sphere = intrinsic_dimension(ball, Sphere(n + 1), unordered(ball))
    assert sphere.room == n
    assert sphere.dimension == pytest.approx(n, abs=0.3)


def test_codes_on_a_bent_surface():
    z = Box(2).sample(N, generator=0).numpy()
    h = np.c_[z, np.sin(3 * z.sum(1)), np.cos(2 * z[:, 0])]
    assert intrinsic_dimension(h, Box(4), unordered(h)).dimension == pytest.approx(2, abs=0.3)


def test_a_factor_that_codes_leave_out_is_missed():
    z, z_pos = pairs(Box(3), Normal(0.05))
    mix = rotation(3)
    x, x_pos = (np.c_[np.tanh(2 * part @ mix), part] for part in (z, z_pos))
    nothing, _, explained = missed(x, x_pos, np.exp(z), np.exp(z_pos), unordered(z))
    assert nothing < 0.05
    assert explained > 0.95
    something, _, explained = missed(x, x_pos, z[:, :2], z_pos[:, :2], unordered(z))
    assert something > 0.5
    assert explained < 0.8


def test_noise_is_not_missed():
    z, z_pos = pairs(Box(2), Normal(0.05))
    rng = np.random.default_rng(0)
    x, x_pos = (np.c_[part, rng.normal(size=part.shape)] for part in (z, z_pos))
    nothing, _, explained = missed(x, x_pos, z, z_pos, unordered(z))
    assert nothing < 0.1
    assert explained == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize("seed", range(4))
def test_a_walk_fills_its_space_however_it_runs(seed):
    """The path of a walk has dimension 2, so that neighbours in time must not count."""
    z = walk(6000, seed=seed)
    i, j = held_out(len(z))
    _, order = order_of(z[i], z[j], (i, j))
    found = intrinsic_dimension(z[i], Box(3), order)
    assert found.dimension + 2 * found.error > 2.9
    assert found.error < 0.3
    unaware = intrinsic_dimension(z[i], Box(3), unordered(i))
    assert unaware.dimension < found.dimension


def test_time_without_rows_far_apart_says_nothing():
    z = walk(100)
    nothing = intrinsic_dimension(z, Box(3), Order(np.arange(100), 99))
    assert nothing.error == nothing.room == 3


@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_a_code_of_its_own_or_a_function_of_others(noise):
    z, z_pos = pairs(Box(3), Normal(0.05))

    def two(z):
        return np.c_[z[:, :2], np.sin(4 * z[:, 0])]

    def one(z):
        return np.c_[z[:, 0], z[:, 0] ** 2, np.sin(4 * z[:, 0])] @ rotation(3)

    for codes, low, high in ((np.asarray, 0.8, 1.0), (two, 0.0, 0.25), (one, 0.0, 0.1)):
        h, h_pos = (noisy(codes(part), noise, seed) for seed, part in enumerate((z, z_pos)))
        assert low <= own_share(h, h_pos, unordered(h)) <= high


def test_what_codes_miss_is_shared_with_neighbours_in_time_as_well():
    z = walk(6000)
    i, j = held_out(len(z))
    _, order = order_of(z[i], z[j], (i, j))
    assert missed(z[i], z[j], z[i, :1], z[j, :1], order)[0] > 0.5
    assert missed(z[i], z[j], z[i], z[j], order)[0] < 0.1


def test_whether_observations_are_related():
    z, z_pos = pairs(Box(3), Normal(0.05))
    rng = np.random.default_rng(0)
    order = unordered(z)
    wide = rng.normal(size=(3, 20))
    x, x_pos = (part @ wide + rng.normal(size=(len(part), 20)) for part in (z, z_pos))
    assert related(x, x_pos, order)
    assert not related(x, rng.permutation(x_pos), order)
    far = 100 * rng.normal(size=(2, len(z), 1))  # units do not matter
    assert related(np.c_[z[:, :1], far[0]], np.c_[z_pos[:, :1], far[1]], order)


@pytest.mark.parametrize(("correlation", "expected"), [(0.2, True), (0.05, False)])
def test_weakly_correlated_observations_count_as_unrelated_however_many(correlation, expected):
    rng = np.random.default_rng(0)
    x, noise = rng.normal(size=(2, 20_000, 2))  # correlations are known to 0.01
    x_pos = correlation * x + math.sqrt(1 - correlation**2) * noise
    assert related(x, x_pos, unordered(x)) is expected
