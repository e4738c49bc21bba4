"""Recipes: those of the paper, those of the finished runs, and what holds for every assumption."""

import json
from pathlib import Path

import pytest
import torch

from identica import (
    Box,
    Euclidean,
    GeneralizedNormal,
    Joint,
    Laplace,
    Normal,
    Product,
    Sphere,
    Training,
    Uniform,
    VonMisesFisher,
    recipes,
)
from identica.datasets import dsprites
from identica.recipes import for_easy_pairs, for_images, for_network, for_observations
from identica.recipes import studies as presets
from identica.recipes.observations import FEW, MANY
from identica.studies import STUDIES, find
from identica.studies.table import registered

SPACES = [Box(2), Euclidean(2), Sphere(2, radius=3.0)]
RESULTS = Path(__file__).parents[1] / "results"
PUBLISHED = {"lr": 1e-4, "optimizer": "adam", "warmup": 0, "decay": 0}


@pytest.fixture
def no_data(tmp_path, monkeypatch):
    """Runs were made without the original images, which are part of a configuration."""
    monkeypatch.setenv("IDENTICA_DATA", str(tmp_path))
    assert not dsprites.is_at_hand()


@pytest.mark.parametrize("name", list(STUDIES))
def test_every_finished_run_has_the_name_that_its_configuration_gives(name, no_data):
    """Finished runs are found by their names: today's configurations still give those in results/."""
    study = find(name)
    rows = {row.row: row for row in study.rows}
    if not (RESULTS / name / "study.json").exists():
        pytest.skip(f"no results of {name} yet")
    registered_as, runs = registered(RESULTS / name)
    assert registered_as == name
    for (row, kind, seed), run in runs.items():
        assert study.experiment(rows[row], kind, seed, "fast").name == run, (row, kind, seed)
    # every figure of the table has its runs
    table = json.loads((RESULTS / name / "table.json").read_text(encoding="utf-8"))
    figures = {(record["row"], record["kind"]): record["ours"]["seeds"] for record in table}
    assert figures
    for (row, kind), seeds in figures.items():
        assert len([use for use in runs if use[:2] == (row, kind)]) >= seeds


@pytest.mark.parametrize(
    ("recipe", "steps", "batch", "network"),
    [
        (presets.PAPER, 300_000, 6144, (100, 500, 500, 500, 500, 100)),
        (presets.PAPER_SUPERVISED, 100_000, 6144, (100, 500, 500, 500, 500, 100)),
        (presets.PAPER_IMAGES, 300_000, 32, "conv"),  # 64 images
        (presets.PAPER_THREEDIDENT, 30_000, 512, "resnet18"),
    ],
)
def test_the_recipes_of_the_papers(recipe, steps, batch, network):
    found = recipe.training
    assert (found.steps, found.batch, recipe.network) == (steps, batch, network)
    assert {name: getattr(found, name) for name in PUBLISHED} == PUBLISHED
    assert recipe.self_negative
    assert (recipe.tau, recipe.positives, recipe.bound) == (1.0, 1, 1.0)
    # a run of weeks loses minutes when it is killed
    assert found.checkpoint_every <= found.steps / 500


@pytest.mark.parametrize(
    ("study", "kind", "name"),
    [
        ("icml-table1", "supervised", "supervised-49c89ba36b0c"),
        ("icml-table1", "contrastive", "contrastive-bbed836bfe38"),
        ("icml-table2", "contrastive", "contrastive-d47829f5c1a1"),
        ("icml-table4", "contrastive", "contrastive-545730d1e8a3"),
        ("workshop-table2", "ada-gvae", "ada-gvae-4cf9e6e8026b"),
        ("workshop-table5", "beta-vae", "beta-vae-a586c4cb5015"),
        ("theorem1", "contrastive", "theorem1-65dc45b7be38"),
    ],
)
def test_runs_with_the_settings_of_the_papers_keep_their_names(study, kind, name, no_data):
    """They take weeks: another name would mean another run."""
    found = find(study)
    assert found.experiment(found.rows[0], kind, 0, "paper").name == name


