import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import stats

from identica import (
    Box,
    Euclidean,
    GenerativeProcess,
    InputError,
    InvertibleMLP,
    Laplace,
    Normal,
    Sphere,
    Training,
    Uniform,
    VonMisesFisher,
)
from identica.studies import find, load, marginals
from identica.studies.marginals import KINDS, has_density, log_density_of_positives
from identica.studies.shapes import SHAPES, Shape
from identica.studies.study import Finished

SPACES = [Euclidean(5), Box(5), Sphere(5)]


@pytest.mark.parametrize("space", SPACES, ids=str)
@pytest.mark.parametrize("name", SHAPES)
def test_shapes_are_drawn_in_their_space_and_are_not_uniform(space, name):
    g = InvertibleMLP(5, seed=0, draws=1)
    process = GenerativeProcess(space, Shape(name), Normal(0.3), g)
    z = process.latents(4000, generator=0)
    assert z.shape == (4000, 5)
    assert bool(space.contains(z).all())
    assert torch.equal(z, process.latents(4000, generator=0))
    assert not torch.equal(z, process.latents(4000, generator=1))
    if isinstance(space, Euclidean):
        return
    # means of waves and of products of two, away from those of the uniform law by far more than their
    # standard errors
    uniform = space.sample(4000, generator=1)
    waves = [torch.cat([x, (2 * math.pi * x).cos()], 1) for x in (z, uniform)]
    features = [torch.cat([x, (x[:, :, None] * x[:, None]).flatten(1)], 1) for x in waves]
    gap = (features[0].mean(0) - features[1].mean(0)).abs()
    error = ((features[0].var(0) + features[1].var(0)) / 4000).sqrt()
    assert (gap > 6 * error).any()


def test_a_shape_is_a_marginal_and_nothing_else():
    with pytest.raises(InputError, match="cannot be a model"):
        _ = Shape("ring").p
    with pytest.raises(InputError, match="is not defined on"):
        GenerativeProcess(
            Box(3, high=2.0), Shape("ring"), Normal(0.1), InvertibleMLP(3, seed=0, draws=1)
        )
    with pytest.raises(InputError, match="name must be one of"):
        Shape("square")


def process_of(space, marginal, conditional):
    return GenerativeProcess(
        space, marginal, conditional, InvertibleMLP(space.dim, seed=0, draws=1)
    )


def test_the_density_of_positives_is_that_of_the_sum_of_two_normals():
    process = process_of(Euclidean(4), Normal(1.0), Normal(1.0))
    z = process.sample(200, generator=0).z_pos
    found = log_density_of_positives(process, z, generator=1).numpy()
    exact = stats.norm(scale=math.sqrt(2)).logpdf(z.double().numpy()).sum(1)
    # four means of 30,000 kernels, whose relative spread is below 1.5 but in the tails
    assert np.median(abs(found - exact)) < 4 * 1.5 / math.sqrt(30_000)
    assert np.corrcoef(found, exact)[0, 1] > 0.999


def test_the_density_of_positives_in_a_box_knows_of_its_walls():
    process = process_of(Box(1), Uniform(), Laplace(0.3))
    z = torch.tensor([[0.01], [0.3], [0.5], [0.99]])
    found = log_density_of_positives(process, z, generator=1, draws=200_000).exp().numpy()
    centres = (np.arange(20_000) + 0.5) / 20_000
    mass = 0.3 * (2 - np.exp(-centres / 0.3) - np.exp(-(1 - centres) / 0.3))
    exact = [np.mean(np.exp(-abs(x - centres) / 0.3) / mass) for x in z[:, 0].numpy()]
    assert found == pytest.approx(exact, rel=0.01)


def test_dependent_coordinates_are_averaged_together():
    """In two dimensions, against all of them at once; the ring has two at a time."""
    process = process_of(Euclidean(2), Shape("ring"), Normal(0.5))
    z = process.sample(100, generator=0).z_pos
    found = log_density_of_positives(process, z, generator=1, draws=1000)
    centres = process.latents(1000, generator=1).double()
    kernel = Normal(0.5).log_prob(Euclidean(2), z.double()[:, None], centres)
    assert torch.allclose(found, kernel.exp().mean(1).log())


def test_rows_cover_all_shapes_on_all_spaces_and_those_of_the_paper():
    rows = load("marginals")
    assert [row.row for row in rows] == list(range(1, len(rows) + 1))
    paper = load("icml-table1")[8:]
    assert [(r.space, r.marginal, r.conditional, r.model) for r in rows[:4]] == [
        (r.space, r.marginal, r.conditional, r.model) for r in paper
    ]
    cells = {(type(r.space), r.marginal.name) for r in rows if isinstance(r.marginal, Shape)}
    assert cells == {(kind, name) for kind in (Euclidean, Box, Sphere) for name in SHAPES}
    conditionals = {(type(r.space), r.conditional.p) for r in rows if isinstance(r.marginal, Shape)}
    assert len(conditionals) == 7


def test_every_row_but_the_narrow_ones_is_guaranteed_with_a_potential():
    study = find("marginals")
    for row in study.rows:
        promised = study.guarantee(row).up_to
        by_itself = row.conditional.p not in (None, 2)
        expected = "permutation" if by_itself else "orthogonal"
        assert promised == (None if row.row <= 2 else expected)


def test_kinds_differ_by_their_loss():
    study = find("marginals")
    for kind in KINDS:
        recipe = study.experiment(study.rows[4], kind, 0, "fast").recipe
        assert recipe.potential == (kind == "potential")
        assert recipe.negatives_from == ("anchors" if kind == "published" else "positives")
        assert recipe.self_negative == (kind == "published")


