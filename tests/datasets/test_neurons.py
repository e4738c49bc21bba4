"""Simulated neurons: walks that stay inside, tuning that can be read off, chance that repeats."""

import numpy as np
import pytest

from identica import InputError
from identica.datasets.neurons import head_direction_cells, place_cells, smooth_walk


def test_the_walk_is_reflected_at_the_walls():
    """As step by step: at a wall the velocity turns round, and with it the sense of its noise."""
    rows, dim, memory = 2000, 2, 0.95
    rng = np.random.default_rng(3)
    z, v, sense = rng.random(dim), np.zeros(dim), np.ones(dim)
    noise = 0.03 * np.sqrt(1 - memory**2) * rng.normal(size=(rows, dim))
    expected = []
    for eps in noise:
        v = memory * v + sense * eps
        z = z + v
        low, high = z < 0, z > 1
        z = np.where(low, -z, np.where(high, 2 - z, z))
        v, sense = (np.where(low | high, -each, each) for each in (v, sense))
        expected.append(z)
    found = smooth_walk(rows, dim, np.random.default_rng(3))
    np.testing.assert_allclose(found, expected, atol=1e-9)
    assert (sense < 0).any() or (np.abs(np.diff(np.sign(np.diff(found, axis=0)), axis=0)) > 0).any()


def test_chance_repeats_and_seeds_differ():
    one, same, other = (place_cells(50, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.counts, same.counts)
    np.testing.assert_array_equal(one.label, same.label)
    assert (one.counts != other.counts).any()
    drawn = place_cells(50, seed=np.random.default_rng(1))
    np.testing.assert_array_equal(one.counts, drawn.counts)


def test_place_cells_fire_around_their_places():
    """The places that a neuron's spikes are from are nearer to each other than the walk's are."""
    found = place_cells(20_000, rate=2.5, seed=0)
    assert found.counts.dtype == np.uint8
    z, counts = found.label, found.counts.astype(float)
    assert (z.min() >= 0) & (z.max() <= 1)
    spikes = counts.sum(0)
    middle = counts.T @ z / spikes[:, None]
    spread = np.sqrt(counts.T @ (z**2) / spikes[:, None] - middle**2)
    assert np.median(spread.mean(1)) < 0.9 * z.std(0).mean()
    # variance beyond the mean is that of the rate: little of it in neighbouring bins
    gap = np.diff(counts, axis=0).var(axis=0) / (2 * counts.mean(axis=0))
    assert np.median(gap) == pytest.approx(1, abs=0.1)


def test_the_rate_scales_the_counts():
    low, high = (place_cells(5000, rate=rate, seed=0) for rate in (0.5, 5.0))
    np.testing.assert_array_equal(low.label, high.label)
    assert high.counts.mean() == pytest.approx(10 * low.counts.mean(), rel=0.02)


@pytest.mark.parametrize("uneven", [False, True])
def test_head_direction_cells_tell_the_direction(uneven):
    found = head_direction_cells(20_000, rate=2.0, uneven=uneven, seed=0)
    assert found.counts.shape == (20_000, 19)
    assert (np.abs(found.label) <= np.pi).all()
    turn = np.exp(1j * found.label)
    prefer = np.angle((found.counts * turn[:, None]).mean(0) - found.counts.mean(0) * turn.mean())
    decoded = np.angle(found.counts @ np.exp(1j * prefer))
    off = np.abs(np.angle(np.exp(1j * (decoded - found.label))))
    assert np.median(off) < np.radians(30)
    steps = np.abs(np.angle(turn[1:] / turn[:-1]))
    assert steps.max() < 0.3
    # fast and slow turns leave heavier tails than one speed does
    kurtosis = (steps**4).mean() / (steps**2).mean() ** 2
    assert (kurtosis > 4) == uneven


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"rows": 0}, "rows must be a whole number of at least 1"),
        ({"rate": 0}, "rate must be greater than 0"),
        ({"seed": -1}, "seed must be"),
    ],
)
def test_bad_arguments(options, told):
    for make in (place_cells, head_direction_cells):
        with pytest.raises(InputError, match=told):
            make(**{"rows": 10} | options)
