"""Measurements of the positives beside plain loops and scipy, and their limits."""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize_scalar
from scipy.special import gammaln

from helpers.codes import pairs, rotation
from identica import (
    Box,
    Euclidean,
    GeneralizedNormal,
    Joint,
    Laplace,
    Normal,
    Product,
    Sphere,
    VonMisesFisher,
)
from identica.diagnosis.conditional import (
    GeneralizedNormalFit,
    concentration,
    fit_differences,
    generalized_normal,
    inner_differences,
    misfit,
    nearest_family,
    position_dependence,
    positives,
    simulated,
)
from identica.diagnosis.marginal import own_range
from identica.diagnosis.sequence import Order


def unordered(rows):
    return Order(np.arange(len(rows)), 0)


def most_likely(d, weights):
    """Shape and scale with the highest likelihood of weighted differences."""

    def scale(shape):
        return (shape * np.sum(weights * np.abs(d) ** shape) / np.sum(weights)) ** (1 / shape)

    def cost(log_shape):
        shape = math.exp(log_shape)
        return math.log(2 * scale(shape)) + gammaln(1 + 1 / shape) + 1 / shape

    best = minimize_scalar(cost, bounds=(math.log(0.3), math.log(12)), method="bounded")
    return math.exp(best.x), scale(math.exp(best.x))


def test_intervals_are_quantiles_of_200_resamples():
    d = stats.gennorm(1.4, scale=3.0).rvs(150, random_state=1)
    rng = np.random.default_rng(7)
    counts = rng.multinomial(150, np.full(150, 1 / 150), size=200)
    shapes, scales = zip(*(most_likely(d, one) for one in counts), strict=True)
    found = generalized_normal(d, random_state=7)
    assert (found.shape, found.scale) == pytest.approx(most_likely(d, np.ones(150)), rel=2e-3)
    assert found.shape_interval == pytest.approx(np.quantile(shapes, (0.025, 0.975)), rel=2e-3)
    assert found.scale_interval == pytest.approx(np.quantile(scales, (0.025, 0.975)), rel=2e-3)
    assert found.number == 150
    small = generalized_normal(1e-6 * d, random_state=7)
    assert small.shape_interval == pytest.approx(found.shape_interval)
    assert small.scale_interval == pytest.approx(np.multiply(1e-6, found.scale_interval))


def test_shapes_end_at_those_of_the_grid():
    rng = np.random.default_rng(0)
    signs = generalized_normal(rng.choice([-2.0, 2.0], size=200))
    assert (signs.shape, signs.scale) == pytest.approx((12, 2 * 12 ** (1 / 12)))
    heavy = generalized_normal(np.exp(9 * rng.normal(size=200)))
    assert 0.3 <= heavy.shape < 0.32
    assert generalized_normal(np.zeros(100)).scale == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(
    ("shape", "family"),
    [
        (math.nextafter(2**0.5, 0), "laplace"),
        (2**0.5, "normal"),
        (math.nextafter(6**0.5, 0), "normal"),
        (6**0.5, "gennorm3"),
    ],
)
def test_families_meet_halfway_in_log_shape(shape, family):
    assert nearest_family(shape) == family
    assert GeneralizedNormalFit(shape, 1.0, (1, 2), (1, 2), 9).family == family


def test_a_hundred_differences_are_needed():
    d = np.random.default_rng(0).normal(size=100)
    fits = fit_differences([d, d[1:], np.ones(100)])
    assert [fit is None for fit in fits] == [False, True, True]
    expected = stats.kstest(d / math.sqrt(2 * np.mean(d**2)), stats.gennorm(2).cdf).statistic
    assert misfit([d, d[1:]], 2.0) == pytest.approx(expected)
    assert misfit([d[1:], np.ones(100)], 2.0) == 0
    scale = np.mean(3 * np.abs(d) ** 3) ** (1 / 3)
    expected = stats.kstest(d, stats.gennorm(3, scale=scale).cdf).statistic
    assert misfit([d], 3.0) == pytest.approx(expected)


def test_only_anchors_away_from_the_walls_count_in_a_box():
    rng = np.random.default_rng(0)
    h = rng.uniform(size=(300, 2)) * [1, 5]
    h_pos = h + rng.normal(size=h.shape) * [0.05, 0.4]
    in_box, outside = (inner_differences(h, h_pos, space) for space in (Box(2), Euclidean(2)))
    for k in range(2):
        d = h_pos[:, k] - h[:, k]
        low, high = np.quantile(h[:, k], (0.001, 0.999))
        reach = 3 * np.median(np.abs(d))
        inner = [i for i in range(300) if low + reach < h[i, k] < high - reach]
        assert in_box[k] == pytest.approx(d[inner])
        assert outside[k] == pytest.approx(d)


