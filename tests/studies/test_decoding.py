"""The decoder that all models share: known answers, chosen before the test, scores in [0, 1]."""

import numpy as np
import pytest

from identica.estimator import windows
from identica.studies import decoding
from identica.studies.decoding import Labelled, smoothed


def scores(what, known, test):
    """Those of codes that are smoothed after they are made."""

    def coded(window):
        return tuple(Labelled(smoothed(part.codes, window), part.label) for part in (known, test))

    return decoding.scores(what, coded)


def ring(rows, seed=0):
    rng = np.random.default_rng(seed)
    angle = decoding.wrapped(np.cumsum(0.1 * rng.normal(size=rows)))
    return angle, np.c_[np.cos(angle), np.sin(angle)]


@pytest.mark.parametrize("sign", [1, -1])
def test_a_ring_is_turned_back_by_what_is_known(sign):
    angle, _ = ring(4000)
    seen = sign * angle + 2.0
    codes = 3 * np.c_[np.cos(seen), np.sin(seen)]
    known, test = Labelled(codes, angle).split(3000)
    turn, found = decoding.rotation(known)
    assert found == sign
    off = decoding.wrapped(decoding.decode("angle", known, test.codes) - test.label)
    assert np.abs(off).max() <= np.pi / decoding.TURNS + 1e-9
    assert decoding.error("angle", test.label, test.label + np.pi) == pytest.approx(1)
    assert decoding.error("angle", test.label, test.label + 4.5 * np.pi) == pytest.approx(0.5)
    assert -np.pi <= turn <= np.pi


def test_a_ring_that_is_wound_twice_is_not_unwound():
    """Whatever the rotation, errors are spread evenly over all angles."""
    angle = np.random.default_rng(0).uniform(-np.pi, np.pi, 4000)
    known, test = Labelled(np.c_[np.cos(2 * angle), np.sin(2 * angle)], angle).split(3000)
    found = scores("angle", known, test)[0]["angle_error"]
    assert found == pytest.approx(0.5, abs=0.08)  # of a median of 1,000, and the best of 720


def test_positions_are_means_of_the_nearest():
    rng = np.random.default_rng(0)
    position = rng.uniform(0, 1.6, 400)
    codes = np.c_[np.sin(position), position**2] + 0.1 * rng.normal(size=(400, 2))
    known, test = Labelled(codes, position).split(300)

    def nearest(some, label, of, k):
        far = ((of[:, None] - some[None]) ** 2).sum(-1)
        return np.array([label[row.argsort()[:k]].mean() for row in far])

    before, after = known.split(300 * 7 // 8)
    missed = {
        k: np.median(np.abs(nearest(*before, after.codes, k) - after.label))
        for k in decoding.NEIGHBOURS
    }
    expected = nearest(*known, test.codes, min(missed, key=missed.get))
    np.testing.assert_allclose(decoding.decode("position", known, test.codes), expected)
    found = scores("position", known, test)[0]["position_error"]
    assert found == pytest.approx(np.median(np.abs(expected - test.label)) / 1.6)


def test_factors_by_a_linear_map_of_the_past():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(500, 3))
    codes = z @ rng.normal(size=(3, 4)) + 0.2 * rng.normal(size=(500, 4)) + 5
    known, test = Labelled(codes, z).split(400)
    one = np.ones((500, 1))
    weights = np.linalg.lstsq(np.hstack([codes, one])[:400], z[:400], rcond=None)[0]
    left = test.label - np.hstack([codes, one])[400:] @ weights
    expected = np.mean(1 - (left**2).mean(0) / test.label.var(0))
    assert scores("factors", known, test)[0]["r2"] == pytest.approx(expected)
    far = decoding.error("factors", test.label, 100 + test.label)
    assert far == 1  # worse than the mean counts as nothing


@pytest.mark.parametrize("what", decoding.SCORES)
def test_scores_are_named_and_lie_in_0_to_1(what):
    rng = np.random.default_rng(0)
    label = {"factors": rng.normal(size=(300, 2)), "position": 1.6 * rng.random(300)}
    label["angle"] = rng.uniform(-np.pi, np.pi, 300)
    known, test = Labelled(rng.normal(size=(300, 2)), label[what]).split(200)
    found, window = scores(what, known, test)
    assert window in decoding.WINDOWS
    assert tuple(found) == decoding.SCORES[what]
    assert all(0 <= value <= 1 for value in found.values())


def test_smoothing_is_chosen_without_the_test():
    angle, codes = ring(3000)
    rng = np.random.default_rng(1)
    known, test = Labelled(codes + 2 * rng.normal(size=codes.shape), angle).split(2000)
    found, window = scores("angle", known, test)
    assert window > 1
    assert found["angle_error_smoothed"] < found["angle_error"]
    other = Labelled(test.codes, np.roll(test.label, 300))
    assert scores("angle", known, other)[1] == window
    clean = Labelled(codes[::50], angle[::50])  # neighbours say nothing of it
    assert scores("angle", clean, clean)[1] == 1


@pytest.mark.parametrize("window", [1, 3, 7])
def test_smoothing_as_a_loop(window):
    codes = np.random.default_rng(0).normal(size=(20, 2))
    half = window // 2
    expected = [codes[max(0, t - half) : t + half + 1].mean(0) for t in range(20)]
    np.testing.assert_allclose(smoothed(codes, window), expected, atol=1e-12)


def test_windows_are_those_of_the_estimator():
    """So that smoothing afterwards is no better than a window before; odd, so that they have a middle."""
    assert decoding.WINDOWS == windows.WINDOWS
    assert all(window % 2 for window in decoding.WINDOWS)
    assert decoding.train_rows(1000) == 800
    known = Labelled(np.arange(16.0)[:, None], np.arange(16.0))
    before, after = decoding.choose(known)
    assert (len(before.codes), after.label.tolist()) == (14, [14, 15])


def test_a_rotation_is_found_by_twenty_thousand_codes(monkeypatch):
    monkeypatch.setattr(decoding, "ENOUGH", 10)
    angle, codes = ring(40)
    codes[np.arange(40) % 4 != 0] *= np.array([-1, 1])  # only every fourth is looked at
    assert decoding.rotation(Labelled(codes, angle)) == (pytest.approx(0, abs=0.02), 1)
    assert decoding.rotation(Labelled(codes[1:], angle[1:])) != (pytest.approx(0, abs=0.02), 1)


@pytest.mark.parametrize(
    ("angle", "expected"), [(np.pi, -np.pi), (-np.pi, -np.pi), (7.0, 7 - 2 * np.pi)]
)
def test_angles_lie_between_minus_pi_and_pi(angle, expected):
    assert decoding.wrapped(angle) == pytest.approx(expected)
    assert decoding.error("angle", np.zeros(3), np.full(3, angle)) == pytest.approx(
        abs(expected) / np.pi
    )
    assert decoding.error("position", np.zeros(3), np.full(3, 0.4)) == pytest.approx(0.25)
    assert decoding.error("position", np.zeros(3), np.full(3, 9.0)) == 1
