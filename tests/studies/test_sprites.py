"""The studies of sprites: their rows, images and pairs, and whole runs of three steps."""

import io
import json
import pickle
import zipfile
from itertools import permutations
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr

from helpers.masks import boxes
from identica import InputError, Training
from identica.baselines import VAE, AdaGVAE, BetaVAE, SlowVAE
from identica.cli import main
from identica.datasets import dsprites, natural_sprites
from identica.losses import AlignUniform
from identica.recipes import Recipe
from identica.runs import folder as runs
from identica.studies import find, report, sprites, table
from identica.studies.images import traversals
from identica.studies.published import WORKSHOP_TABLE2 as DSPRITES_ROWS
from identica.studies.published import WORKSHOP_TABLE3 as DISCRETE_ROWS
from identica.studies.published import WORKSHOP_TABLE4 as CONTINUOUS_ROWS
from identica.studies.runner import plan
from identica.studies.sprites import Scoring, SpritesExperiment
from identica.studies.study import Finished
from identica.studies.table import collect

TINY = Recipe(
    Training(steps=3, batch=4, lr=1e-3, optimizer="adam", warmup=0, checkpoint_every=2),
    network="conv",
)
FEW = Scoring(train=200, test=100, images=400, watched=100)
SIX = ("beta_vae", "factor_vae", "mig", "dci", "modularity", "sap")


