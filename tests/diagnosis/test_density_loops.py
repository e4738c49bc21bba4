"""Words for densities and their limits, and valleys beside a plain sum of kernels."""

import math

import numpy as np
import pytest
from scipy import stats

from identica import Box, Euclidean, Normal, Product, Sphere
from identica.diagnosis.density import Density, density, finding, valley
from identica.diagnosis.dimension import Dimensions, Intrinsic
from identica.diagnosis.verdict import Finding

RNG = np.random.default_rng(0)


def expected_valley(values, independent):
    low, high = np.quantile(values, (0.001, 0.999))
    width = 1.06 * values.std() / max(independent, 10) ** 0.2
    edges = np.linspace(low - 3 * width, high + 3 * width, 201)
    counts = [
        sum(edges[k] <= x < edges[k + 1] or (k == 199 and x == edges[200]) for x in values)
        for k in range(200)
    ]
    step = edges[1] - edges[0]
    smooth = [
        sum(n * math.exp(-(((i - j) * step / width) ** 2) / 2) for j, n in enumerate(counts))
        for i in range(200)
    ]
    least = 1.0
    for k in range(200):
        lower = min(max(smooth[: k + 1]), max(smooth[k:]))
        if lower > 0.1 * max(smooth):
            least = min(least, smooth[k] / lower)
    return least


@pytest.mark.parametrize("independent", [5, 10, 60, 1000])
@pytest.mark.parametrize("share", [0.05, 0.08, 0.12, 0.5])  # a rare mode is part of a tail
def test_a_valley_beside_loops(independent, share):
    rng = np.random.default_rng(1)
    values = np.r_[rng.normal(size=200), rng.normal(5, 1, size=int(200 * share))]
    expected = expected_valley(values, independent)
    assert valley(values, independent) == pytest.approx(expected, rel=1e-9)


def spread(gap):
    """Two modes with nearly nothing, or something, between them."""
    one = stats.norm.ppf((np.arange(1000) + 0.5) / 1000)
    return np.r_[one - gap, one + gap]


@pytest.mark.parametrize(("gap", "words"), [(1.0, "bell"), (1.5, "two modes"), (3.0, "two modes")])
def test_modes_and_gaps_have_limits(gap, words):
    values = spread(gap)
    found = density(np.c_[values, np.roll(values, 500)], Euclidean(2), 2000)
    deep = valley(values, 2000)
    assert ("two modes" in found.words) == (deep < 0.8) == (words == "two modes")
    assert found.gap == (deep < 0.03)


def depths(target):
    """A distance of two modes, whose valley has a given depth."""
    low, high = 1.0, 8.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if valley(spread(middle), 2000) > target else (low, middle)
    return low, high


def test_a_valley_of_four_fifths_is_one_and_one_of_three_hundredths_a_gap():
    for above, below in (depths(0.8), depths(0.03)):
        one, other = (
            density(spread(at)[:, None], Euclidean(1), 2000) for at in (above - 1e-6, below + 1e-6)
        )
        assert (one.words, one.gap) != (other.words, other.gap)


def bent(strength, power):
    """A column of a given skewness or kurtosis, close to normal."""
    x = stats.norm.ppf((np.arange(4000) + 0.5) / 4000)
    return x + strength * (x**2 if power == 2 else x**3)


def at_limit(statistic, limit, make, low, high):
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if statistic(make(middle)) < limit else (low, middle)
    return make(low - 1e-6), make(high + 1e-6)


def test_the_limits_of_skewness_and_of_kurtosis():
    def said(values):
        return density(values[:, None], Euclidean(1), 4000).words

    one, other = at_limit(stats.skew, 0.5, lambda s: bent(s, 2), 0.0, 0.3)
    assert (said(one), said(other)) == ("They are bell-shaped.", "They are skewed.")
    assert (said(-one), said(-other)) == ("They are bell-shaped.", "They are skewed.")
    one, other = at_limit(stats.kurtosis, 1.0, lambda s: bent(s, 3), 0.0, 0.3)
    assert said(one) == "They are bell-shaped."
    assert said(other) == "They are peaked, with heavy tails."
    # between a uniform distribution and a normal one
    one, other = at_limit(
        stats.kurtosis,
        -0.7,
        lambda s: (1 - s) * (stats.norm.cdf(bent(0, 2)) - 0.5) * math.sqrt(12) + s * bent(0, 2),
        0.0,
        1.0,
    )
    assert (said(one), said(other)) == ("They are flat.", "They are bell-shaped.")


def test_the_limits_of_correlation_and_of_a_mean_direction():
    one = stats.norm.ppf((np.arange(500) + 0.5) / 500)
    other = RNG.permutation(one)
    other -= one * (other @ one) / (one @ one)
    other *= one.std() / other.std()
    still = np.ones(500)
    for correlation, expected in ((0.299, False), (0.301, True), (-0.301, True)):
        second = correlation * one + math.sqrt(1 - correlation**2) * other
        found = density(np.c_[one, still, second], Box(3), 500)
        assert ("correlated (by up to 0.30)" in found.words) == expected
        assert "(codes 1, 3)" in found.words or not expected
        apart = density(np.c_[one, second], Product(Euclidean(1), Euclidean(1)), 500)
        assert "correlated" not in apart.words
    for mean, words in ((0.199, "uneven on the sphere"), (0.201, "gather around one direction")):
        angle = math.acos(mean) * np.where(np.arange(500) % 2, 1, -1)
        ball = 3 * np.c_[np.cos(angle), np.sin(angle)]
        assert words in density(ball, Sphere(2), 500).words


def test_parts_are_listed():
    x = stats.norm.ppf((np.arange(2000) + 0.5) / 2000)
    columns = [x, np.exp(x), stats.norm.cdf(x), spread(3.0)]
    h = np.stack([RNG.permutation(column) for column in columns], 1)
    assert density(h, Euclidean(4), 2000).words == (
        "They are bell-shaped (code 1), are skewed (code 2), are flat (code 3) and "
        "have two modes or more (code 4)."
    )
    ball = h[:, :2] / np.linalg.norm(h[:, :2], axis=1)[:, None]
    twice = density(np.c_[h[:, :1], ball, h[:, :1]], Product(Box(1), Sphere(2), Box(1)), 2000)
    assert twice.words.startswith("They are bell-shaped (codes 1, 4) and gather")
    assert twice.gap is False


UNEVEN = Finding("marginal", "unsure", "Codes are uneven.", "…", "more steps.")


@pytest.mark.parametrize(
    ("columns", "others", "words", "level"),
    [
        (3, [], "the potential allows for it: codes are a rotation", "caution"),
        (None, [], "the potential allows for it: codes are a rotation", "caution"),
        (2, [], "no more factors than columns", "unsure"),
        (3, [("bend", "caution"), ("rows", "wrong")], "is right, see bend and rows.", "unsure"),
        (3, [("bend", "fine"), ("score", "wrong")], "the potential allows for it", "caution"),
    ],
)
def test_what_a_potential_allows_for(columns, others, words, level):
    measured = Dimensions(
        [True] * 2, np.ones(2), np.ones(2), Intrinsic(2.0, 0.0, 2), columns, None, None
    )
    findings = [Finding(check, level, "…", "…", f"about {check}") for check, level in others]
    said = finding(
        UNEVEN, Density("They bend."), findings, measured, Euclidean(2), Normal(1.0), False
    )
    assert said.level == level
    assert words in said.means[0].lower() + said.means[1:]
    assert said.seen == "Codes are uneven. They bend."
    advice = {3: "about bend", 2: "more columns, if there are any."}
    assert said.advice == ("" if level == "caution" else advice[columns])
