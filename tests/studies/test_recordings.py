"""The study of recordings, on short simulated ones and with a handful of steps."""

import json
from dataclasses import replace

import numpy as np
import pytest

from identica import ContrastiveICA, Training
from identica._io import write_json
from identica.cli import main
from identica.datasets.recordings import SOURCES
from identica.errors import InputError
from identica.recipes import Recipe
from identica.runs import folder as runs
from identica.studies import find, load, peers, recordings, report, table
from identica.studies.decoding import SCORES, train_rows
from identica.studies.recordings import KINDS, RecordingRow, RecordingRun, RecordingsTable
from identica.studies.runner import plan
from identica.studies.study import Finished

BRIEF = Recipe(Training(steps=20))
PLACE = RecordingRow(1, "place cells", "factors", 3, bins=2400, rate=2.5)
RING = RecordingRow(2, "ring", "angle", 2, "sphere", bins=2400, rate=1.0)
RAT = RecordingRow(3, "achilles", "position", 4)


def rat(folder, rows=1500):
    """A rat that runs to and fro, and ten neurons that fire at places of the track."""
    rng = np.random.default_rng(0)
    phase = np.cumsum(rng.uniform(0.005, 0.02, rows)) % 2
    position = 1.6 * (1 - np.abs(phase - 1))
    mean = 2 * np.exp(-((position[:, None] - np.linspace(0, 1.6, 10)) ** 2) / 0.08)
    (folder / "recordings").mkdir(parents=True)
    np.savez(
        folder / "recordings" / "rat_achilles.npz",
        counts=rng.poisson(mean).astype(np.uint8),
        position=position.astype(np.float32),
        direction=(phase > 1).astype(np.uint8),
    )


class Short(RecordingsTable):
    """The contrastive model for the rat alone, to be quick."""

    def targets(self, row):
        linear = row.what != "position"
        found = super().targets(row)
        return [t for t in found if t.kind not in recordings.OURS or not linear]


def study(*rows):
    return Short("recordings", "Recordings", rows)


