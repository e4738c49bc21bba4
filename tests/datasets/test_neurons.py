"""Simulated neurons: walks that stay inside, tuning that can be read off, chance that repeats."""

import math

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


# --- the whole recording, drawn step by step --------------------------------------------------------


def velocities(noise, memory):
    """v_t = memory · v_{t−1} + noise_t from 0."""
    v, found = np.zeros(noise.shape[1:]), []
    for each in noise:
        v = memory * v + each
        found.append(v)
    return np.array(found)


@pytest.mark.parametrize("rate", [0.5, 4.0])
def test_place_cells_drawn_step_by_step(rate):
    rng = np.random.default_rng(4)
    free = rng.random(3) + np.cumsum(
        velocities(0.03 * math.sqrt(1 - 0.95**2) * rng.normal(size=(300, 3)), 0.95), axis=0
    )
    z = np.array([[x % 2 if x % 2 <= 1 else 2 - x % 2 for x in row] for row in free])
    centres = rng.uniform(-0.1, 1.1, (100, 3))
    mean = [
        [rate * (0.05 + math.exp(-(math.dist(a, c) ** 2) / (2 * 0.3**2))) for c in centres]
        for a in z
    ]
    found = place_cells(300, rate=rate, seed=4)
    np.testing.assert_allclose(found.label, z, atol=1e-9)
    assert (found.counts == rng.poisson(mean)).all()
    assert (found.name, found.bin) == ("place cells", 0.025)


def drawn_angles(rows, uneven, rng):
    if not uneven:
        noise = 0.02 * math.sqrt(1 - 0.98**2) * rng.normal(size=(rows, 1))
        return np.cumsum(velocities(noise, 0.98)[:, 0])
    change = rng.random(rows) < 0.01
    speeds = [1.0, *rng.choice([0.15, 1.0, 2.5], change.sum())]
    now = np.array([speeds[change[: t + 1].sum()] for t in range(rows)])
    noise = 0.025 * now[:, None] * math.sqrt(1 - 0.95**2) * rng.normal(size=(rows, 1))
    favourite, angle, found = rng.uniform(0, 2 * np.pi), 0.0, []
    for step in velocities(noise, 0.95)[:, 0]:
        angle = angle + step - 0.002 * math.sin(angle - favourite)
        found.append(angle)
    return np.array(found)


@pytest.mark.parametrize("uneven", [False, True])
def test_head_direction_cells_drawn_step_by_step(uneven):
    rng = np.random.default_rng(4)
    angle = drawn_angles(800, uneven, rng)
    centres, kappa = rng.uniform(0, 2 * np.pi, 19), rng.uniform(1, 6, 19)
    peak = 0.4 * rng.lognormal(0, 0.8 if uneven else 0.6, 19)
    mean = [
        [
            p * (0.03 + math.exp(k * (math.cos(a - c) - 1)))
            for p, k, c in zip(peak, kappa, centres, strict=True)
        ]
        for a in angle
    ]
    found = head_direction_cells(800, rate=0.4, uneven=uneven, seed=4)
    np.testing.assert_allclose(found.label, np.arctan2(np.sin(angle), np.cos(angle)), atol=1e-9)
    assert (found.counts == rng.poisson(mean)).all()
    assert (found.name, found.bin) == ("head-direction cells", 0.01)


def test_rows_and_rates_that_are_left_out():
    assert head_direction_cells(20, seed=0).counts.tolist() == (
        head_direction_cells(20, rate=0.25, seed=0).counts.tolist()
    )
    assert (
        place_cells(20, seed=0).counts.tolist() == place_cells(20, rate=2.5, seed=0).counts.tolist()
    )
    assert place_cells(5, rate=1e300, seed=0).counts.max() == 255  # of so many spikes
    with pytest.raises(InputError, match="at most 10000000"):
        place_cells(10_000_001)
