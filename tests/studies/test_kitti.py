"""The study of KITTI Masks on a small data set of the same kind: boxes that mostly stand still."""

import json
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr

from helpers.masks import TINY, boxes, study
from identica import Box, InputError, Training, train
from identica.baselines import BetaVAE, SlowVAE
from identica.cli import main
from identica.datasets import kitti_masks
from identica.losses import AlignUniform, InfoNCE
from identica.recipes import Recipe
from identica.recipes import studies as presets
from identica.runs import folder as runs
from identica.studies import find, kitti, report, reproduce, table
from identica.studies.images import codes_of, walks
from identica.studies.kitti import KittiExperiment
from identica.studies.published import WORKSHOP_TABLE5
from identica.studies.runner import plan
from identica.studies.study import Ours
from identica.studies.table import collect


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.setenv("IDENTICA_DATA", str(tmp_path / "data"))
    made = boxes()
    made.save(tmp_path / "data" / "kitti_masks" / "kitti_masks.npz")
    return made


def test_the_rows_are_the_published_ones():
    study = find("workshop-table5")
    said = {
        (cells["method"], cells["space"], cells["Δt"]): row.published
        for row in study.rows
        for cells in [study.cells(row)]
    }
    assert len(said) == len(study.rows) == 15
    percent = {
        key: None if figure is None else (100 * figure.mean, figure.std and 100 * figure.std)
        for key, figure in said.items()
    }
    assert percent["β-VAE", "–", "–"] == pytest.approx((62.7, 7.1))
    assert percent["SlowVAE", "–", "1"] == pytest.approx((66.1, 4.5))
    assert percent["L_AU(.5, 1)", "unbounded", "1"] == pytest.approx((77.1, 1.7))
    assert percent["L_AU(.5, 2)", "unbounded", "5"] == pytest.approx((68.3, 2.6))
    assert percent["InfoNCE, L1", "box", "5"] == (pytest.approx(80.9), None)
    assert percent["InfoNCE, L2", "unbounded", "5"] is None
    assert {row.kind for row in study.rows} == {"beta-vae", "slow-vae", "contrastive"}


def test_every_row_builds_its_own_objective():
    chosen = find("workshop-table5")

    def made(row, preset):
        return chosen.experiment(row, row.kind, 0, preset)

    built = {row.row: made(row, "paper").objective()[0] for row in chosen.rows}
    assert isinstance(built[1], BetaVAE)
    assert isinstance(built[2], SlowVAE)
    assert (built[1].beta, built[2].gamma, built[2].rate) == (8, 10, 6)
    for row in chosen.rows:
        if row.kind == "contrastive":
            loss = built[row.row].loss
            assert loss.self_negative
            assert isinstance(loss, AlignUniform if row.method == "L_AU" else InfoNCE)
            # the two losses compare codes by the same −‖a − b‖_p^p
            a, b = torch.zeros(1, 10), torch.full((1, 10), 2.0)
            assert float(loss.conditional.similarity(a, b)) == pytest.approx(-10 * 2**row.p)
            codes = built[row.row].model(torch.zeros(2, 64, 64))
            assert not isinstance(row.space, Box) or bool(((codes >= 0) & (codes <= 1)).all())
    assert made(chosen.rows[4], "paper").pairs == 300_000 * 32
    for lag in (1, 5):  # whatever is compared is trained alike
        alike = [r for r in chosen.rows if r.kind == "contrastive" and r.max_lag == lag]
        assert len({made(row, "fast").recipe for row in alike}) == 1
        assert {made(row, "paper").recipe for row in alike} == {presets.PAPER_IMAGES}
    with pytest.raises(InputError, match="preset must be one of fast, paper"):
        made(chosen.rows[4], "slow")