def finished(folder, chosen, seeds=(0,)):
    """Runs of a study, done here and now, in a study folder."""
    names = {}
    for item in plan(chosen, folder, seeds=seeds, preset=BRIEF):
        names |= dict.fromkeys(item.uses, item.job.name)
        runs.execute(folder / "runs" / item.job.name, item.job.config, item.job.run)
    table.register(folder, chosen, names)
    return folder


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A rat, and two simulated recordings beside it."""
    folder = tmp_path_factory.mktemp("recordings")
    rat(folder / "data")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IDENTICA_DATA", str(folder / "data"))
        patch.setattr(peers, "cebra_is_installed", lambda: False)
        chosen = study(PLACE, RING, RAT)
        finished(folder / "study", chosen)
        report(folder / "study", chosen)
    return folder


def test_the_rows():
    rows = load("recordings")
    assert [row.row for row in rows] == list(range(1, 12))
    simulated = [row for row in rows if row.bins is not None]
    assert len({(row.rate, row.bins) for row in simulated if row.data == "place cells"}) == 6
    assert (30_000, 2.5) in {(row.bins, row.rate) for row in rows}  # 24,000 to fit to
    assert {row.data for row in rows if row not in simulated} == set(SOURCES)
    assert [(row.codes, row.space) for row in rows[-3:]] == [
        (8, "box"),
        (8, "box"),
        (2, "sphere"),
    ]
    chosen = find("recordings")
    for row in rows:
        targets = chosen.targets(row)
        assert {target.kind for target in targets} == set(KINDS)
        assert all(target.published is None for target in targets)
    with pytest.raises(InputError, match="preset must be one of fast, paper"):
        chosen.experiment(rows[0], "pca", 0, "slow")


def test_the_table_has_scores_in_0_to_1_for_all_models(done):
    records = json.loads((done / "study" / "table.json").read_text())
    found = {(r["row"], r["kind"], r["score"]): r for r in records}
    assert set(found) == {
        (row.row, kind, score)
        for row, kinds in ((PLACE, peers.LINEAR), (RING, peers.LINEAR), (RAT, KINDS))
        for kind in set(kinds) - {"cebra"}
        for score in SCORES[row.what]
    }
    assert all(0 <= r["ours"]["mean"] <= 1 and r["published"] is None for r in records)
    assert all(r["seconds"] > 0 for r in records)
    ours = found[3, "contrastive", "position_error"]
    assert set(ours["notes"]) == {"bits", "diagnosis", "window", "smoothing"}
    assert set(found[3, "pca", "position_error"]["notes"]) == {"smoothing"}
    # what is to be found is found, even in so few steps
    assert ours["ours"]["mean"] < 0.1
    assert float(ours["notes"]["bits"]) > 0.5


def test_rows_in_random_order_are_not_trusted(done):
    records = json.loads((done / "study" / "table.json").read_text())
    shuffled = [r for r in records if r["kind"] == "shuffled"]
    assert len(shuffled) == 2
    assert {r["notes"]["diagnosis"] for r in shuffled} == {"do not trust"}
    assert all(abs(float(r["notes"]["bits"])) < 0.3 for r in shuffled)
    for path in (done / "study" / "runs").glob("shuffled-*/result.json"):
        assert "do not trust" in json.loads(path.read_text())["warning"]


def test_the_table_in_words(done):
    text = (done / "study" / "table.md").read_text()
    head, rule, *lines = text.splitlines()[2:]
    assert head == (
        "| # | recording | bins | rate | codes | model | R² | MCC | R², smoothed | MCC, smoothed | "
        "median error | median error, smoothed | smoothing | bits | diagnosis | window | seconds |"
    )
    assert rule.count("---") == 17
    lines = [line.split(" | ") for line in lines if line.startswith("|")]
    assert len(lines) == 3 + 3 + 5
    assert [line[5] for line in lines[-5:]] == [
        "contrastive",
        "pca",
        "fastica",
        "cebra: not installed",
        "shuffled",
    ]
    assert lines[-2][6:] == ["–"] * 10 + ["– |"]
    units = {line[0].strip("| "): line[10].split(" (")[0] for line in lines if line[5] == "pca"}
    assert units["1"] == "–"
    assert units["2"].endswith("°")
    assert units["3"].endswith(" cm")
    [error] = [
        r["ours"]["mean"]
        for r in json.loads((done / "study" / "table.json").read_text())
        if (r["row"], r["kind"], r["score"]) == (3, "pca", "position_error")
    ]
    assert units["3"] == f"{160 * error:.2f} cm"


def test_the_page_has_its_pictures(done):
    page = (done / "study" / "report.html").read_text()
    for caption in (
        "Smoothed codes of the test, coloured by position, seed 0",
        "Loss in training and held-out evidence",
        "Decoded from smoothed codes",
    ):
        assert page.count(f"<figcaption>{caption}") == 1
    assert "<th><button>diagnosis</button></th>" in page
    assert "as expected" not in page  # there is nothing to compare with


def test_pictures_need_data_and_weights_but_pages_do_not(done, monkeypatch, tmp_path):
    monkeypatch.setenv("IDENTICA_DATA", str(tmp_path))
    chosen, folder = study(PLACE, RING, RAT), done / "study"
    kept = {
        kind: [table.finished(folder, name, seed)]
        for (row, kind, seed), name in table.registered(folder)[1].items()
        if row == 3
    }
    [picture] = chosen.pictures(RAT, kept)
    assert picture.caption.startswith("Loss in training")


def test_a_run_leaves_a_model_and_its_history(done, monkeypatch):
    monkeypatch.setenv("IDENTICA_DATA", str(done / "data"))
    [folder] = [
        path.parent
        for path in (done / "study" / "runs").glob("contrastive-*/config.json")
        if json.loads(path.read_text())["data"] == "achilles"
    ]
    result = json.loads((folder / "result.json").read_text())
    ica = ContrastiveICA.load(folder / "model.safetensors")
    run = RecordingRun(RAT, "contrastive", 0, 20)
    known, test = run.codes(ica.transform, run.data())
    assert (len(known.codes), len(test.codes)) == (train_rows(1500), 300) == (1200, 300)
    assert ica.score(run.data().counts[1200:]) == pytest.approx(result["bits"], abs=1e-5)
    assert result["window"] == ica.window_
    assert result["pairs"] > 0
    assert (folder / "metrics.jsonl").exists()
    assert not (folder / "parts").exists()  # which only a run that is not done needs


@pytest.mark.parametrize("row", [PLACE, RING])
def test_pictures_of_simulated_recordings(row, tmp_path):
    """Of a model that is hardly trained: they are drawn all the same."""
    run = RecordingRun(row, "contrastive", 0, 2)
    counts = run.data().counts[: train_rows(2400)]
    run.estimator(tmp_path, counts)
    done = [Finished(0, tmp_path, runs.plain(run.config), {})]
    pca = runs.plain(RecordingRun(row, "pca", 0, 2).config)
    found = study(row).pictures(row, {"contrastive": done, "pca": [Finished(0, tmp_path, pca, {})]})
    named = "True factors of the test" if row is PLACE else "Smoothed codes of the test"
    assert len(found) == 3
    assert found[1].caption.startswith(named)
    assert all(picture.source.startswith("data:image/png;base64,") for picture in found)


def test_a_run_that_was_killed_resumes_to_the_same_result(done, tmp_path, monkeypatch):
    monkeypatch.setenv("IDENTICA_DATA", str(done / "data"))
    run = RecordingRun(RAT, "contrastive", 0, 20)
    whole = json.loads((done / "study" / "runs" / run.name / "result.json").read_text())
    (tmp_path / "killed").mkdir()

    class KilledError(Exception):
        pass

    def killed(*_):
        raise KilledError

    with monkeypatch.context() as patch:
        patch.setattr(ContrastiveICA, "save", killed)
        with pytest.raises(KilledError):
            run.run(tmp_path / "killed")
    assert runs.begun(tmp_path / "killed")
    spent = recordings._spent(tmp_path / "killed")
    assert spent > 0
    resumed = run.run(tmp_path / "killed")
    assert resumed["scores"] == whole["scores"]
    assert resumed["bits"] == whole["bits"]
    assert resumed["seconds"] > spent


def test_the_copy_in_random_order_is_the_same_rows():
    data, copy = (RecordingRun(PLACE, kind, 3).data() for kind in ("contrastive", "shuffled"))
    assert (data.counts != copy.counts).any()

    def rows(found):
        return sorted(map(tuple, np.hstack([found.counts, found.label]).tolist()))

    assert rows(data) == rows(copy)


def test_cebra_where_it_is_installed(monkeypatch, tmp_path):
    seen = []

    def fake(counts, n, *, seed, iterations):
        seen.append((len(counts), n, seed, iterations))
        return lambda rows: rows[:, :n].astype(float)

    monkeypatch.setattr(peers, "cebra", fake)
    for row, codes in ((PLACE, 4), (RING, 2)):  # unit length takes one code from a box
        result = RecordingRun(row, "cebra", 1, 60).run(tmp_path)
        assert set(result["scores"]) == set(SCORES[row.what])
        assert seen.pop() == (1920, codes, 1, 60)
    for there, kinds in ((True, 5), (False, 4)):
        monkeypatch.setattr(peers, "cebra_is_installed", lambda there=there: there)
        assert len(plan(find("recordings"), tmp_path, rows=[1], seeds=[0])) == kinds


def test_missing_files_are_told_before_anything_is_done(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("IDENTICA_DATA", str(tmp_path / "none"))
    out = tmp_path / "out"
    assert main(["reproduce", "recordings", "--rows", "9", "--out", str(out)]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert "rat_achilles.npz does not exist" in line
    assert "rows 1-8 need no files" in line
    assert not out.exists()
    find("recordings").ready(load("recordings")[:8])
    assert main(["reproduce", "recordings", "--rows", "9", "--seeds", "0", "--list"]) == 0


def test_notes_stay_where_runs_are_gone(tmp_path, monkeypatch):
    """As in a clone, which has the table but not all of its runs."""
    monkeypatch.setattr(recordings, "KINDS", ("pca",))
    chosen = study(PLACE)
    monkeypatch.setattr(chosen, "notes", lambda runs: {"runs": str(len(runs))})
    finished(tmp_path, chosen, seeds=(0, 1))
    report(tmp_path, chosen)
    before = json.loads((tmp_path / "table.json").read_text())
    assert {record["notes"]["runs"] for record in before} == {"2"}
    gone = table.registered(tmp_path)[1][1, "pca", 1]
    (tmp_path / "runs" / gone / "result.json").unlink()
    entries = table.collect(tmp_path, chosen, keep=table.recorded(tmp_path, chosen))
    assert table.records(chosen, entries) == before
    write_json(tmp_path / "table.json", [before[0] | {"notes": [1]}])
    with pytest.raises(InputError, match="is not the table of a study"):
        table.recorded(tmp_path, chosen)


def test_runs_of_another_version_are_not_read_back(tmp_path):
    chosen = find("recordings")
    experiment = chosen.experiment(RAT, "pca", 0, "fast")
    run = Finished(0, tmp_path, runs.plain(experiment.config), {})
    assert chosen.read_back(RAT, run) == experiment
    with pytest.raises(InputError, match="another version"):
        chosen.read_back(replace(RAT, codes=5), run)


def test_the_real_rat_is_ready(real):
    real("recordings", "rat_achilles.npz")
    find("recordings").ready(load("recordings")[8:9])
