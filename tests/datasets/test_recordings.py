"""Recordings: files that are whole, absent, cut short or of something else."""

import numpy as np
import pytest

from identica import InputError
from identica.cli import main
from identica.datasets import recordings
from identica.datasets.recordings import SOURCES, Recording, load


def content(name, rows=20, **other):
    rng = np.random.default_rng(0)
    label = SOURCES[name].label
    made = {
        "counts": rng.poisson(0.5, (rows, 4)).astype(np.uint8),
        label: np.linspace(0, 1.6, rows, dtype=np.float32),
        "direction": (np.arange(rows) % 2).astype(np.uint8),
    }
    if label == "angle":
        del made["direction"]
    return made | other


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("IDENTICA_DATA", str(tmp_path))
    (tmp_path / "recordings").mkdir()
    return tmp_path / "recordings"


@pytest.mark.parametrize("name", SOURCES)
def test_a_recording_is_what_its_file_holds(name, root):
    made = content(name)
    np.savez_compressed(root / SOURCES[name].file, **made)
    found = load(name)
    assert (found.name, len(found)) == (name, 20)
    np.testing.assert_array_equal(found.counts, made["counts"])
    np.testing.assert_array_equal(found.label, made[SOURCES[name].label])
    if name == "head-direction":
        assert (found.bin, found.direction) == (0.01, None)
    else:
        assert found.bin == 0.025
        np.testing.assert_array_equal(found.direction, made["direction"])
    with pytest.raises(ValueError, match="read-only"):
        found.counts[0] = 1


def test_an_absent_file_is_told_with_what_it_has_to_hold(root):
    with pytest.raises(InputError) as error:
        load("gatsby")
    told = str(error.value)
    assert str(root / "rat_gatsby.npz") in told
    assert "counts, position, direction" in told
    assert "25 ms" in told
    assert "IDENTICA_DATA" in told
    with pytest.raises(InputError, match="did you mean 'achilles'"):
        load("achiles")


def test_a_file_that_is_cut_short_or_foreign_is_refused(root):
    path = root / "rat_achilles.npz"
    np.savez_compressed(path, **content("achilles", 500))
    whole = path.read_bytes()
    for end in (0, 10, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:end])
        with pytest.raises(InputError, match=r"rat_achilles\.npz is damaged or not an npz archive"):
            load("achilles")
    np.savez(path, **content("head-direction"))
    with pytest.raises(InputError, match=r"missing: \['position', 'direction'\]"):
        load("achilles")


@pytest.mark.parametrize(
    ("other", "told"),
    [
        ({"counts": np.zeros((20, 4))}, "counts must be whole numbers of shape N×d, got float64"),
        ({"counts": np.zeros(20, int)}, "counts must be whole numbers"),
        ({"counts": np.zeros((0, 4), int)}, "counts must lie in 0…255, at least one"),
        ({"counts": np.full((20, 4), -1)}, "counts must lie in 0…255"),
        ({"counts": np.full((20, 4), 256)}, "counts must lie in 0…255"),
        ({"counts": np.array([[None]])}, "never unpickled"),
        ({"position": np.zeros(19)}, "label must be floats of shape 20, got float64 of shape 19"),
        ({"position": np.full(20, np.nan)}, "label must be finite"),
        ({"position": np.full(20, 160.0)}, "position must be metres from 0 to 1.6"),
        ({"position": np.zeros((20, 2))}, "position must be metres"),
        ({"direction": np.full(20, 2)}, "direction must be 0 or 1 for each of 20 bins"),
    ],
)
def test_what_is_no_recording_is_refused(other, told, root):
    np.savez(root / "rat_achilles.npz", **content("achilles", **other))
    with pytest.raises(InputError, match=told) as error:
        load("achilles")
    assert "rat_achilles.npz" in str(error.value)


@pytest.mark.parametrize(
    ("other", "told"),
    [
        ({"counts": [[1], [2]]}, "counts must be a NumPy array"),
        ({"label": None}, "label must be a NumPy array"),
        ({"direction": [0, 1]}, "direction must be a NumPy array or None"),
        ({"bin": 0}, "bin must be greater than 0"),
    ],
)
def test_a_recording_of_something_else(other, told):
    good = {"name": "few", "counts": np.array([[1], [2]]), "label": np.zeros(2), "bin": 0.1}
    assert len(Recording(**good)) == 2
    with pytest.raises(InputError, match=told):
        Recording(**good | other)


def test_what_it_holds_in_numbers():
    counts = np.array([[0, 2, 0], [1, 0, 0], [0, 3, 0], [0, 0, 0]])
    found = recordings.check(Recording("few", counts, np.zeros(4), bin=0.5))
    assert found["silent neurons"] == 1
    assert found["seconds"] == 2
    assert found["spikes per neuron and second"] == pytest.approx(6 / 3 / 2)


def test_the_command(root, capsys):
    assert main(["data", "recordings", "check", "achilles"]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
    np.savez(root / "rat_achilles.npz", **content("achilles"))
    assert main(["data", "recordings", "check", "achilles"]) == 0
    assert capsys.readouterr().out.startswith("achilles: 20 bins, 4 neurons, ")


@pytest.mark.parametrize(
    ("name", "shape"),
    [("achilles", (10178, 120)), ("gatsby", (17026, 66)), ("head-direction", (159058, 19))],
)
def test_the_real_recordings_are_those_that_were_published(name, shape, real):
    found = load(name, real("recordings", SOURCES[name].file))
    assert found.counts.shape == shape
    assert np.ptp(found.label) > (1.5 if SOURCES[name].label == "position" else 6.2)