def test_concentration_at_its_ends():
    z = Sphere(3).sample(100, generator=0).double().numpy()
    assert concentration(z, z) == 1e6
    assert concentration(z, -z) == 0
    assert concentration(np.zeros((9, 3)), np.zeros((9, 3))) == 0
    # the mean cosine on the sphere in three dimensions is coth κ − 1/κ, whatever the norms
    turned = np.c_[z[:, 1], -z[:, 0], np.zeros(100)]
    turned /= np.linalg.norm(turned, axis=1)[:, None]
    for kappa in (1e-3, 0.5, 7.0, 5e3):
        cosine = 1 / math.tanh(kappa) - 1 / kappa
        pair = 3 * z, 0.1 * (cosine * z + math.sqrt(1 - cosine**2) * turned)
        assert concentration(*pair) == pytest.approx(kappa, rel=1e-4)


def test_simulated_positives_follow_the_fit():
    rng = np.random.default_rng(0)
    h = rng.uniform(size=(1000, 3)) * [1, 5, 1] + [0, 0, 9]
    fits = [
        GeneralizedNormalFit(1.0, 0.1, (1, 1), (1, 1), 9),
        None,
        GeneralizedNormalFit(3.0, 0.2, (1, 1), (1, 1), 9),
    ]
    drawn = simulated(h, Euclidean(3), fits, random_state=0)
    for k, shape, scale in ((0, 1, 0.1), (2, 3, 0.2)):
        assert (
            stats.kstest(drawn[:, k] - h[:, k], stats.gennorm(shape, scale=scale).cdf).pvalue > 0.01
        )
    assert (drawn[:, 1] == h[:, 1]).all()
    assert not np.array_equal(drawn, simulated(h, Euclidean(3), fits, random_state=1))
    inside = simulated(h, Box(3), fits, random_state=0)
    low, high = own_range(h)
    for k in (0, 2):
        assert inside[:, k].min() >= low[k]
        assert inside[:, k].max() <= high[k]
    ball = Sphere(3, radius=2.0)
    z = ball.sample(2000, generator=0).double().numpy()
    around = simulated(z, ball, 8.0, random_state=0)
    assert np.linalg.norm(around, axis=1) == pytest.approx(np.full(2000, 2.0))
    # the standard deviation of a cosine is 1/κ for large κ
    mean = 1 / math.tanh(8) - 1 / 8
    assert np.mean((z * around).sum(1) / 4) == pytest.approx(mean, abs=5 / 8 / math.sqrt(2000))


def expected_bend(h, h_pos, null, halves):
    """The same formula with the features and weights of a textbook."""
    live = [k for k in range(h.shape[1]) if np.ptp(h[:, k]) > 0]
    n = len(live)
    y = np.stack([(h[:, k] - h[:, k].mean()) / h[:, k].std() for k in live], 1)
    products = [y[:, i] * y[:, j] for i in range(n) for j in range(i, n) if n <= 12 or i == j]
    place = np.stack([np.ones(len(h)), *y.T, *products], 1)

    def regression(rows):
        inverse = np.linalg.pinv(place[rows], rcond=1e-5)
        return lambda target: place @ (inverse @ target[rows])

    whole, halves = regression(np.arange(len(h))), [regression(rows) for rows in halves]
    moves = []
    for positive in (h_pos, null):
        step = (positive - h)[:, live]
        moves.append(step - whole(step))
    values, vectors = np.linalg.eigh(moves[0].T @ moves[0] / len(h))
    real, flat = (move @ (vectors / np.sqrt(values)) for move in moves)
    total = 0.0
    for i in range(n):
        for j in range(n):
            target = real[:, i] * real[:, j] - flat[:, i] * flat[:, j]
            one, other = (half(target) for half in halves)
            total += np.mean((one - one.mean()) * (other - other.mean()))
    return math.sqrt(max(0.0, total / (4 * n)))


@pytest.mark.parametrize("n", [1, 2, 3, 12, 13])
def test_the_bend_beside_loops(n):
    rng = np.random.default_rng(n)
    z = rng.uniform(-1, 1, size=(40 * (n + 2), n))
    z_pos = z + 0.05 * rng.normal(size=z.shape)
    h, h_pos = (
        np.c_[np.exp(part[:, :1]), part[:, 1:] * 3 + part[:, :1] ** 2, np.ones(len(z))]
        for part in (z, z_pos)
    )
    order, space = unordered(h), Euclidean(n + 1)
    fit = fit_differences(inner_differences(h, h_pos, space))
    null = simulated(h, space, fit, random_state=4)
    expected = expected_bend(h, h_pos, null, order.halves(4))
    assert expected > 0.05
    assert position_dependence(h, h_pos, space, fit, order, 4) == pytest.approx(expected, rel=1e-6)


