"""What is said of the density of codes that are made directly, and what a potential promises by it."""

import numpy as np
import pytest

from helpers.codes import N, judged, level, rotation, same
from identica import Box, Euclidean, Laplace, Normal, Product, Sphere, VonMisesFisher
from identica.diagnosis.density import density, valley
from identica.diagnosis.verdict import LINEAR, PERMUTATION, UNSURE

RNG = np.random.default_rng(0)
NORMAL = RNG.normal(size=(4000, 2))
SIGNS = RNG.choice([-1.0, 1.0], size=(4000, 2))


@pytest.mark.parametrize(
    ("codes", "words"),
    [
        (NORMAL, "They are bell-shaped."),
        (RNG.laplace(size=(4000, 2)), "They are peaked, with heavy tails."),
        (RNG.exponential(size=(4000, 2)), "They are skewed."),
        (1 - RNG.uniform(size=(4000, 2)), "They are flat."),
        (1.5 * SIGNS + 0.6 * NORMAL, "They have two modes or more."),
        (
            np.c_[NORMAL[:, 0], RNG.exponential(size=4000)],
            "They are bell-shaped (code 1) and are skewed (code 2).",
        ),
        (
            NORMAL @ np.array([[1, 0.75], [0, 0.66]]),
            "They are bell-shaped (codes 1, 2) and are correlated (by up to 0.7",
        ),
    ],
)
def test_words_for_a_density(codes, words):
    found = density(codes, Euclidean(2), len(codes))
    assert found.words.startswith(words)
    assert not found.gap
    # units and signs do not matter
    assert density(-7 - 3 * codes, Box(2), len(codes)).words[:30] == found.words[:30]


def test_words_for_directions_and_products():
    around = NORMAL + np.array([1.0, 0.0])
    around /= np.linalg.norm(around, axis=1, keepdims=True)
    assert density(around, Sphere(2), 4000).words == "They gather around one direction."
    opposite = np.r_[around, -around]
    assert density(opposite, Sphere(2), 8000).words == "They are uneven on the sphere."
    both = density(np.c_[around, NORMAL[:, :1]], Product(Sphere(2), Euclidean(1)), 4000).words
    assert both == "They are bell-shaped (code 3) and gather around one direction."
    assert density(np.zeros((100, 2)), Box(2), 100).words == "They do not vary."


def test_a_valley_is_as_deep_as_the_density_says():
    """A mixture of two normals has a known density between its modes; smoothing fills it a little."""
    rng = np.random.default_rng(1)
    for apart, known in ((1.5, 2 * np.exp(-(1.5**2) / 2)), (2.5, 2 * np.exp(-(2.5**2) / 2))):
        values = apart * rng.choice([-1.0, 1.0], size=20_000) + rng.normal(size=20_000)
        assert known < valley(values, 20_000) < known + 0.15
    assert valley(rng.normal(size=4000), 4000) > 0.95
    assert valley(rng.normal(size=4000), 50) == pytest.approx(1)  # few rows are no peaks


def normal_pairs(step=0.5, n=2):
    rng = np.random.default_rng(0)
    z = rng.normal(size=(2 * N, n))
    return z, z + step * rng.normal(size=z.shape)


def wide(pair):
    """Observations with more columns than factors."""
    return tuple(np.c_[z, np.tanh(z)] for z in pair)


def test_a_normal_marginal_is_no_reason_for_doubt_with_a_potential():
    pair = normal_pairs()
    turned = [same, lambda z: z @ rotation(2)]
    judge = {"pair": pair, "observations": wide(pair)}
    doubted = judged(turned, Euclidean(2), Normal(0.5), **judge)
    assert doubted.verdict == UNSURE
    assert doubted.findings[0].advice.startswith('marginal="any"')
    found = judged(turned, Euclidean(2), Normal(0.5), **judge, potential=True)
    assert found.verdict == LINEAR
    said = next(f for f in found.findings if f.check == "marginal")
    assert said.level == "caution"
    assert said.seen.endswith("They are bell-shaped.")
    assert "codes are a rotation of the factors (Proposition A)" in said.means


def test_a_distance_with_axes_finds_each_factor():
    rng = np.random.default_rng(0)
    z = rng.exponential(size=(2 * N, 2))
    pair = z, z + rng.laplace(scale=0.5, size=z.shape)
    found = judged(
        [same, same], Euclidean(2), Laplace(0.5), pair=pair, observations=wide(pair), potential=True
    )
    assert found.verdict == PERMUTATION
    assert "each code is one factor (Proposition B)" in str(found)
    assert "They are skewed." in str(found)


def test_a_potential_does_not_make_up_for_anything_else():
    pair = normal_pairs()
    shown = {"pair": pair, "observations": wide(pair), "potential": True}
    another = judged([same, same], Euclidean(2), Laplace(0.5), **shown)
    assert level(another, "conditional") != "fine"
    assert another.verdict == UNSURE
    assert "see conditional" in str(another)
    bare = judged(
        [same, same], Euclidean(2), Normal(0.5), pair=pair, observations=pair, potential=True
    )
    assert bare.verdict == UNSURE
    assert "no more factors than columns" in str(bare)
    apart = np.random.default_rng(1).choice([-6.0, 6.0], size=(2 * N, 1))
    far = tuple(z + apart * [1, 0] for z in pair)
    split = judged(
        [same, same], Euclidean(2), Normal(0.5), pair=far, observations=wide(far), potential=True
    )
    assert split.verdict == UNSURE
    assert "regions that hardly any pair connects" in str(split)
    # what no proposition covers
    ball = tuple(z / np.linalg.norm(z, axis=1, keepdims=True) for z in (pair[0] + 1, pair[1] + 1))
    sphere = judged([same, same], Sphere(2), Normal(0.5), pair=ball, potential=True)
    assert level(sphere, "marginal") == "unsure"
    assert "the conditional must be von Mises–Fisher" in str(sphere)


def test_uniform_codes_are_judged_as_ever():
    for potential in (False, True):
        found = judged([same, same], Box(3), Laplace(0.05), potential=potential)
        assert found.verdict == PERMUTATION
        assert level(found, "marginal") == "fine"


def test_a_potential_has_no_words_for_uniform_directions():
    found = judged([same, same], Sphere(3), VonMisesFisher(20.0), potential=True)
    assert level(found, "marginal") == "fine"
    assert "gather" not in str(found)