def test_precise_rows_have_a_curved_potential_with_a_rate_of_its_own():
    study = find("marginals")
    for row in study.rows:
        precise = row.row in marginals.PRECISE
        experiment = study.experiment(row, "potential", 0, "fast")
        potential = experiment.model().potential
        assert (potential.curve is not None) == precise
        assert potential.lr == (3 * experiment.recipe.training.lr if precise else None)
        assert (experiment.recipe.refine > 0) == precise
        for kind in ("plain", "published"):
            other = study.experiment(row, kind, 0, "fast")
            assert other.model().potential is None
            assert not {"curved", "potential_lr", "refine"} & set(other.config["preset"])


def test_a_potential_is_refined_with_fixed_codes(tmp_path, monkeypatch):
    monkeypatch.setattr(marginals, "PLACES", 50)
    study = find("marginals")
    row = study.rows[25]
    usual = study.experiment(row, "potential", 0, "fast").recipe
    assert usual.refine > 0
    short = Training(steps=3, batch=32, optimizer="adam", warmup=0, decay=0.0)
    weights, scores = [], []
    for refine in (0, 4):
        tiny = replace(usual, training=short, network=(8,), refine=refine)
        experiment = study.experiment(row, "potential", 0, tiny)
        assert [t.steps for t in experiment.trainings] == [3, 4][: 1 + bool(refine)]
        result = experiment.run(tmp_path / str(refine))
        assert result["pairs"] == 32 * (3 + refine)
        objective, _ = experiment.trained(tmp_path / str(refine))
        weights.append(objective.state_dict())
        scores.append(result["scores"])
    same = {name: torch.equal(weights[0][name], weights[1][name]) for name in weights[0]}
    assert same == {name: not name.startswith("model.potential.") for name in same}
    assert all(scores[0][name] == scores[1][name] for name in ("r2", "mcc"))
    assert scores[0]["density"] != scores[1]["density"]


def test_codes_of_spheres_are_normalised_gradually_but_by_the_published_loss():
    study = find("marginals")
    for row in study.rows[4:]:
        for kind in KINDS:
            recipe = study.experiment(row, kind, 0, "fast").recipe
            sphere = isinstance(row.space, Sphere)
            assert recipe.soften == (sphere and kind != "published")
            if recipe.soften:
                assert recipe.head(row.model_space).soften == recipe.training.steps // 2


def test_a_tiny_experiment_runs_and_is_read_back(tmp_path, monkeypatch):
    monkeypatch.setattr(marginals, "PLACES", 50)
    study = find("marginals")
    row = study.rows[3]
    usual = study.experiment(row, "potential", 0, "fast").recipe
    short = Training(steps=3, batch=32, optimizer="adam", score_every=2)
    tiny = replace(usual, training=short, network=(8,))
    experiment = study.experiment(row, "potential", 0, tiny)
    result = experiment.run(tmp_path)
    assert set(result["scores"]) == {"r2", "mcc", "density"}
    assert [t.score for t in study.targets(row) if t.kind == "potential"] == ["r2", "density"]
    config = json.loads(json.dumps(experiment.config))
    run = Finished(0, tmp_path, config, result)
    assert study.read_back(row, run).name == experiment.name
    density = study.pictures(row, {"potential": [run]})[-1]
    assert "Log-density of the positives" in density.caption
    # the weights are those that were scored
    objective, _ = study.read_back(row, run).trained(tmp_path)
    found, truth = experiment.densities(objective.model)
    assert np.corrcoef(found, truth)[0, 1] == pytest.approx(result["scores"]["density"])


def test_narrow_pairs_pull_and_have_no_known_density():
    study = find("marginals")
    narrow = study.experiment(study.rows[0], "potential", 0, "fast")
    assert narrow.recipe.pull is not None
    loss = narrow.recipe.loss(narrow.row.model)
    steps = narrow.recipe.training.steps
    assert loss.pull == (0.5, round(0.25 * steps), round(0.6 * steps))
    assert not has_density(study.rows[0], "potential")
    assert has_density(study.rows[4], "potential")
    assert not has_density(study.rows[4], "published")


@pytest.mark.parametrize(
    ("space", "marginal", "blocks"),
    [
        (Euclidean(5), Normal(1.0), [[0], [1], [2], [3], [4]]),
        (Euclidean(5), Shape("ring"), [[0, 1], [2, 3], [4]]),
        (Euclidean(5), Shape("mixture"), [[0, 1, 2, 3, 4]]),
        (Box(3), Shape("skewed"), [[0], [1], [2]]),
        (Sphere(3), Normal(1.0), [[0, 1, 2]]),
    ],
    ids=str,
)
def test_densities_are_averaged_by_blocks_of_coordinates(space, marginal, blocks):
    """log q = Σ log mean_j p(z_b | c_jb) over blocks b of coordinates."""
    conditional = VonMisesFisher(3.0) if isinstance(space, Sphere) else Laplace(0.5)
    process = GenerativeProcess(
        space, marginal, conditional, InvertibleMLP(space.dim, seed=0, draws=5)
    )
    z = process.latents(7, generator=3)
    centres = process.latents(40, generator=9).double()
    expected = []
    for point in z.double():
        total = 0.0
        for block in blocks:
            part = {Box: Box, Euclidean: Euclidean}.get(type(space), lambda n: space)(len(block))
            near = centres[:, block]
            here = point[block].expand_as(near)
            total += math.log(conditional.log_prob(part, here, near).exp().mean())
        expected.append(total)
    found = log_density_of_positives(process, z, generator=9, draws=40)
    assert found.tolist() == pytest.approx(expected, rel=1e-5, abs=1e-5)