def test_nothing_that_moves_has_no_bend():
    h = np.random.default_rng(0).normal(size=(50, 2))
    fits = [None, None]
    assert position_dependence(h, h, Euclidean(2), fits, unordered(h)) == 0
    still = np.ones((50, 2))
    assert position_dependence(still, h, Euclidean(2), fits, unordered(h)) == 0


def test_a_code_that_hardly_moves_is_not_amplified():
    """Steps of less than 1e−9 of the largest variance are rounding."""
    rng = np.random.default_rng(0)
    h = rng.normal(size=(300, 2))
    step = rng.normal(size=h.shape) * [0.1, 0.1 * 1e-6 * np.exp(h[:, 1].max())]
    step[:, 1] *= np.exp(h[:, 1]) / np.exp(h[:, 1].max()) / 1e2
    alone = position_dependence(h[:, :1], (h + step)[:, :1], Euclidean(1), [None], unordered(h))
    both = position_dependence(h, h + step, Euclidean(2), [None, None], unordered(h))
    assert both < 0.2 + alone


def test_measurements_of_a_sphere_of_a_box_and_of_their_product():
    ball = pairs(Sphere(3, radius=2.0), VonMisesFisher(20.0), 500)
    stretch = np.array([1, 1, 0.9])
    ball = ball[0], ball[1] * stretch
    order = unordered(ball[0])
    found = positives(*ball, Sphere(3, radius=2.0), VonMisesFisher(1.0), order, 0)
    kappa = concentration(*ball)
    drawn = simulated(ball[0], Sphere(3, radius=2.0), kappa, random_state=0)
    steps = [np.linalg.norm(part - ball[0], axis=1) for part in (ball[1], drawn)]
    spread = np.linalg.svd((ball[1] - ball[0]) - (ball[1] - ball[0]).mean(0), compute_uv=False)
    assert found.codes == [None] * 3
    assert found.concentration == kappa
    assert found.misfit == stats.ks_2samp(*steps).statistic
    assert found.anisotropy == pytest.approx(spread[0] / spread[-1])
    flat = pairs(Box(2), Laplace(0.1), 500)
    flat = flat[0] * [1, 3], flat[1] * [1, 3.5]
    box = positives(*flat, Box(2), GeneralizedNormal(3.0, 1.0), order, 0)
    size = np.median(np.abs(flat[1] - flat[0]), axis=0)
    assert box.anisotropy == pytest.approx(size.max() / size.min())
    assert box.misfit == misfit(inner_differences(*flat, Box(2)), 3.0)
    assert box.codes == fit_differences(inner_differences(*flat, Box(2)))
    assert box.concentration is None
    assert positives(*flat, Box(2), Normal(1.0), order, 0).misfit == misfit(
        inner_differences(*flat, Box(2)), 2.0
    )
    space = Product(Sphere(3, radius=2.0), Box(2))
    joint = Joint((VonMisesFisher(1.0), 3), (GeneralizedNormal(3.0, 1.0), 2))
    both = positives(
        *(np.c_[a, b] for a, b in zip(ball, flat, strict=True)), space, joint, order, 0
    )
    assert both.codes == [*found.codes, *box.codes]
    assert both.concentration == kappa
    for name in ("misfit", "anisotropy", "bend"):
        assert getattr(both, name) == max(getattr(found, name), getattr(box, name))


def test_the_ratio_of_spreads_of_codes_that_do_not_move():
    h = np.random.default_rng(0).normal(size=(200, 2))
    for step, expected in (([1, 0], math.inf), ([0, 0], 1.0), ([2, 0.5], 4.0)):
        moved = h + 0.1 * np.array(step) * np.where(np.arange(200) % 2, 1, -1)[:, None]
        found = positives(h, moved, Euclidean(2), Normal(1.0), unordered(h), 0)
        assert found.anisotropy == pytest.approx(expected)


def test_a_rotation_bends_nothing_on_a_sphere():
    z, z_pos = pairs(Sphere(3), VonMisesFisher(20.0), 600)
    kappa = concentration(z, z_pos)
    turned = [part @ rotation(3) for part in (z, z_pos)]
    assert position_dependence(*turned, Sphere(3), kappa, unordered(z)) < 0.15
