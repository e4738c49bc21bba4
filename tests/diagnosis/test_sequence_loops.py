"""Correlation times, noise and order of rows beside plain loops, and their limits."""

import math

import numpy as np
import pytest
from scipy.signal import lfilter

from identica import InputError
from identica.diagnosis.sequence import Order, Rows, order_of


def column(values):
    return (values - values.mean()) / (values.std() or 1.0)


def signal(rows, memory=0.9, n=2, noise=0.2, seed=0):
    rng = np.random.default_rng(seed)
    z = lfilter([1], [1, -memory], rng.normal(size=(rows, n)), axis=0)
    return z + noise * z.std(0) * rng.normal(size=z.shape)


def expected_noise(h, h_pos, times, times_pos):
    at = {time: k for k, time in enumerate(times)}
    known = [(i, at[time]) for i, time in enumerate(times_pos) if time in at]
    n = h.shape[1]
    if len(known) < 50:
        return [0.0] * n, [0.0] * n
    alone, within = [], []
    for k in range(n):
        variance = h[:, k].var()
        steps = [(h_pos[r, k] - h[r, k]) ** 2 for pair in known for r in pair]
        change = sum(steps) / len(steps) / 2 / variance if variance else 0.0
        double = [(h_pos[j, k] - h[i, k]) ** 2 for i, j in known]
        twice = 1 - (sum(double) / len(double) / 2 / variance if variance else 0.0)
        share = (1 - change) ** 2 / twice if twice > 0.1 else 1.0
        alone.append(min(max(1 - share, 0.0), change))
        within.append(alone[-1] / change if change else 0.0)
    return alone, within


