"""Table 4 with a few tiny images: both presets start, step, go on after a kill, and are reported."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from identica._io import read_json
from identica.datasets.threedident import FACTORS, render
from identica.datasets.threedident.pairs import Renderer
from identica.datasets.threedident.storage import ImageSet, build
from identica.errors import InputError
from identica.metrics import linear_r2
from identica.process import Labelled, Pairs
from identica.recipes.studies import PAPER_THREEDIDENT as PAPER
from identica.recipes.studies import THREEDIDENT as FAST
from identica.recipes.studies import THREEDIDENT_SUPERVISED
from identica.runs.folder import execute, plain
from identica.studies import find, reproduce
from identica.studies import threedident_experiment as experiments
from identica.studies.published import ICML_TABLE4 as ROWS
from identica.studies.study import Finished, read_metrics
from identica.studies.threedident import ThreeDIdentTable, example_pairs, traversals
from identica.studies.threedident_experiment import ImageExperiment, Images, paper_images
from identica.training import train

STUDY = find("icml-table4")
SMALL = Images(size=16, train=40, test=24, samples=4)


class SmallImages(ThreeDIdentTable):
    def experiment(self, row, kind, seed, preset):
        return replace(super().experiment(row, kind, seed, preset), images=SMALL)


SMALL_STUDY = SmallImages(STUDY.name, STUDY.title, ROWS)


def tiny(recipe, **training):
    """A recipe with few steps; all else is its own."""
    short = {"steps": 3, "batch": 6, "score_every": 2, "checkpoint_every": 2, "warmup": 1}
    few = {"steps": 2, "batch": 8, "score_every": 1}
    names, walking = ("start", "narrow", "wide", "head"), recipe.walking
    return replace(
        recipe,
        walking=walking
        and replace(walking, **{name: replace(getattr(walking, name), **few) for name in names}),
        training=replace(recipe.training, **(short | training)),
    )


def made(row, recipe):
    """An experiment on tiny images."""
    return ImageExperiment(row, 0, recipe, SMALL)


QUICK = tiny(FAST, optimizer="adam")


def test_the_presets_are_the_published_recipe_and_a_fast_one(tmp_path, monkeypatch):
    monkeypatch.setenv("IDENTICA_DATA", str(tmp_path))
    for row in ROWS:
        paper = STUDY.experiment(row, row.kind, 0, "paper")
        images, training = paper.images, paper.recipe.training
        assert (images.size, images.train, images.test) == (224, 250_000, 25_000)
        assert paper.recipe.network == "resnet18"
        assert (training.steps, training.batch, training.lr) == (30_000, 512, 1e-4)
        assert (training.optimizer, training.warmup, training.decay) == ("adam", 0, 0)
        assert STUDY.experiment(row, row.kind, 0, "fast").images.size == 64
    with pytest.raises(InputError, match="preset must be one of fast, paper"):
        STUDY.experiment(ROWS[0], "contrastive", 0, "slow")


def test_the_table_is_the_published_one():
    figures = {
        (row.row, score): (100 * f.mean, 100 * f.std)
        for row in ROWS
        for score, f in row.published.items()
    }
    assert figures[1, "r2"] == pytest.approx((96.73, 0.10))
    assert figures[2, "mcc"] == pytest.approx((54.94, 0.02))
    assert figures[5, "r2"] == pytest.approx((45.51, 1.43))
    assert figures[6, "mcc"] == pytest.approx((99.33, 0.01))
    assert figures[7, "r2"] == pytest.approx((5.25, 1.20))
    assert len(figures) == 13
    assert [row.match for row in ROWS] == [True] + [False] * 6


def test_words_say_what_theory_promises():
    words = {row.row: STUDY.words(row) for row in ROWS}
    assert words[1].startswith("Guaranteed by Theorem 5")
    assert "the codes are unbounded" in words[2]
    assert "exponent 1, but the model assumes 2" in words[3]
    assert words[4].startswith("Not guaranteed")
    assert all(words.values())


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Rows of every sort, one seed, in one process."""
    folder = tmp_path_factory.mktemp("study")
    rows = [1, 3, 5, 6, 7]
    outcome = reproduce(SMALL_STUDY, rows=rows, seeds=[0], preset=QUICK, workers=1, out=folder)
    assert not outcome.failures
    return folder


