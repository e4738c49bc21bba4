"""Measurements of the dimension beside plain loops, and their limits: just below and just above."""

import math

import numpy as np
import pytest
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import Ridge

from helpers.codes import rotation
from identica import Box, Euclidean, Product, Sphere
from identica.diagnosis import dimension
from identica.diagnosis.dimension import (
    canonical_correlations,
    dimensions,
    intrinsic_dimension,
    missed,
    own_share,
    related,
    varying,
)
from identica.diagnosis.sequence import Order

RNG = np.random.default_rng(0)
PLAIN = RNG.normal(size=(400, 4))


def column(values):
    """Values of mean 0 and standard deviation 1."""
    return (values - values.mean()) / values.std()


def test_a_code_varies_by_more_than_a_thousandth_of_the_widest():
    one = column(PLAIN[:, 0])
    h = np.stack([one, 1.01e-3 * one, 0.99e-3 * one, np.zeros(len(one))], 1)
    assert varying(h).tolist() == [True, True, False, False]
    assert varying(1e-100 * h).tolist() == [True, True, False, False]


@pytest.mark.parametrize(("weight", "expected"), [(1e-3, 1), (1e-10, 0)])
def test_nearly_equal_codes_are_one_direction(weight, expected):
    h = np.c_[PLAIN[:, :2], PLAIN[:, :2].sum(1) + weight * PLAIN[:, 2]]
    assert canonical_correlations(h, h) == pytest.approx([1, 1, expected], abs=1e-4)


# --- the intrinsic dimension ------------------------------------------------------------------------


def closest(points, far, number, rows=None):
    """The dimension from the closest pairs i < j for which far(i, j), without those of some rows."""
    found = [
        (math.dist(points[i], points[j]), i, j)
        for j in range(len(points))
        for i in range(j)
        if far(i, j) and math.dist(points[i], points[j]) > 0
    ]
    found = sorted(found)[: min(number, len(found) - 1) + 1]
    logs = np.array([math.log(found[-1][0] / distance) for distance, _, _ in found])
    most = np.quantile(logs, 0.9)
    kept = [
        log
        for log, (_, i, j) in zip(logs, found, strict=True)
        if log <= most and not {i, j} & set(rows or ())
    ]
    return len(kept) / sum(kept) if sum(kept) else 0.0  # up to a factor that cancels


def whitened(h):
    """Symmetrically whitened columns; a direction of less than 1e−6 of the largest variance stays narrow."""
    one = np.stack([column(values) for values in h.T], 1)
    values, vectors = np.linalg.eig(one.T @ one / len(one))
    return one @ vectors @ np.diag(np.maximum(values, 1e-6 * max(values)) ** -0.5) @ vectors.T