def test_batches_are_pairs_of_the_data(data):
    sample = kitti.sampler(data, 3)
    batch = sample(50, generator=torch.Generator().manual_seed(1))
    again = sample(50, generator=torch.Generator().manual_seed(1))
    assert all(torch.equal(a, b) for a, b in zip(batch, again, strict=True))
    y, x = np.mgrid[:64, :64]
    for z, mask in ((batch.z, batch.x), (batch.z_pos, batch.x_pos)):
        area = mask.sum((1, 2)).numpy()
        assert mask.dtype == torch.uint8
        np.testing.assert_allclose(z[:, 2], area)
        np.testing.assert_allclose(z[:, 0], (mask.numpy() * y).sum((1, 2)) / area, rtol=1e-5)
        np.testing.assert_allclose(z[:, 1], (mask.numpy() * x).sum((1, 2)) / area, rtol=1e-5)
    allowed = {
        (*data.latents[i], *data.latents[j])
        for i in range(len(data))
        for j in range(i + 1, min(i + 4, (i // 8 + 1) * 8))  # sequences have eight frames
    }
    assert set(map(tuple, torch.cat([batch.z, batch.z_pos], 1).tolist())) <= allowed
    generator = torch.Generator().manual_seed(1)
    first, second = sample(8, generator=generator), sample(8, generator=generator)
    assert not torch.equal(first.z, second.z)


def finished(tmp_path, chosen, seeds=(0,)):
    """Runs of a study, done here and now, in a study folder."""
    names = {}
    for item in plan(chosen, tmp_path, seeds=seeds, preset=TINY):
        names[item.uses[0]] = item.job.name
        runs.execute(tmp_path / "runs" / item.job.name, item.job.config, item.job.run)
    table.register(tmp_path, chosen, names)
    return tmp_path


def test_a_table_where_figures_are_missing(data, tmp_path):
    chosen = study(1, 2, 5, 7)
    folder = finished(tmp_path / "study", chosen)
    text = report(folder, chosen)
    head, _, *lines = text.splitlines()[2:6]
    assert head == "| # | method | space | Δt | MCC, published | ours | seconds |"
    assert lines[0].startswith("| 1 | β-VAE | – | – | 62.70 ± 7.10 | ")
    assert lines[1].startswith("| 2 | SlowVAE | – | 1 | 66.10 ± 4.50 | ")
    assert "| 5 | InfoNCE, L1 | unbounded | 1 | – | " in text
    assert "| 7 | InfoNCE, L1 | box | 1 | 74.10 | " in text
    records = json.loads((folder / "table.json").read_text())
    assert [(r["row"], r["kind"], r["published"]) for r in records] == [
        (1, "beta-vae", {"mean": 0.627, "std": 0.071}),
        (2, "slow-vae", {"mean": 0.661, "std": 0.045}),
        (5, "contrastive", None),
        (7, "contrastive", {"mean": 0.741, "std": None}),
    ]
    page = (folder / "report.html").read_text()
    assert page.count("<figcaption>") == 12
    assert page.count(" in training, by seed<") == 4
    assert page.count('data-value="-Infinity">–<') == 2  # published, and the difference from it

    # the score is that of the frames and codes of the run, by scipy and all assignments
    for entry in collect(folder, chosen):
        experiment = chosen.read_back(entry.row, entry.runs[0])
        frames = experiment.scored(data)
        codes = codes_of(experiment.trained(entry.runs[0].folder)[1], data.frames(frames))
        assert sorted(frames) == list(range(len(data)))
        correlation = np.array(
            [[abs(spearmanr(z, h).statistic) for h in codes.T] for z in data.latents[frames].T]
        )
        best = max(
            sum(correlation[range(3), list(choice)]) for choice in permutations(range(10), 3)
        )
        assert entry.ours.mean == pytest.approx(best / 3, abs=1e-6)

    # weights or data that are gone cost their pictures
    (entry.runs[0].folder / "model.safetensors").unlink()
    report(folder, chosen)
    assert (folder / "report.html").read_text().count("<figcaption>") == 10
    (tmp_path / "data" / "kitti_masks" / "kitti_masks.npz").unlink()
    report(folder, chosen)
    assert (folder / "report.html").read_text().count("<figcaption>") == 4


def test_a_run_that_was_stopped_comes_to_the_same_score(data, tmp_path):
    experiment = KittiExperiment(WORKSHOP_TABLE5[8], 3, TINY)
    whole = experiment.run(tmp_path / "whole")

    def stop(step, steps):
        assert steps == 3
        if step == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        experiment.run(tmp_path / "stopped", stop)
    told = []
    again = experiment.run(tmp_path / "stopped", lambda *at: told.append(at))
    assert told == [(2, 3)]
    assert again["scores"] == whole["scores"]
    assert (whole["pairs"], whole["seed"]) == (12, 3)
    other = replace(experiment, seed=4).run(tmp_path / "other")
    assert other["scores"] != whole["scores"]


def test_the_whole_way_by_workers(data, tmp_path):
    outcome = reproduce(study(3), seeds=[0], preset=TINY, workers=1, out=tmp_path / "study")
    assert outcome.failures == {}
    (record,) = json.loads((tmp_path / "study" / "table.json").read_text())
    assert record["ours"]["seeds"] == 1
    assert 0 < record["ours"]["mean"] < 1


def test_without_the_data_there_is_one_clear_error(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("IDENTICA_DATA", str(tmp_path / "nothing"))
    out = tmp_path / "study"
    assert main(["reproduce", "workshop-table5", "--out", str(out)]) == 2
    err = capsys.readouterr().err
    assert "identica data kitti-masks build" in err
    assert len(err.splitlines()) == 1
    assert not out.exists()
    assert main(["reproduce", "workshop-table5", "--seeds", "0", "--list"]) == 0
    assert "0 of 15 runs done" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("row", "ours", "word", "good"),
    [
        (3, 0.755, "within", True),  # 77.1 ± 1.7
        (3, 0.752, "below", False),
        (3, 0.9, "above", True),
        (5, 0.9, "–", None),  # never published
        (7, 0.70, "below", None),  # 74.1, s.d. not known
        (7, 0.7425, "within", None),
    ],
)
def test_verdicts(row, ours, word, good):
    chosen = study(row)
    (target,) = chosen.targets(chosen.rows[0])
    assert chosen.verdict(target, Ours(ours, 0.0, 5, 0.0)) == (word, good)


def test_walks_move_one_code_and_keep_the_rest():
    rng = np.random.default_rng(0)
    grid = np.stack(np.meshgrid(*[np.linspace(-1, 1, 11)] * 3), -1).reshape(-1, 3)
    codes = rng.permutation(grid)
    found = walks(codes, np.array([2, 0]), stops=5)
    assert found.shape == (2, 6)
    for row, column in zip(found, (2, 0), strict=True):
        assert row[0] == found[0, 0]
        np.testing.assert_allclose(codes[row[0]], 0, atol=1e-12)
        others = np.delete(codes[row[1:]], column, axis=1)
        np.testing.assert_allclose(others, 0, atol=1e-12)
        np.testing.assert_allclose(
            codes[row[1:], column], np.linspace(-1, 1, 5).round(1), atol=0.11
        )


def test_a_contrastive_row_learns_on_real_masks(real):
    """Forty steps leave an untrained encoder behind, on the loss that they minimise."""
    training = Training(
        steps=40, batch=16, lr=2e-3, optimizer="adam", warmup=5, decay=0, score_every=1
    )
    row = WORKSHOP_TABLE5[11]
    objective, _ = KittiExperiment(row, 0, Recipe(training, network="conv")).objective()
    sample = kitti.sampler(kitti_masks.load(real("kitti_masks", "kitti_masks.npz")), row.max_lag)
    losses = [r["loss"] for r in train(objective, sample, training).records]
    assert np.mean(losses[-8:]) < np.mean(losses[:8]) - 0.5