def test_the_recipe_of_a_finished_run_is_read_from_its_configuration():
    configs = [
        json.loads(path.read_text(encoding="utf-8"))
        for path in (RESULTS / "icml-table4" / "runs").glob("*/config.json")
    ]
    found = {config["kind"]: recipes.from_config(config) for config in configs}
    assert found["supervised"] == presets.THREEDIDENT_SUPERVISED
    walking, wanted = found["contrastive"].walking, presets.THREEDIDENT.walking
    assert [training.lr for training in walking.on_images()] == [
        training.lr for training in wanted.on_images()
    ]
    assert recipes.from_config({"hidden": [3, 4], "anneal": [0.9, 10]}) == recipes.Recipe(
        Training(), network=(3, 4), alpha_start=0.9
    )


@pytest.mark.parametrize("space", [Box(3), Euclidean(3), Sphere(3, radius=0.5), Sphere(3)])
@pytest.mark.parametrize("family", [Laplace(0.05), Normal(0.3), GeneralizedNormal(3.0, 7.0)])
def test_training_starts_from_unit_precision_or_ten_on_a_sphere(space, family):
    """In units of the radius: the similarity of codes one radius apart, over the temperature."""
    radius = getattr(space, "radius", 1.0)
    unit = family.precision * radius**family.p
    for learnt in (False, True):
        found = recipes.for_easy_pairs(space, family, learn_precision=learnt)
        start = 10 if isinstance(space, Sphere) and not learnt else 1
        assert unit / found.tau == pytest.approx(start)


def test_the_concentration_on_a_sphere_starts_at_ten_too():
    found = recipes.for_easy_pairs(Sphere(3, radius=2.0), VonMisesFisher(5.0))
    assert 5.0 * 2.0**2 / found.tau == pytest.approx(10)
    assert (found.symmetric, found.self_negative, found.learn_tau) == (True, False, True)
    normal = recipes.for_easy_pairs(Sphere(3), Normal(0.1), learn_precision=True)
    assert (normal.symmetric, normal.learn_tau) == (True, False)
    assert not recipes.for_easy_pairs(Sphere(3), Laplace(0.1)).symmetric
    parts = Joint((VonMisesFisher(5.0), 3), (Laplace(0.1), 2))
    joint = recipes.for_easy_pairs(Product(Sphere(3), Box(2)), parts)
    assert (joint.learn_tau, joint.bound, joint.tau) == (True, None, 1.0)


@pytest.mark.parametrize("space", [Box(3), Euclidean(3)])
@pytest.mark.parametrize("family", [Laplace(0.05), Normal(0.05), GeneralizedNormal(3.0, 0.05)])
def test_unknown_processes_are_treated_like_known_ones(space, family):
    """The walls start at the same place, and the self-pair weighs the same."""
    known = presets.for_process(Uniform(), family, space, family)
    found = recipes.for_easy_pairs(space, family)
    if isinstance(space, Box) or family.p != 2:  # whether the process has walls is not known
        assert found.effective_negatives == known.effective_negatives
    if isinstance(space, Box):
        assert found.bound == known.bound