def expected_rows(h, h_pos, times, times_pos):
    """Effective number of rows, and the steps after which they are independent."""
    noise, within = expected_noise(h, h_pos, times, times_pos)
    order = np.argsort(times)
    at, codes = times[order], np.stack([column(values) for values in h[order].T], 1)
    total = at[-1] - at[0]
    gaps, fades = [], []
    for gap in sorted({int(g) for g in np.geomspace(1, max(2, total // 2), 40)}):
        pairs = []
        for i in range(len(at)):
            later = [j for j in range(i + 1, len(at)) if at[j] >= at[i] + gap]
            if later and at[later[0]] - at[i] <= gap + gap // 4:
                pairs.append((i, later[0]))
        if len(pairs) >= 20:
            means = [
                np.mean([codes[i, k] * codes[j, k] for i, j in pairs]) for k in range(h.shape[1])
            ]
            gaps.append(gap)
            fades.append(
                max(min(c / max(1 - s, 0.1), 1.0) for c, s in zip(means, noise, strict=True))
            )
    if not gaps:
        gaps, fades = [1], [0.0]
    last = next((k for k, fade in enumerate(fades) if fade < 0.1), len(gaps) - 1)
    fades = [*fades[:last], *[0.0] * (len(fades) - last)]
    memory = max(1, min(gaps[last], total // 10))
    some = np.random.default_rng(0).permutation(len(h))[:500]
    together = [
        sum(np.interp(abs(times[i] - times[j]), [0, *gaps], [1.0, *fades]) for j in range(len(h)))
        for i in some
    ]
    return len(h) / np.mean(together), memory, noise, within


@pytest.mark.parametrize(
    ("rows", "memory", "noise", "gap"),
    [
        (120, 0.9, 0.2, 1),
        (120, 0.5, 0.0, 1),
        (90, 0.999, 0.0, 1),  # never fades
        (100, 0.0, 0.0, 2),
        (110, 0.95, 2.5, 1),  # mostly noise
        (30, 0.9, 0.2, 7),  # too few links between pairs to see the noise
    ],
)
def test_rows_of_a_sequence_beside_loops(rows, memory, noise, gap):
    z = signal(rows + 1, memory, noise=noise, seed=rows)
    first = np.random.default_rng(1).permutation(rows)
    first = first[first % 10 != 3]  # with a row missing here and there
    h, h_pos = z[first], z[first + 1]
    times = gap * first, gap * first + gap
    found, order = order_of(h, h_pos, times)
    independent, apart, alone, within = expected_rows(h, h_pos, *times)
    assert found.independent == pytest.approx(independent)
    assert (found.apart, order.apart) == (apart, apart)
    assert found.noise == pytest.approx(alone, abs=1e-12)
    assert found.noise_in_pairs == pytest.approx(within, abs=1e-9)
    assert order.times.tolist() == times[0].tolist()


def test_a_constant_code_has_no_noise():
    z = np.c_[signal(101), np.ones(101)]
    times = np.arange(100), np.arange(1, 101)
    found, _ = order_of(z[:-1], z[1:], times)
    independent, apart, alone, within = expected_rows(z[:-1], z[1:], *times)
    assert (found.independent, found.apart) == pytest.approx((independent, apart))
    assert found.noise.tolist() == pytest.approx(alone)
    assert found.noise_in_pairs.tolist() == pytest.approx(within)
    assert found.noise[2] == found.noise_in_pairs[2] == 0


@pytest.mark.parametrize(("rows", "seen"), [(51, True), (50, False)])
def test_fifty_links_are_needed_for_the_noise(rows, seen):
    z = signal(rows + 1, noise=1.0)
    found, _ = order_of(z[:-1], z[1:], (np.arange(rows), np.arange(1, rows + 1)))
    assert (found.noise > 0).any() == seen


@pytest.mark.parametrize(("steps", "known"), [(9, False), (10, True)])
def test_ten_steps_make_a_sequence(steps, known):
    z = signal(200)
    times = np.arange(200) % (steps + 1)
    found, order = order_of(z, z, (times, times + 1))
    assert (found.apart > 0) == known
    if not known:
        assert found.independent == 200
        assert order.times.tolist() == list(range(200))
        assert found.noise.tolist() == found.noise_in_pairs.tolist() == [0, 0]


def test_few_and_noisy_rows():
    for independent, few in ((5.99, True), (6.0, False)):
        assert Rows(independent, 1, np.zeros(2), np.zeros(2)).few == few
    for noise, noisy in ((0.299, False), (0.3, True)):
        assert Rows(9.0, 1, np.zeros(3), np.array([0.0, noise, 1.0])).noisy == noisy


def test_rows_that_are_near():
    order = Order(np.array([5, 0, 9]), 4)
    every = np.arange(3)
    assert order.near(every, every).tolist() == [[1, 0, 1], [0, 1, 0], [1, 0, 1]]
    assert order.near(every[:1], every[1:]).tolist() == [[False, True]]


def test_independent_rows_are_halved_one_by_one():
    first, second = Order(np.arange(101), 0).halves(3)
    even = np.random.default_rng(3).permutation(101) % 2 == 0
    assert first.tolist() == np.flatnonzero(even).tolist()
    assert second.tolist() == np.flatnonzero(~even).tolist()


# --- times that are not given -----------------------------------------------------------------------


def exactly(correlation, rows, seed=0):
    """A column whose successive rows have a given correlation."""
    one = column(np.random.default_rng(seed).normal(size=rows))
    low, high = -1.0, 1.0
    for _ in range(60):  # of a moving average, which grows with its weight
        weight = (low + high) / 2
        h = column(one + weight * np.r_[0, one[:-1]])
        if (h[:-1] * h[1:]).mean() < correlation:
            low = weight
        else:
            high = weight
    return h[:, None]


@pytest.mark.parametrize(("rows", "least"), [(1600, 0.2), (200, 4 / math.sqrt(200))])
def test_rows_are_in_order_if_neighbours_are_alike(rows, least):
    for correlation, ordered in ((1.02 * least, True), (0.98 * least, False)):
        h = np.c_[exactly(correlation, rows), np.random.default_rng(3).normal(size=rows)]
        found, order = order_of(h, h + 3)
        assert (found.apart > 0) == ordered
        assert order.times.tolist() == list(range(rows))


@pytest.mark.parametrize(
    ("lag", "rows", "found"),
    [(1, 300, True), (64, 300, True), (65, 300, False), (30, 120, True), (31, 120, False)],
)
def test_the_lag_is_the_nearest_of_64_or_of_a_quarter(lag, rows, found):
    angle = 2 * math.pi * np.arange(rows + lag) / max(lag, 20)
    z = np.c_[np.sin(angle), np.cos(angle)]
    z += 0.2 * np.random.default_rng(0).normal(size=z.shape)
    h, h_pos = z[:-lag], z[lag:]
    known, _ = order_of(h, h_pos, (np.arange(rows), np.arange(rows) + lag))
    guessed, _ = order_of(h, h_pos)
    assert guessed.apart > 0
    assert np.allclose(known.noise_in_pairs, guessed.noise_in_pairs, atol=1e-12) == found


def chained(rows, linked, seed=0):
    """Rows in a random order, of which some positives are the anchors of others."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(rows + 1, 2))
    h, h_pos = z[:-1].copy(), z[1:].copy()
    h_pos[linked:] += 5 + rng.normal(size=h_pos[linked:].shape)
    turn = rng.permutation(rows)
    return h[turn], h_pos[turn], turn


def test_chains_are_followed():
    h, h_pos, turn = chained(200, 120)
    _, order = order_of(h, h_pos)
    place = np.argsort(turn)  # where each row of the chain lies
    assert np.diff(order.times[place[:121]]).tolist() == [1] * 120
    # the time between chains is unknown, so it is longer than any chain
    others = np.sort(np.r_[order.times[place[121:]], order.times[place[0]]])
    assert np.diff(others).min() > 200
    assert len(set(order.times.tolist())) == 200
    assert order.times.min() == 0


def test_a_ring_is_a_chain():
    h = np.random.default_rng(0).normal(size=(100, 2))
    _, order = order_of(h, np.roll(h, -1, axis=0))
    assert order.times.tolist() == list(range(100))


@pytest.mark.parametrize(("linked", "known"), [(50, True), (49, False)])
def test_a_quarter_of_the_rows_must_be_linked(linked, known):
    h, h_pos, _ = chained(200, linked)
    found, _ = order_of(h, h_pos)
    assert (found.apart > 0) == known


@pytest.mark.parametrize(("error", "known"), [(0.9e-6, True), (1.1e-6, False)])
def test_codes_of_the_same_row_differ_by_rounding(error, known):
    h, h_pos, _ = chained(200, 200)
    shift = error * np.linalg.norm(h.std(0)) * np.array([0.6, 0.8])
    found, _ = order_of(h, h_pos + shift)
    assert (found.apart > 0) == known


def test_times_are_whole_numbers():
    z = np.zeros((4, 1))
    for bad in (2.0**62, -(2.0**62), math.nan):
        with pytest.raises(InputError, match="whole numbers of at most 62 bits"):
            order_of(z, z, (np.arange(4), np.array([0.0, 1.0, 2.0, bad])))
    assert order_of(z, z, (np.arange(4), np.array([0, 1, 2, 2**62 - 1])))[0].apart == 0