def expected_dimension(h, sphere, times, apart, seed):
    rng = np.random.default_rng(seed)
    rng.permutation(len(h))  # there are few enough rows to use all
    live = h[:, varying(h)]
    room = live.shape[1]
    if sphere:
        live, room = h, h.shape[1] - 1
        full = rng.normal(size=h.shape)
        full = np.array([f * math.hypot(*x) / math.hypot(*f) for f, x in zip(full, h, strict=True)])
    else:
        live = whitened(live)
        full = rng.permuted(live, axis=0)
    n = len(h)

    def far(i, j):
        return abs(times[i] - times[j]) > apart

    count = sum(far(i, j) for j in range(n) for i in range(j))
    number = min(2 * n, count // 20)
    found = closest(live, far, number)
    filled = closest(full, lambda i, j: True, number * (n * (n - 1) // 2) // count)
    rank = np.argsort(np.argsort(times))
    without = [
        closest(live, far, number, [i for i in range(n) if rank[i] * 10 // n == tenth])
        for tenth in range(10)
    ]
    error = math.sqrt(0.9 * sum((one - np.mean(without)) ** 2 for one in without))
    return room * found / filled, room * error / filled, room


@pytest.mark.parametrize(
    ("h", "space", "rows", "apart"),
    [
        (PLAIN[:, :3] @ rotation(3) * [1, 2, 3], Box(3), 60, 0),
        (np.c_[PLAIN[:, :2], PLAIN[:, 0] + 1e-4 * PLAIN[:, 2]], Euclidean(3), 60, 0),
        (np.c_[PLAIN[:, :2], np.sin(PLAIN[:, :1]), np.ones(400)], Box(4), 30, 4),
        (PLAIN[:, :3] / np.linalg.norm(PLAIN[:, :3], axis=1)[:, None], Sphere(3), 60, 3),
        (np.c_[PLAIN[:, :3], np.ones(400)], Sphere(4), 40, 0),  # which no sphere is
    ],
)
def test_the_dimension_is_that_of_the_closest_pairs(h, space, rows, apart):
    h = h[:rows]
    times = np.random.default_rng(1).permutation(rows)
    sphere = isinstance(space, Sphere) and varying(h).all()
    expected = expected_dimension(h, sphere, times, apart, seed=5)
    found = intrinsic_dimension(h, space, Order(times, apart), random_state=5)
    assert found == pytest.approx(expected, rel=1e-6)


def test_equal_rows_are_no_pairs():
    twice = np.repeat(PLAIN[:30, :2], 2, axis=0)
    rare = np.r_[np.zeros((98, 2)), [[1, 0], [0.3, 1]]]  # two rows differ, so 197 pairs
    for h in (twice, rare):
        order = Order(np.arange(len(h)), 0)
        expected = expected_dimension(h, False, order.times, 0, seed=0)
        assert intrinsic_dimension(h, Box(2), order) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("rows", [2, 20, 200])
def test_codes_of_two_values_have_no_known_dimension(rows):
    """All close pairs are equally close, and so they are once shuffled."""
    h = np.random.default_rng(0).integers(2, size=(rows, 2)).astype(float)
    h[:2] = [[0, 1], [1, 0]]
    assert intrinsic_dimension(h, Box(2), Order(np.arange(rows), 0)) == (2, 2, 2)


def test_too_few_rows_fill_any_space():
    order = Order(np.arange(100), 0)
    # of 100 rows, 19·20/2 pairs are more than 80 steps apart, and 20·21/2 more than 79: 200 are needed
    h = PLAIN[:100, :3]
    assert intrinsic_dimension(h, Box(3), Order(np.arange(100), 80)) == (3, 3, 3)
    assert intrinsic_dimension(h, Box(3), Order(np.arange(100), 79)) != (3, 3, 3)
    assert intrinsic_dimension(h[:, :1], Box(1), order) == (1, 0, 1)
    assert intrinsic_dimension(np.c_[h[:, 0], np.ones((100, 2))], Box(3), order) == (1, 0, 1)


def test_a_random_part_of_many_rows_is_used(monkeypatch):
    monkeypatch.setattr(dimension, "NEIGHBOURS", 50)
    kept = np.sort(np.random.default_rng(3).permutation(200)[:50])
    order = Order(np.arange(200), 2)
    found = intrinsic_dimension(PLAIN[:200], Box(4), order, random_state=3).dimension
    h = whitened(PLAIN[kept])

    def far(i, j):
        return kept[j] - kept[i] > 2

    count = sum(far(i, j) for j in range(50) for i in range(j))
    number = min(100, count // 20)
    rng = np.random.default_rng(3)
    rng.permutation(200)
    filled = closest(rng.permuted(h, axis=0), lambda i, j: True, number * 1225 // count)
    assert found == pytest.approx(4 * closest(h, far, number) / filled, rel=1e-6)


# --- what the codes miss ----------------------------------------------------------------------------


def rests(seen, codes, fit, score, penalties, landmarks):
    """Residuals of both members after ridge regression on Nyström features, at the best width."""
    known = np.vstack([part[fit] for part in seen])
    centre, spread = codes[0].mean(0), codes[0].std(0)
    spread[spread == 0] = 1
    one, other = ((part - centre) / spread for part in codes)
    every = []
    for width in (2.0, 1.0, 0.5):
        kernel = Nystroem(
            gamma=1 / (width**2 * one.shape[1]),
            n_components=min(landmarks, len(fit)),
            random_state=0,
        ).fit(one[fit])
        inputs = [np.c_[kernel.transform(part), part, np.ones(len(part))] for part in (one, other)]
        rows = np.vstack([part[fit] for part in inputs])
        for penalty in penalties:
            model = Ridge(penalty * len(rows), fit_intercept=False, solver="cholesky")
            model.fit(rows, known)
            guesses = [
                np.clip(model.predict(part[score]), known.min(0), known.max(0)) for part in inputs
            ]
            every.append(
                tuple(
                    x[score] - guess.reshape(len(score), -1)
                    for x, guess in zip(seen, guesses, strict=True)
                )
            )
    return min(every, key=lambda rest: sum((part**2).sum() for part in rest))


def strangers_of(h, h_pos, times, apart):
    """For each anchor that is compared, the other anchor whose positive is its control."""
    spread = h.std(0)
    spread[spread == 0] = 1
    found = []
    for i in range(len(h)):
        distances = {
            j: math.dist(h[i] / spread, h_pos[j] / spread)
            for j in range(len(h))
            if abs(times[i] - times[j]) > apart
        }
        if distances:
            j = min(distances, key=distances.get)
            own = math.dist(h[i] / spread, h_pos[i] / spread)
            found.append((distances[j] - own, i, j))
    found.sort()
    number = max(math.ceil(len(h) / 4), sum(excess <= 0 for excess, _, _ in found))
    return [(i, j) for _, i, j in found[:number]]


def expected_missed(x, x_pos, h, h_pos, order):
    live = x.std(0) > 1e-9 * x.std(0).max()
    scale = x.std(0)[live]
    seen, seen_pos = ((part - x.mean(0))[:, live] / scale for part in (x, x_pos))
    values, vectors = np.linalg.eigh(np.cov(seen.T, bias=True).reshape(len(scale), -1))
    whiten = vectors / np.sqrt(np.maximum(values, 1e-4 * values.max()))
    fit, score = order.halves(0)
    left, left_pos = rests((seen @ whiten, seen_pos @ whiten), (h, h_pos), fit, score, (1e-6,), 400)
    explained = 1 - np.mean([np.mean(left**2), np.mean(left_pos**2)])
    times = order.times[score]
    chosen = strangers_of(h[score], h_pos[score], times, order.apart)
    if not chosen:
        return 0.0, 0.0, explained
    chosen.sort(key=lambda pair: times[pair[0]])
    beyond = [(left[i], left_pos[i] - left_pos[j]) for i, j in chosen]
    middle = len(chosen) // 2
    shared = []
    for judged, found in ((beyond[:middle], beyond[middle:]), (beyond[middle:], beyond[:middle])):
        moment = sum(np.outer(*pair) for pair in found)
        direction = np.linalg.eigh((moment + moment.T) / 2)[1][:, -1]
        shared += [float(a @ direction) * float(b @ direction) for a, b in judged]
    blocks = {}
    for (i, _), value in zip(chosen, shared, strict=True):
        blocks.setdefault(times[i] // max(1, order.apart), []).append(value - np.mean(shared))
    error = math.sqrt(sum(sum(block) ** 2 for block in blocks.values())) / len(shared)
    most = np.mean(shared)
    return (min(1.0, most) if most > 3 * error else 0.0), error, explained


def observed(strength, rows=160, n=3):
    """Observations with a factor that the codes do not hold, and a constant column."""
    rng = np.random.default_rng(7)
    z = rng.normal(size=(rows, n))
    z_pos = z + 0.3 * rng.normal(size=z.shape)
    mix = rng.normal(size=(n, 4))
    mix[-1] *= strength
    x, x_pos = (np.c_[part @ mix + 0.1 * part[:, :1] ** 2, np.ones(rows)] for part in (z, z_pos))
    return x + 0.2 * rng.normal(size=x.shape) * [1, 1, 1, 1, 0], x_pos, z[:, :2], z_pos[:, :2]


@pytest.mark.parametrize(
    ("strength", "apart"),
    [(0.05, 0), (0.1, 3), (0.2, 0), (0.3, 0), (0.3, 3), (0.5, 0), (1.0, 3), (1.0, 200)],
)
def test_what_is_missed_beside_loops(strength, apart):
    pair = observed(strength)
    order = Order(np.random.default_rng(2).permutation(160), apart)
    assert missed(*pair, order) == pytest.approx(expected_missed(*pair, order), abs=1e-6)


def test_few_controls_are_near_in_many_dimensions_and_weak_columns_stay_weak():
    rng = np.random.default_rng(4)
    z = rng.normal(size=(120, 12))
    z_pos = z + 0.02 * rng.normal(size=z.shape)
    x, x_pos = (np.c_[part[:, :2], part[:, 0] + 1e-3 * part[:, 3]] for part in (z, z_pos))
    still = np.ones((120, 1))
    order = Order(np.arange(120), 1)
    h, h_pos = (np.c_[part[:, 1:], still] for part in (z, z_pos))
    expected = expected_missed(x, x_pos, h, h_pos, order)
    for unit in (1, 1e-12, 1e12):
        found = missed(unit * x, unit * x_pos, h, h_pos, order)
        assert found == pytest.approx(expected, abs=1e-6)


# --- codes that others predict ----------------------------------------------------------------------


def expected_share(h, h_pos, order):
    scale = h.std(0)
    codes, codes_pos = ((part - h.mean(0)) / scale for part in (h, h_pos))
    fit, score = order.halves(0)
    shares = [1.0]
    for basis in (np.eye(len(scale)), np.linalg.eigh(np.corrcoef(h.T))[1]):
        one, other = codes @ basis, codes_pos @ basis
        for k in range(len(scale)):
            rest = [j for j in range(len(scale)) if j != k]
            shared = sum(a * b for a, b in zip(one[score, k], other[score, k], strict=True))
            if shared > 0.1 * sum(a * a for a in one[score, k]):
                seen = one[:, [k]], other[:, [k]]
                left, left_pos = rests(
                    seen, (one[:, rest], other[:, rest]), fit, score, (1e-6, 1e-3), 100
                )
                shares.append((left * left_pos).sum() / shared)
    return max(0.0, min(shares))


@pytest.mark.parametrize("noise", [0.3, 1.0, 3.0])
def test_the_share_of_a_code_beside_loops(noise):
    rng = np.random.default_rng(1)
    z = rng.normal(size=(240, 2))
    z_pos = z + 0.3 * rng.normal(size=z.shape)
    h, h_pos = (
        np.c_[part, np.sin(part.sum(1)) + noise * rng.normal(size=240)] * [1, 3, 0.5] + 2
        for part in (z, z_pos)
    )
    order = Order(np.random.default_rng(2).permutation(240), 2)
    expected = expected_share(h, h_pos, order)
    assert own_share(h, h_pos, order) == pytest.approx(expected, abs=1e-6)
    turned = [part @ rotation(3) * [1, 3, 0.5] for part in (h, h_pos)]
    assert own_share(*turned, order) == pytest.approx(expected_share(*turned, order), abs=1e-6)
    more = (np.c_[np.ones(240), part] for part in (h, h_pos))
    assert own_share(*more, order) == pytest.approx(expected, abs=1e-6)
    assert own_share(h[:, :1], h_pos[:, :1], order) == 1


def test_many_rows_are_thinned_alike(monkeypatch):
    """Every second row of a half, if it has one more than allowed."""
    rng = np.random.default_rng(1)
    h = rng.normal(size=(202, 2))
    h_pos = h + 0.3 * rng.normal(size=h.shape)

    class Halves:
        def halves(self, random_state):
            return np.arange(0, 202, 2), np.arange(1, 202, 2)

    monkeypatch.setattr(dimension, "HALF", 101)
    every = own_share(h, h_pos, Halves())
    assert every == pytest.approx(expected_share(h, h_pos, Halves()), abs=1e-6)
    monkeypatch.setattr(dimension, "HALF", 100)

    class Thin:
        def halves(self, random_state):
            return np.arange(0, 202, 4), np.arange(1, 202, 4)

    thin = own_share(h, h_pos, Halves())
    assert thin == pytest.approx(expected_share(h, h_pos, Thin()), abs=1e-6)
    assert thin != pytest.approx(every, abs=1e-6)


# --- all of them ------------------------------------------------------------------------------------


def test_the_parts_of_a_product_are_measured_one_by_one():
    rng = np.random.default_rng(0)
    ball = rng.normal(size=(80, 3))
    ball /= np.linalg.norm(ball, axis=1)[:, None]
    flat = rng.normal(size=(80, 2))
    h = np.c_[ball, flat]
    h_pos = h + 0.1 * rng.normal(size=h.shape)
    order = Order(np.arange(80), 0)
    x = np.c_[flat, flat.sum(1), 1e-2 * ball[:, 0] + flat[:, 0], flat[:, 1] + 1e-5 * ball[:, 1]]
    found = dimensions(h, h_pos, Product(Sphere(3), Euclidean(2)), (x, x), order, 0)
    one = intrinsic_dimension(ball, Sphere(3), order)
    other = intrinsic_dimension(flat, Euclidean(2), order)
    assert found.intrinsic == pytest.approx(
        (one.dimension + other.dimension, math.hypot(one.error, other.error), 4)
    )
    assert found.own == own_share(flat, h_pos[:, 3:], order)
    assert found.columns == 3  # weaker than a thousandth: no column of its own
    assert (found.missed, found.missed_error, found.explained) == missed(x, x, h, h_pos, order)
    bare = dimensions(ball, h_pos[:, :3], Sphere(3), None, order, 0)
    assert (bare.own, bare.columns, bare.missed, bare.explained) == (None,) * 4
    assert bare.missed_error == 0


@pytest.mark.parametrize(("rows", "expected"), [(3000, 4 / math.sqrt(1500)), (4000, 0.1)])
def test_pairs_are_related_above_chance_and_above_a_tenth(rows, expected):
    """One column, whose correlation in the second half is set exactly."""

    class Halves:
        times = np.arange(rows)

        def halves(self, random_state):
            return np.arange(rows // 2), np.arange(rows // 2, rows)

    one, noise = np.random.default_rng(0).normal(size=(2, rows // 2))
    one = column(one)
    noise = column(noise - one * (noise @ one) / (one @ one))
    for correlation in (0.98 * expected, 1.02 * expected):
        half = correlation * one + math.sqrt(1 - correlation**2) * noise
        x = np.tile(one, 2)[:, None]
        x_pos = np.tile(half, 2)[:, None]
        assert related(3 + 2 * x, x_pos - 5, Halves()) == (correlation > expected)
        still = np.ones_like(x)
        assert related(np.c_[x, still], np.c_[x_pos, still], Halves()) == (correlation > expected)
