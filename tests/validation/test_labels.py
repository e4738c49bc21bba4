"""The comparison by labels, with encoders that need no training."""

import json

import numpy as np
import pytest

from identica.datasets.recordings import Recording
from validation import labels


@pytest.fixture
def rat(monkeypatch):
    """A rat that runs to and fro, and two neurons that say where."""
    phase = np.cumsum(np.random.default_rng(0).uniform(0.005, 0.02, 1500)) % 2
    position = 1.6 * (1 - np.abs(phase - 1))
    counts = np.stack([100 * position, 160 - 100 * position], axis=1).astype(np.uint8)
    found = Recording("rat", counts, position, 0.025, (phase > 1).astype(np.uint8))
    monkeypatch.setattr(labels.recordings, "load", lambda name: found)
    return found


def test_codes_are_judged_on_the_last_fifth_of_which_no_encoder_has_seen_labels(rat):
    seen = []

    def encoder(counts, given, *, seed):
        seen.append((counts, given))
        return lambda rows: rows.astype(float)

    found = labels.measure("rat", encoder, 0)
    [(counts, given)] = seen
    np.testing.assert_array_equal(counts, rat.counts[:1200])
    np.testing.assert_array_equal(given, np.stack([rat.label, rat.direction], axis=1)[:1200])
    assert found["position_error"] < 2  # cm: places are rounded to one
    assert labels.measure("rat", lambda *_, seed: np.zeros_like, 0)["position_error"] > 20


def test_what_is_measured_again_replaces_its_old_figures(rat, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(labels, "RESULTS", tmp_path / "labels.json")
    monkeypatch.setattr(labels, "TABLE", tmp_path / "labels.md")
    monkeypatch.setattr(labels.peers, "cebra_is_installed", lambda: False)
    old = {"seed": 0, "position_error": 7.0, "position_error_smoothed": 5.0, "seconds": 9.0}
    both = {"ContrastiveICA, labels": [old], "CEBRA-Behavior": [old]}
    (tmp_path / "labels.json").write_text(json.dumps({"gatsby": both, "achilles": both}))
    fake = {"ContrastiveICA, labels": (lambda *_, seed: np.asarray, 2)}
    monkeypatch.setattr(labels, "MODELS", fake | {"CEBRA-Behavior": (labels.cebra_behavior, 1)})
    assert labels.main(["gatsby"]) == 0
    found = json.loads((tmp_path / "labels.json").read_text())
    assert found["achilles"] == both
    assert found["gatsby"]["CEBRA-Behavior"] == [old]
    assert len(found["gatsby"]["ContrastiveICA, labels"]) == 2
    assert "| rat Achilles | CEBRA-Behavior | 1 | 7.00 cm |" in (tmp_path / "labels.md").read_text()
    assert labels.main(["gatsbi"]) == 2
    assert "unknown recording" in capsys.readouterr().err
