"""The parts of the error of decoded directions, where they are known."""

import numpy as np
import pytest

from identica.datasets.neurons import head_direction_cells
from identica.studies.decoding import wrapped
from validation import ring


@pytest.fixture
def mouse(monkeypatch):
    """Neurons that are tuned to a known direction."""
    found = head_direction_cells(20_000, seed=0)
    monkeypatch.setattr(ring, "measured", lambda: (found.counts, found.label))
    monkeypatch.setattr(ring, "BINS", 20_000)
    return found


def test_a_smooth_bend_is_taken_away_and_noise_is_not():
    rng = np.random.default_rng(0)
    angle = rng.uniform(-np.pi, np.pi, 5000)
    bent = wrapped(angle + 0.3 * np.sin(angle))
    straight, bend = ring.straightened(bent, angle)
    assert ring.degrees(bent, angle) > 10
    assert ring.degrees(straight, angle) < 0.5
    # r.m.s. of 0.3 sin, over angles among which the bent ones are not spread evenly
    assert bend == pytest.approx(np.degrees(0.3 / np.sqrt(2)), rel=0.1)
    noisy = wrapped(angle + rng.normal(0, 0.2, 5000))
    straight, bend = ring.straightened(noisy, angle)
    # the median of |noise| is 0.674 standard deviations; 16 waves of 5000 rows can fit little of it
    assert ring.degrees(straight, angle) == pytest.approx(np.degrees(0.674 * 0.2), rel=0.1)
    assert bend < 2


def test_tuning_curves_are_measured_and_moved(mouse):
    curves = ring.tuning(mouse.counts, mouse.label)
    assert curves.shape == (ring.ANGLES, 19)
    np.testing.assert_allclose(ring.at_angles(curves, ring.CENTRES), curves)
    step = 2 * np.pi / ring.ANGLES
    moved = ring.turned(curves, np.full(19, 3 * step))
    np.testing.assert_allclose(moved, np.roll(curves, 3, axis=0), atol=1e-9)


def test_simulations_keep_what_was_measured(mouse):
    counts, angle = ring.simulated(0)
    assert counts.shape == (20_000, 19)
    assert counts.dtype == np.uint8
    assert np.abs(angle).max() <= np.pi
    # pieces start where the last one ended, so that the direction never jumps
    assert (
        np.abs(wrapped(np.diff(angle))).max() <= np.abs(wrapped(np.diff(mouse.label))).max() + 0.1
    )
    rates, _ = ring.simulated(0, spikes=False)
    assert not np.array_equal(rates, np.round(rates))
    even, angle = ring.simulated(0, even=True)
    curves = ring.tuning(even, angle)
    preferred = np.sort(np.angle(np.exp(1j * ring.CENTRES) @ curves))
    gaps = np.diff(preferred)
    assert gaps.max() < 3 * 2 * np.pi / 19


def test_the_decoder_with_true_directions_beats_chance_by_far(mouse):
    counts, angle = mouse.counts, mouse.label
    assert ring.supervised(counts, angle, 16_000) < 15
    shuffled = np.random.default_rng(0).permutation(counts)
    assert ring.supervised(shuffled, angle, 16_000) > 40


def test_what_is_measured_again_replaces_its_old_figures(mouse, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(ring, "RESULTS", tmp_path / "ring.json")
    monkeypatch.setattr(ring, "TABLE", tmp_path / "ring.md")
    monkeypatch.setattr(ring, "SEEDS", (0,))
    monkeypatch.setattr(ring, "VARIANTS", {"some": ({}, {"window": 5})})
    monkeypatch.setattr(ring.recordings, "load", lambda name: mouse)
    seen = []

    def measure(data, seed, **fitted):
        seen.append(fitted)
        errors = {"error": 3.0, "as trained": 5.0, "straightened": 2.0, "bend": 1.0}
        return {"seed": seed, "window": 5, **errors}

    monkeypatch.setattr(ring, "measure", measure)
    monkeypatch.setattr(ring, "decoded", lambda data, seed: {"seed": seed, "supervised": 4.0})
    assert ring.main(["decoder"]) == 0
    assert not seen
    assert ring.main(["codes"]) == 0
    assert seen == [{"window": 5}, {}]
    for name in ("some", ring.RECORDED):
        line = f"| {name} | 5 | 3.0° | 5.0° | 2.0° | 4.0° | 1.0° |"
        assert line in (tmp_path / "ring.md").read_text()
    assert ring.main(["code"]) == 2
    assert "unknown part" in capsys.readouterr().err


def test_the_table_has_means_of_seeds():
    runs = [
        {"seed": 0, "window": w, "error": e, "straightened": 1.0, "bend": 2.0}
        for w, e in ((21, 3.0), (31, 5.0))
    ]
    assert "| some data | 21, 31 | 4.0° | – | 1.0° | – | 2.0° |" in ring.table({"some data": runs})