@pytest.fixture
def nothing(tmp_path, monkeypatch):
    """A data root without any data, scores and pictures of few images."""
    monkeypatch.setattr(sprites, "SHOWN", 300)
    monkeypatch.setattr(sprites.SpritesTable, "scorings", {"fast": FEW, "paper": FEW})
    monkeypatch.setenv("IDENTICA_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


@pytest.fixture
def masks(nothing):
    made = boxes()
    made.save(nothing / "kitti_masks" / "kitti_masks.npz")
    return made


# --- the rows ---------------------------------------------------------------------------------------

DSPRITES = """
Ada-GVAE UNI 92.3 84.7 26.6 47.9 91.3 7.4
SlowVAE UNI 90.4 81.35 35.7 52.1 87.6 5.1
L_AU(.9999,1) UNI 82.5 62.9 7.8 22.2 98.8 4.9
L_AU(.9,1) UNI 80.2 61.0 20.5 42.4 100.0 7.6
SlowVAE LAP 100.0 98.32 27.8 65.3 97.0 6.1
L_AU(.999,1) LAP 100.0 96.0 24.9 45.6 92.9 9.6
L_AU(.99,1) LAP 100.0 94.5 17.4 54.0 94.7 7.0
L_AU(.9,1) LAP 100.0 89.5 18.1 54.4 90.5 6.7
"""
DISCRETE = """
β-VAE discrete 78.1 60.6 4.6 10.3 87.8 2.1 41.7
SlowVAE discrete 82.6 76.2 11.7 18.9 88.1 4.4 52.6
L_AU(.5,1) discrete 72.2 62.1 9.4 18.1 96.5 5.1 33.4
L_AU(.5,2) discrete 55.7 44.1 1.7 3.2 91.2 .7 22.4
"""
CONTINUOUS = """
β-VAE continuous 42.6
SlowVAE continuous 49.1
L_AU(.5,1) continuous 41.7
L_AU(.5,2) continuous 25.8
"""


@pytest.mark.parametrize(
    ("name", "published", "data", "scores"),
    [
        ("workshop-table2", DSPRITES, "dSprites, re-rendered", SIX),
        ("workshop-table3", DISCRETE, "natural-sprites-kitti", (*SIX, "mcc")),
        ("workshop-table4", CONTINUOUS, "natural-sprites-kitti", ("mcc",)),
    ],
)
def test_the_rows_are_the_published_ones(nothing, name, published, data, scores):
    study = find(name)
    lines = [line.split() for line in published.split("\n") if line]
    assert len(lines) == len(study.rows)
    for number, (row, (method, version, *figures)) in enumerate(
        zip(study.rows, lines, strict=True), 1
    ):
        cells = list(study.cells(row).values())
        assert (row.row, cells) == (number, [data, method.replace(",", ", "), version])
        targets = {target.score: target.published for target in study.targets(row)}
        assert set(targets) == {*scores, "mcc"}
        assert {target.kind for target in study.targets(row)} == {row.kind}
        for score, figure in zip(scores, figures, strict=True):
            assert 100 * targets[score].mean == pytest.approx(float(figure))
            assert targets[score].std is None
    assert ("mcc" in scores) == (targets["mcc"] is not None)
    assert study.words(row)


@pytest.mark.parametrize("network", ["conv", "small"])
def test_every_row_builds_its_own_objective(network):
    kinds = {"Ada-GVAE": AdaGVAE, "SlowVAE": SlowVAE, "β-VAE": BetaVAE}
    for row in (*DSPRITES_ROWS, *DISCRETE_ROWS):
        recipe = Recipe(Training(), network=network, alpha_start=0.9)
        objective, model = SpritesExperiment(row, 0, recipe, FEW, original=False).objective()
        objective.eval()
        encode = model.codes if isinstance(model, VAE) else model
        white = 1 if row in DSPRITES_ROWS else 255
        images = torch.zeros(2, 64, 64, dtype=torch.uint8)
        images[:, 20:30, 20:30] = white
        torch.testing.assert_close(encode(images), encode(images.float() / white))
        assert encode(images).shape == (2, 10)
        if row.method in kinds:
            assert isinstance(objective, kinds[row.method])
            assert objective.beta == (8 if row.method == "β-VAE" else 1)
            if row.method == "SlowVAE":
                assert (objective.gamma, objective.rate) == (10, 6)
            continue
        loss = objective.loss
        assert isinstance(loss, AlignUniform)
        assert (loss.alpha, loss.p, loss.self_negative) == (row.alpha, row.p, True)
        assert loss.anneal == ((0.9, 2400) if row.alpha > 0.99 else None)
        # the model that codes live in is compared by the same −‖a − b‖_p^p
        a, b = torch.zeros(1, 10), torch.full((1, 10), 2.0)
        assert float(objective.model.conditional.similarity(a, b)) == pytest.approx(-10 * 2**row.p)


def test_presets(tmp_path, monkeypatch):
    monkeypatch.setenv("IDENTICA_DATA", str(tmp_path))
    study = find("workshop-table2")
    for row in (*DSPRITES_ROWS, *CONTINUOUS_ROWS):
        paper = study.experiment(row, row.kind, 0, "paper")
        training = paper.recipe.training
        assert (training.steps, training.batch) == (300_000, 32)
        assert (training.lr, training.optimizer) == (1e-4, "adam")
        assert paper.pairs == 9_600_000
        assert paper.scoring == Scoring()
        scoring = study.experiment(row, row.kind, 0, "fast").scoring
        assert (scoring.train, scoring.test) == (10_000, 5_000)
    with pytest.raises(InputError, match="preset must be one of fast, paper"):
        study.experiment(DSPRITES_ROWS[0], "ada-gvae", 0, "slow")
    with pytest.raises(InputError, match="images must be a whole number of at least 15000"):
        Scoring(images=14_999)


def test_the_folder_of_a_run_stays_the_same(tmp_path):
    """Of settings that are written out here: a change would orphan the runs that are done."""
    recipe = Recipe(Training(10, 8, 1e-3, "adam", 0, 0.5, 5, 5), network="conv")

    def made(row, seed):
        return SpritesExperiment(row, seed, recipe, FEW, original=False)

    names = [made(row, 3).name for row in (DSPRITES_ROWS[2], DISCRETE_ROWS[0], CONTINUOUS_ROWS[0])]
    assert names == [
        "contrastive-856cc6b010b9",
        "beta-vae-50b71bfbd19d",
        "beta-vae-0b3a16a55c9d",
    ]
    every = [*DSPRITES_ROWS, *DISCRETE_ROWS, *CONTINUOUS_ROWS]
    assert len({made(row, 0).name for row in every}) == len(every)
    for row in every:
        run = Finished(0, tmp_path, runs.plain(made(row, 0).config), {})
        assert find("workshop-table2").read_back(row, run) == made(row, 0)
    assert made(DSPRITES_ROWS[0], 0).config["data"] == "dsprites-rerendered"
    assert made(DISCRETE_ROWS[0], 0).config["data"] == "natural-sprites-kitti"


# --- images -----------------------------------------------------------------------------------------


def test_batches_of_dsprites_are_pairs_of_their_law(nothing):
    for row, shape_stays in ((DSPRITES_ROWS[0], False), (DSPRITES_ROWS[4], True)):
        sample = sprites.sampler(sprites.load(row))
        batch = sample(200, generator=torch.Generator().manual_seed(1))
        again = sample(200, generator=torch.Generator().manual_seed(1))
        assert all(torch.equal(a, b) for a, b in zip(batch, again, strict=True))
        for z, x in ((batch.z, batch.x), (batch.z_pos, batch.x_pos)):
            np.testing.assert_array_equal(x, dsprites.render(z.numpy()))
        changed = batch.z != batch.z_pos
        assert bool(changed.any(1).all())
        assert bool(changed[:, 0].any()) != shape_stays
    generator = torch.Generator().manual_seed(1)
    first, second = sample(8, generator=generator), sample(8, generator=generator)
    assert not torch.equal(first.z, second.z)


@pytest.mark.parametrize("row", [DISCRETE_ROWS[0], CONTINUOUS_ROWS[0]], ids=lambda r: r.version)
def test_batches_of_natural_sprites_move_as_the_masks_do(masks, row):
    data = sprites.load(row)
    assert data.discrete == (row.version == "discrete")
    batch = sprites.sampler(data)(100, generator=torch.Generator().manual_seed(0))
    assert torch.equal(batch.z[:, 3:], batch.z_pos[:, 3:])
    np.testing.assert_array_equal(batch.x_pos, data.images(batch.z_pos.numpy()))
    assert batch.x.dtype == torch.uint8
    assert int(batch.x.max()) == 255
    moves = torch.stack([batch.z[:, :3], batch.z_pos[:, :3]], 1).flatten(1)
    own = natural_sprites.from_kitti(masks, discrete=data.discrete)
    assert set(map(tuple, moves.tolist())) <= {tuple(m.ravel().tolist()) for m in own.transitions}


def test_original_images_are_taken_where_they_are_at_hand(nothing, monkeypatch):
    row, study = DSPRITES_ROWS[4], find("workshop-table2")
    assert not study.experiment(row, row.kind, 0, "fast").original
    monkeypatch.setattr(dsprites, "SIZES", (3, 2, 2, 2, 4))
    monkeypatch.setattr(dsprites, "TOTAL", 96)
    classes = dsprites.classes_of(np.arange(96))
    images = 1 - dsprites.render(classes)  # so that they cannot be re-rendered ones
    path = nothing / "dsprites" / dsprites.ORIGINAL
    path.parent.mkdir(parents=True)
    with zipfile.ZipFile(path, "w") as archive:
        members = {"imgs": images, "latents_classes": np.c_[np.zeros(96, int), classes]}
        for name, array in members.items():
            content = io.BytesIO()
            np.save(content, array)
            archive.writestr(f"{name}.npy", content.getvalue())
    experiment = study.experiment(row, row.kind, 0, "fast")
    assert experiment.original
    assert experiment.config["data"] == "dsprites"
    run = Finished(0, nothing, runs.plain(experiment.config), {})
    assert study.read_back(row, run) == experiment
    assert study.cells(row)["data"] == "dSprites"
    study.ready(study.rows)
    data = sprites.load(row, original=True)
    chosen = data.sample(20, 0)
    np.testing.assert_array_equal(data.images(chosen), images[dsprites.index_of(chosen)])
    natural = DISCRETE_ROWS[0]
    assert not find("workshop-table3").experiment(natural, natural.kind, 0, "fast").original
    path.write_bytes(b"torn")
    with pytest.raises(InputError, match="damaged"):
        study.ready(study.rows)


# --- whole runs -------------------------------------------------------------------------------------


def finished(folder, chosen, seeds=(0,), rows=None):
    """Runs of a study, done here and now in the way that workers do them, in a study folder."""
    names = {}
    for item in plan(chosen, folder, rows=rows, seeds=seeds, preset=TINY):
        names |= dict.fromkeys(item.uses, item.job.name)
        job = pickle.loads(pickle.dumps(item.job))  # on its way to a worker
        runs.execute(folder / "runs" / job.name, job.config, job.run)
    table.register(folder, chosen, names)
    return folder


def test_a_table_of_medians(nothing, tmp_path):
    study = sprites.DSpritesTable("workshop-table2", "dSprites", [DSPRITES_ROWS[k] for k in (1, 3)])
    folder = finished(tmp_path / "study", study)
    finished(folder, study, seeds=[1], rows=[4])
    text = report(folder, study)
    head, _, *lines = text.splitlines()[2:6]
    assert head.startswith("| # | data | method | pairs | BetaVAE, published | ours | FactorVAE, ")
    assert head.endswith("| SAP, published | ours | MCC, published | ours | seconds |")
    assert lines[0].startswith("| 2 | dSprites, re-rendered | SlowVAE | UNI | 90.40 | ")
    assert lines[1].startswith("| 4 | dSprites, re-rendered | L_AU(.9, 1) | UNI | 80.20 | ")
    assert "median ± mean absolute deviation" in text
    records = json.loads((folder / "table.json").read_text())
    assert [r["score"] for r in records] == [*SIX, "mcc"] * 2
    assert {r["summary"] for r in records} == {"median"}
    assert records[0]["published"] == {"mean": 0.904, "std": None}
    assert records[6]["published"] is None
    for record, entry in zip(records, collect(folder, study), strict=True):
        values = [run.result["scores"][record["score"]] for run in entry.runs]
        assert len(values) == record["ours"]["seeds"] == record["row"] // 2
        assert record["ours"]["mean"] == pytest.approx(sum(values) / len(values))
        assert record["ours"]["std"] == pytest.approx((max(values) - min(values)) / 2)
    page = (folder / "report.html").read_text()
    assert page.count(" in training, by seed<") == 2
    assert page.count("<figcaption>True factors against their codes, seed 0, dsprites-re") == 2
    assert page.count("<figcaption>What the decoder renders") == 1
    assert page.count("<figcaption>An image (left), and the images nearest to it") == 1

    # the score is that of the factors and codes of the run, by scipy and all assignments
    entry = collect(folder, study)[-1]
    experiment = study.read_back(entry.row, entry.runs[0])
    model = experiment.trained(entry.runs[0].folder)[1]
    z, codes = experiment.encoded(sprites.load(entry.row), model, 400)
    correlation = np.array(
        [[abs(spearmanr(a, b).statistic) for b in codes[:200].T] for a in z[:200].T]
    )
    best = max(correlation[range(5), list(choice)].sum() for choice in permutations(range(10), 5))
    assert entry.runs[0].result["scores"]["mcc"] == pytest.approx(best / 5, abs=1e-6)

    (entry.runs[0].folder / "model.safetensors").unlink()
    report(folder, study)
    assert (folder / "report.html").read_text().count("<figcaption>") == 4


def test_a_table_of_natural_sprites(masks, nothing, tmp_path):
    study = sprites.SpritesTable("workshop-table4", "Natural Sprites", CONTINUOUS_ROWS[::3])
    folder = finished(tmp_path / "study", study)
    text = report(folder, study)
    assert "| # | data | method | factors | MCC, published | ours | seconds |" in text
    assert "| 1 | natural-sprites-kitti | β-VAE | continuous | 42.60 | " in text
    (first, second) = json.loads((folder / "table.json").read_text())
    assert "summary" not in first
    assert (first["kind"], second["kind"]) == ("beta-vae", "contrastive")
    page = (folder / "report.html").read_text()
    assert page.count("<figcaption>") == 6
    assert page.count("seed 0, natural-sprites-kitti") == 8  # captions, and what is read aloud
    (nothing / "kitti_masks" / "kitti_masks.npz").unlink()  # costs the pictures that need it
    report(folder, study)
    assert (folder / "report.html").read_text().count("<figcaption>") == 2


def test_a_run_that_was_stopped_comes_to_the_same_scores(masks, tmp_path):
    experiment = SpritesExperiment(DISCRETE_ROWS[1], 3, TINY, FEW, original=False)
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
    assert set(whole["scores"]) == {*SIX, "mcc"}
    assert all(0 <= score <= 1 for score in whole["scores"].values())
    assert (whole["pairs"], whole["seed"]) == (12, 3)


def test_without_the_data_there_is_one_clear_error(nothing, tmp_path, capsys):
    out = tmp_path / "study"
    for name in ("workshop-table3", "workshop-table4"):
        assert main(["reproduce", name, "--out", str(out)]) == 2
        err = capsys.readouterr().err
        assert "identica data kitti-masks build" in err
        assert len(err.splitlines()) == 1
        assert not out.exists()
        assert main(["reproduce", name, "--seeds", "0", "--list"]) == 0
        assert "0 of 4 runs done" in capsys.readouterr().out
    find("workshop-table2").ready(DSPRITES_ROWS)  # is drawn, so nothing is needed
    assert main(["reproduce", "workshop-table2", "--seeds", "0-9", "--list"]) == 0
    assert "0 of 80 runs done" in capsys.readouterr().out


def test_traversals_move_one_code_and_keep_the_rest():
    codes = np.random.default_rng(0).normal(size=(201, 3))
    asked = []

    def decoder(places):
        asked.append(places)
        return places.sum(1)[:, None, None, None].expand(-1, 1, 64, 64)

    columns = np.array([2, 0])
    images = traversals(SimpleNamespace(decoder=decoder), codes, columns, stops=5)
    assert (images.shape, images.dtype) == ((2, 5, 64, 64), np.uint8)
    (places,) = asked
    places = places.reshape(2, 5, 3).numpy()
    for place, column in zip(places, columns, strict=True):
        levels = np.quantile(codes[:, column], [0.02, 0.26, 0.5, 0.74, 0.98])
        np.testing.assert_allclose(place[:, column], levels, rtol=1e-5)
        others = np.delete(place, column, axis=1)
        np.testing.assert_allclose(others, np.broadcast_to(others[0], others.shape))
        assert np.abs(others[0]).max() < 1
    white = 255 / (1 + np.exp(-places.sum(2, dtype=float)))
    np.testing.assert_allclose(images[:, :, 5, 7], white, atol=1)