def test_rows_are_run_and_reported(finished):
    records = json.loads((finished / "table.json").read_text())
    assert {(r["row"], r["kind"], r["score"]) for r in records} == {
        *((row, "contrastive", score) for row in (1, 3, 5) for score in ("r2", "mcc")),
        (6, "supervised", "r2"),
        (6, "supervised", "mcc"),
        (7, "identity", "r2"),
    }
    assert all(0 <= r["ours"]["mean"] <= 1 for r in records)
    page = (finished / "report.html").read_text()
    for text in ("R² of each factor", "Pairs of the process", "as the code of one factor"):
        assert page.count(text) >= 3
    assert page.count("R² in training, by seed") == 2 * 4  # caption and alt text


def test_the_page_explains_why_curves_fall(tmp_path):
    """Where the head alone is trained, from a high temperature: the step follows from the recipe."""
    study = find("icml-table4")
    config = plain(study.experiment(study.rows[0], "contrastive", 0, "fast").config)
    run = Finished(0, tmp_path, config, {})
    assert "From step 5,150 on, only the head is trained" in study.aside(run)
    augmented = plain(study.experiment(study.rows[4], "contrastive", 0, "fast").config)
    assert study.aside(run._replace(config=augmented)) == ""


def test_example_pairs_are_pairs():
    pairs = example_pairs(ROWS[0], 16).astype(float)
    assert pairs.shape == (2, 10, 16, 16, 3)
    apart = np.abs(pairs[0] - pairs[1]).mean()
    assert apart < np.abs(pairs[0] - np.roll(pairs[1], 1, axis=0)).mean()
    views = example_pairs(ROWS[4], 16)
    assert (views[0] != views[1]).any(axis=(1, 2, 3)).all()


def test_rows_share_their_images(finished):
    (home,) = (finished / "images").iterdir()
    # positives of narrower pairs and of the row's own, for both conditionals
    widths = ["Laplace-scale-0.24752", "Laplace-scale-0.3536", "Normal-std-0.35", "Normal-std-0.5"]
    assert sorted(p.name for p in home.iterdir() if p.suffix != ".lock") == [
        *(f"{width}.npy" for width in widths),
        "test-24",
        "train",
    ]
    # what is scored was not trained on
    seen, unseen = (ImageSet(home / part).raw_latents for part in ("train", "test-24"))
    assert not {tuple(z) for z in seen} & {tuple(z) for z in unseen}


def test_positives_that_do_not_belong_to_the_images_are_refused(finished):
    (home,) = (finished / "images").iterdir()
    path = home / "Normal-std-0.5.npy"
    before = path.read_bytes()
    np.save(path, np.zeros((7, 16), np.int32))
    with pytest.raises(InputError, match=r"Normal-std-0.5.npy must hold positives of 40 images"):
        made(ROWS[0], QUICK).positives(finished)
    path.write_bytes(before[:100])
    with pytest.raises(InputError, match="damaged"):
        made(ROWS[0], QUICK).positives(finished)
    path.write_bytes(before)


def test_a_finished_run_is_read_again(finished):
    for row in (ROWS[0], ROWS[5]):
        folder = finished / "runs" / SMALL_STUDY.experiment(row, row.kind, 0, QUICK).name
        config, result = (read_json(folder / f"{name}.json") for name in ("config", "result"))
        experiment = STUDY.read_back(row, Finished(0, folder, config, result))
        data = experiment.images.load(finished, "test")
        codes = experiments.codes_of(experiment.trained(folder)[1], data)
        assert codes.shape == (24, len(FACTORS))
        assert linear_r2(data.raw_latents, codes) == pytest.approx(result["scores"]["r2"], abs=1e-6)
        assert plain(experiment.config) == config


