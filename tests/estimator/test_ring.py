"""A ring of codes is straightened by the difference of two lags."""

import numpy as np
import pytest
import torch

from helpers.fits import TINY
from identica import ContrastiveICA, InputError, checkpoints
from identica.estimator.pairs import ArrayPairs
from identica.estimator.ring import bend, straightened
from identica.estimator.sequences import sequences

ROWS, LAG = 60_000, 10


def wrapped(angle):
    return np.angle(np.exp(1j * angle))


def turns(seed, rows=ROWS):
    """A direction that turns as a random walk, 2.9 degrees per step."""
    return np.random.default_rng(seed).normal(0, 0.05, rows).cumsum()


def bent(truth, strength=0.6):
    """Angles on a ring that is squeezed around 0 and stretched around π."""
    return truth - strength * np.sin(truth)


def codes(angle):
    return torch.from_numpy(np.stack([np.cos(angle), np.sin(angle)], 1))


def error(found, truth):
    """Mean error in radians after the best rotation; `bend` knows no origin."""
    missed = wrapped(np.arctan2(found[:, 1], found[:, 0]) - truth)
    return np.abs(wrapped(missed - np.angle(np.exp(1j * missed).mean()))).mean()


def noisy(truth, seed):
    """A bent ring with more noise where it is squeezed, so that differences within pairs are alike."""
    noise = 0.15 * (1 + 0.5 * np.cos(truth))
    return bent(truth + noise * np.random.default_rng(seed).normal(size=len(truth)))


@pytest.mark.parametrize("seed", [0, 1])
def test_a_bent_ring_is_straightened_though_its_noise_is_uneven(seed):
    truth = turns(seed)
    found = bend(wrapped(noisy(truth, seed + 10)), sequences(ROWS, LAG))
    clean = codes(bent(truth)).numpy()
    straight = straightened(codes(bent(truth)), found).numpy()
    # a sine of amplitude .6 has the mean absolute value .38
    assert error(clean, truth) > 0.3
    assert error(straight, truth) < 0.12
    assert np.allclose(np.linalg.norm(straight, axis=1), 1)


def test_a_straight_ring_stays_as_it_is_under_even_noise():
    truth = turns(2)
    angle = wrapped(truth + 0.3 * np.random.default_rng(3).normal(size=ROWS))
    found = bend(angle, sequences(ROWS, LAG))
    some = codes(truth[:100])
    moved = straightened(some, found)
    assert error(moved.numpy(), truth[:100]) < 0.06


@pytest.mark.parametrize("seed", range(4))
def test_rows_in_random_order_show_no_bend(seed):
    angle = np.random.default_rng(seed).permutation(wrapped(bent(turns(seed))))
    assert len(bend(angle, sequences(ROWS, LAG))) == 1


def test_changes_across_the_ends_of_sequences_do_not_count():
    """600 sequences whose order is random are as good as one whole; jumps between them would hide it."""
    truth = turns(4)
    parts = np.random.default_rng(5).permutation(truth.reshape(600, 100)).ravel()
    groups = np.repeat(np.arange(600), 100)
    whole = bend(wrapped(noisy(truth, 6)), sequences(ROWS, LAG))
    cut = bend(wrapped(noisy(parts, 6)), sequences(ROWS, LAG, groups))
    for found in (whole, cut):
        assert error(straightened(codes(bent(truth)), found).numpy(), truth) < 0.15


def test_the_mean_change_is_that_of_a_walk():
    """Steps of variance s² that are independent: over 15 steps it is 5 s² more than over 10."""
    assert bend(wrapped(turns(7)), sequences(ROWS, LAG))[0] == pytest.approx(5 * 0.05**2, rel=0.1)


def test_angles_move_by_the_inverse_root_of_the_change():
    """∫ (1 + a cos φ)^{−1/2} dφ by scipy, at some angles, of codes of any length."""
    from scipy.integrate import quad

    a, angle, radius = 0.5, np.array([-2.0, 0.0, 1.0, 3.0]), np.array([[1.0], [2.0], [0.5], [3.0]])
    part = [quad(lambda t: (1 + a * np.cos(t)) ** -0.5, -np.pi, phi)[0] for phi in (*angle, np.pi)]
    expected = 2 * np.pi * np.array(part[:-1]) / part[-1] - np.pi
    moved = straightened(torch.from_numpy(radius) * codes(angle), np.array([1.0, a, 0.0])).numpy()
    # trapezoids of 0.0087 radians, and interpolation between them
    assert np.allclose(np.arctan2(moved[:, 1], moved[:, 0]), expected, atol=1e-4)
    assert np.allclose(np.linalg.norm(moved, axis=1), radius[:, 0])
    assert straightened(codes(angle), np.ones(1)).equal(codes(angle))


def test_codes_are_straightened_before_they_are_averaged():
    x = np.random.default_rng(0).normal(size=(300, 3)).cumsum(axis=0)
    ica = ContrastiveICA(2, space="sphere", window=3, **TINY).fit(x)
    assert len(ica.ring_) == 1  # too few rows to show a bend
    ica.ring_ = np.array([1.0, 0.8, 0.0])
    seen = ArrayPairs(x.astype(np.float32), within=sequences(300), window=3)
    with torch.no_grad():
        single = straightened(ica.model_(seen.observed(np.arange(300))), ica.ring_).numpy()
    mean = np.stack([single[max(t - 2, 0) : t + 3].mean(0) for t in range(300)])
    expected = mean / np.linalg.norm(mean, axis=1, keepdims=True)
    assert np.allclose(ica.transform(x), expected, atol=1e-4)


@pytest.mark.parametrize(
    ("options", "how"),
    [
        ({"space": "box", "window": 3}, {}),
        ({"space": "sphere", "window": 1}, {}),
        ({"space": "sphere", "window": 3, "marginal": "any"}, {}),
        ({"space": "sphere", "window": 3}, {"labels": np.arange(300) % 7}),
    ],
    ids=["box", "no window", "potential", "labels"],
)
def test_other_codes_stay_as_they_are(options, how, monkeypatch):
    monkeypatch.setattr("identica.estimator.transform.bend", lambda *_: pytest.fail("measured"))
    x = np.random.default_rng(0).normal(size=(300, 3)).cumsum(axis=0)
    assert ContrastiveICA(2, **options, **TINY).fit(x, **how).ring_.tolist() == [1.0]


def test_a_ring_is_saved(tmp_path):
    x = np.random.default_rng(0).normal(size=(300, 3)).cumsum(axis=0)
    ica = ContrastiveICA(2, space="sphere", window=3, **TINY).fit(x)
    ica.ring_ = np.array([1.0, 0.3, 0.4])
    ica.save(tmp_path / "ica")
    back = ContrastiveICA.load(tmp_path / "ica")
    assert np.array_equal(back.ring_, ica.ring_)
    assert np.array_equal(back.transform(x), ica.transform(x))


@pytest.mark.parametrize("ring", [[1.0, 0.5], [], [[1.0]], [np.nan], [-1.0, 0.2, 0.2], "ring"])
def test_a_ring_that_is_invalid_is_refused(ring, tmp_path):
    ica = ContrastiveICA(2, steps=1, batch=16).fit(np.random.default_rng(0).normal(size=(60, 3)))
    ica.save(tmp_path / "ica")
    state = checkpoints.load(tmp_path / "ica")
    state["fitted"]["ring"] = ring
    checkpoints.save(tmp_path / "ica", state)
    with pytest.raises(InputError, match="invalid"):
        ContrastiveICA.load(tmp_path / "ica")