def test_walls_that_a_normal_model_ignores_bend_it_less_with_more_negatives():
    """Without walls, or with a marginal that bends the codes in any case, nothing is weighed."""
    unbounded, model = Euclidean(3), Normal(0.5)
    by_walls = presets.for_process(Uniform(), Laplace(0.05), unbounded, model)
    bent = presets.for_process(Normal(1.0), Normal(1.0), unbounded, model)
    assert by_walls.effective_negatives > 6144  # those of the published batch
    assert bent.effective_negatives is None
    rates = [by_walls.training.lr_factor(step) for step in (100, by_walls.training.steps // 2 - 1)]
    assert rates == [1.0, 1.0]


@pytest.mark.parametrize(
    ("space", "model"),
    [(Box(3), Laplace(1.0)), (Box(3), Normal(0.5)), (Euclidean(3), GeneralizedNormal(3.0))],
)
def test_positives_closer_than_those_of_a_laplace_have_whitened_observations(space, model):
    wide, closer = (
        presets.for_process(Uniform(), family, space, model)
        for family in (Laplace(0.05), Normal(0.05))
    )
    assert (wide.whiten, closer.whiten) == (False, True)


def test_a_learnt_side_grows_at_most_e_to_the_fourth():
    """If every step is as long as the learning rate allows; warming up takes a little away."""
    found = recipes.for_easy_pairs(Box(2), Laplace(0.1))
    factors = [found.training.lr_factor(step) for step in range(found.training.steps)]
    assert found.bound_lr * sum(factors) == pytest.approx(4, rel=2e-2)


def test_heads_follow_the_recipe():
    far = 100 * torch.tensor([[-1.0, 1.0]])
    training = Training(steps=1000)
    for bound, side in ((3.0, 3.0), (None, 2.0)):
        head = recipes.Recipe(training, bound=bound, bound_lr=0.1).head(Box(2, low=-1.0, high=1.0))
        assert head(far).detach() == pytest.approx(torch.tensor([[-1.0, side - 1]]), rel=1e-6)
        assert (head.learnable, head.lr) == ((True, 0.1) if bound else (False, None))
    for radius in (None, 2.0):
        head = recipes.Recipe(training, radius=radius).head(Sphere(2))
        assert float(head(far).detach().norm()) == pytest.approx(radius or 1.0)
        assert head.learnable is (radius is not None)
    assert recipes.Recipe(training, soften=True).head(Sphere(2)).soften == 500  # the first half
    assert torch.equal(recipes.Recipe(training).head(Euclidean(2))(far), far)


@pytest.mark.parametrize(("options", "rising"), [({}, 7), ({"warm": 0.4}, 4)])
def test_the_temperature_rises_geometrically_in_the_first_part_of_the_training(options, rising):
    loss = recipes.Recipe(Training(steps=10), tau_start=0.1).loss(Normal(1.0), **options)
    codes = torch.randn(4, 2, generator=torch.Generator().manual_seed(0))
    for step in range(10):
        loss(codes, codes + 0.1)
        assert loss.tau == pytest.approx(0.1 ** max(0, 1 - step / rising))


def test_presets_are_known_by_name():
    fast, paper, own = presets.SUPERVISED, presets.PAPER, presets.DEMO
    assert recipes.pick("fast", fast=fast, paper=paper) is fast
    assert recipes.pick("paper", fast=fast, paper=paper) is paper
    assert recipes.pick(own, fast=fast, paper=paper) is own


# --- observations of an unknown process -------------------------------------------------------------


def every(space, family, **options):
    return [
        *for_observations(space, family, 1000, **options),
        *for_observations(space, family, 100_000, **options),
        *for_network(space, family, wide=False, **options),
        *for_images(space, family, 1000, **options),
        for_easy_pairs(space, family, **options),
    ]


@pytest.mark.parametrize("scale", [0.1, 10.0])
@pytest.mark.parametrize("space", SPACES, ids=repr)
def test_the_scale_of_the_family_does_not_matter(space, scale):
    """Of a conditional the form alone counts: the loss before training is the same."""
    h = torch.randn(20, 2, generator=torch.Generator().manual_seed(0))
    losses = [
        [how.loss(family)(head(h), head(h + 0.1)).item() for how, head in found]
        for family in (Normal(1.0), Normal(scale))
        for found in [[(how, how.head(space)) for how in every(space, family)]]
    ]
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


@pytest.mark.parametrize(
    ("space", "family", "learn_precision"),
    [
        (space, family, learn_precision)
        for space in SPACES
        for family in (Laplace(1.0), Normal(1.0), VonMisesFisher(1.0))
        for learn_precision in (False, True)
        if family.supports(space) and not (learn_precision and family.p is None)
    ],
    ids=repr,
)
def test_every_recipe_makes_a_loss_and_a_head(space, family, learn_precision):
    for how in every(space, family, learn_precision=learn_precision):
        loss = how.loss(family, learn_precision=2 if learn_precision else None)
        h = how.head(space)(torch.randn(20, 2, generator=torch.Generator().manual_seed(0)))
        assert loss(h, h.roll(1, 0)).isfinite()


def test_networks_grow_with_the_number_of_pairs():
    sizes = [
        max(
            len(how.network) and max(how.network)
            for how in for_observations(Box(2), Normal(1.0), n)
        )
        for n in (FEW - 1, FEW, MANY, float("inf"))
    ]
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[-1]


def test_soap_is_left_out_for_wide_layers():
    for wide in (False, True):
        found = for_network(Box(2), Normal(1.0), wide=wide)
        assert ("soap" in {how.training.optimizer for how in found}) == (not wide)