@pytest.mark.parametrize("row", ROWS[:5], ids=lambda row: f"row {row.row}")
def test_codes_lie_in_the_space_of_the_model(row):
    objective, model = made(row, FAST).objective()
    x = torch.rand(6, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    codes = model(x)
    if row.row in (1, 3):
        assert ((codes > 0) & (codes < experiments.matched_side(row.conditional))).all()
    else:
        assert row.model_space.contains(codes).all()
    loss = objective(Pairs(None, None, x, x.flip(3)))
    assert torch.isfinite(loss)


def test_the_fast_box_has_the_side_where_the_model_is_the_process():
    for experiment, std in ((made(ROWS[0], FAST), 0.5), (made(ROWS[0], FAST).narrower(0.7), 0.35)):
        assert experiment.row.conditional.std == pytest.approx(std)
        side = experiment.model().head.sides
        torch.testing.assert_close(side, torch.full((10,), 2 / (std * 2**0.5)))
    learnt = {True: PAPER, False: FAST}
    for learn, recipe in learnt.items():
        assert made(ROWS[0], recipe).model().head.learnable is learn


def test_a_traversal_moves_one_factor_of_codes_that_are_the_factors(tmp_path):
    rng = np.random.default_rng(0)
    z = rng.uniform(-1, 1, (40, 10))
    build(tmp_path, z, Renderer(16, samples=4).draw, size=16, packed=True)
    data = ImageSet(tmp_path)
    codes = 3 * z[:, ::-1] + 1  # each factor in a code of its own
    images = traversals(data, codes)
    assert images.shape == (10, 10, 16, 16, 3)
    start = np.abs(codes - np.median(codes, axis=0)).sum(axis=1).argmin()
    factor = FACTORS.index("rotation_y")
    wanted = np.tile(z[start], (9, 1))
    wanted[:, factor] = np.quantile(z[:, factor], np.linspace(0.02, 0.98, 9))
    assert (images[:, 0] == data.images(np.array([start]))).all()
    drawn = images[factor, 1:].astype(int)
    assert np.abs(drawn - render(wanted, 16)).max() <= 1


class Killed(Exception):
    pass


@pytest.mark.parametrize(
    ("recipe", "row", "at"),
    [
        (FAST, ROWS[0], 3),  # the second of three starts
        (FAST, ROWS[0], 7),  # narrow pairs
        (FAST, ROWS[0], 9),  # the pairs of the process
        (FAST, ROWS[0], "head, step 1 of 2"),
        (FAST, ROWS[2], "head, step 1 of 2"),
        (FAST, ROWS[3], 9),
        (FAST, ROWS[4], 2),
        (THREEDIDENT_SUPERVISED, ROWS[5], 2),
        (PAPER, ROWS[0], 2),
    ],
)
def test_a_run_that_is_killed_goes_on_to_the_same_numbers(tmp_path, recipe, row, at):
    experiment, store = made(row, tiny(recipe)), tmp_path / "runs"
    total, head, size, end = (10, 2, 8, "head, step 1 of 2") if at != 2 else (3, 0, 6, 2)
    assert sum(training.steps for training in experiment.trainings) == total
    assert experiment.pairs == total * size

    def kill(step, steps, doing=""):
        assert steps == total
        if (doing or step) == at:
            raise Killed

    whole = experiment.run(store / "a")
    with pytest.raises(Killed):
        experiment.run(store / "b", kill)
    told = []

    def tick(step, steps, doing=""):
        told.append(doing or step)

    resumed = experiment.run(store / "b", tick)
    assert told[-1] == end
    assert 1 not in told  # the first steps are not done again
    assert resumed["scores"] == whole["scores"]
    assert resumed["pairs"] == (total + head) * size
    a, b = ((store / run / "model.safetensors").read_bytes() for run in "ab")
    assert a == b
    records = [[record | {"seconds": 0} for record in read_metrics(store / run)] for run in "ab"]
    assert records[0] == records[1]
    wrong = replace(experiment, recipe=replace(experiment.recipe, network="resnet19"))
    with pytest.raises(InputError, match="network must be one of"):
        wrong.run(store / "c")


def test_a_damaged_part_is_set_aside_and_the_run_begun_anew(tmp_path):
    experiment, store = made(ROWS[0], tiny(FAST)), tmp_path / "runs"

    def kill(step, *_):
        if step == 7:
            raise Killed

    folder, config = store / "run", experiment.config
    with pytest.raises(Killed):
        execute(folder, config, lambda folder: experiment.run(folder, kill))
    (folder / "parts" / "start-1" / "checkpoint.safetensors").write_bytes(b"?")
    found = execute(folder, config, experiment.run)
    assert found["scores"] == experiment.run(store / "whole")["scores"]
    assert (folder / "parts.aside-1" / "start-0").is_dir()
    assert not (folder / "parts").exists()
    assert "set aside as parts.aside-1" in (folder / "notes.log").read_text()


def test_the_head_learns_by_itself_and_the_rest_stays(tmp_path):
    """Its codes are those of the whole network, before and after; only the head moves in the end."""
    recipe = tiny(FAST)
    assert recipe.walking is not None
    weights = {}
    for steps in (1, 2):
        head = replace(recipe.walking.head, steps=steps)
        chosen = replace(recipe, walking=replace(recipe.walking, head=head))
        out = tmp_path / "runs" / str(steps)
        result = made(ROWS[0], chosen).run(out)
        records = read_metrics(out)
        assert [r["step"] for r in records] == [7, 8, 9, 10, 11, 12][: 4 + steps]
        assert records[-1]["r2"] == pytest.approx(result["scores"]["r2"], abs=1e-6)
        assert result["seconds"] == records[-1]["seconds"]
        weights[steps] = load_file(out / "model.safetensors")
    moved = {name for name in weights[1] if not torch.equal(weights[1][name], weights[2][name])}
    assert moved
    assert all("encoder.head" in name for name in moved)
    wrong = made(ROWS[0], replace(recipe, network="resnet18"))
    with pytest.raises(InputError, match='unless network is "small"'):
        wrong.run(tmp_path / "runs" / "c")


def test_the_published_recipe_has_the_pairs_of_the_published_program():
    for row in ROWS[:4]:
        paper = STUDY.experiment(row, row.kind, 0, "paper")
        pairs = paper.row.conditional
        assert type(pairs) is type(row.conditional)
        assert experiments.scale_of(pairs) == 0.1
        assert paper.config["conditional"] == repr(pairs)
        assert STUDY.experiment(row, row.kind, 0, "fast").row == row
    assert STUDY.experiment(ROWS[4], "contrastive", 0, "paper").row.conditional is None


def test_the_original_images_are_used_where_they_are(tmp_path, monkeypatch):
    monkeypatch.setenv("IDENTICA_DATA", str(tmp_path / "data"))
    assert not paper_images().original
    rng = np.random.default_rng(0)
    for part, n in (("train", 12), ("test", 9)):
        z = rng.uniform(-1, 1, (n, 10))
        build(
            tmp_path / "data" / "3dident" / part,
            z,
            Renderer(16, samples=4).draw,
            size=16,
            packed=False,
        )
    images = STUDY.experiment(ROWS[0], "contrastive", 0, "paper").images
    assert (images.train, images.test, images.original) == (12, 9, True)
    assert not STUDY.experiment(ROWS[0], "contrastive", 0, "fast").images.original
    monkeypatch.setattr(Renderer, "draw", None)  # nothing is rendered
    experiment = ImageExperiment(ROWS[0], 0, tiny(PAPER, steps=1), images)
    found = experiment.run(tmp_path / "study" / "runs" / "run")
    assert 0 <= found["scores"]["mcc"] <= 1
    assert not (tmp_path / "study" / "images").exists()


def test_it_learns():
    """A few steps of the fast preset lower the loss of labelled images."""
    recipe = THREEDIDENT_SUPERVISED
    objective, _ = made(ROWS[5], recipe).objective()
    process = experiments.make_process(replace(SMALL, size=32))
    z = process.latents(64, generator=0)
    batch = Labelled(z, process.mixing(z))
    training = replace(
        recipe.training, steps=20, batch=64, lr=3e-3, score_every=1, warmup=2, optimizer="adam"
    )
    history = train(objective, lambda size, generator: batch, training)
    losses = [record["loss"] for record in history.records]
    assert losses[-1] < 0.5 * losses[0]
    assert torch.isfinite(torch.tensor(losses)).all()
