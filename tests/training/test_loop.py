import itertools
import json
import math

import pytest
import torch

from helpers.defaults import numbers_of
from helpers.small import score, setup
from identica import (
    MLP,
    Box,
    BoxHead,
    ContrastiveModel,
    GenerativeProcess,
    InfoNCE,
    InputError,
    InvertibleMLP,
    Laplace,
    Training,
    Uniform,
    checkpoints,
    train,
)
from identica.errors import NonFiniteLossError
from identica.training import Contrastive, Supervised, loop


def test_contrastive_training_inverts_a_small_mixing():
    process, model, objective = setup()
    settings = Training(steps=300, batch=512, lr=1e-2)
    history = train(objective, process.sample, settings, score=score(process, model))
    assert history.last["r2"] > 0.95


def test_supervised_training_inverts_it_too():
    process, model, _ = setup()
    settings = Training(steps=200, batch=256, lr=1e-2)
    history = train(Supervised(model), process.sample, settings, score=score(process, model))
    assert history.last["r2"] > 0.95


def test_training_on_a_box_learns_its_bounds():
    process = GenerativeProcess(
        Box(2), Uniform(), Laplace(0.05), InvertibleMLP(2, seed=0, draws=20)
    )
    head = BoxHead(Box(2), learnable=True, start=2.0, lr=0.05)
    model = ContrastiveModel(Box(2), Laplace(1.0), MLP(2, 2, hidden=(32,)), head=head)
    objective = Contrastive(model, InfoNCE(model.conditional, self_negative=True))
    train(objective, process.sample, Training(steps=60, batch=128))
    assert head.log_growth.item() > 0.2  # the best scale with the self-pair is about 4


def test_metrics_are_a_record_per_line(tmp_path):
    process, model, objective = setup()
    settings = Training(steps=20, batch=32, score_every=5)
    train(objective, process.sample, settings, out=tmp_path, score=score(process, model))
    records = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [r["step"] for r in records] == [5, 10, 15, 20]
    assert all({"loss", "lr", "r2", "seconds"} <= r.keys() for r in records)


def test_a_loss_that_is_not_finite_stops_with_the_last_good_checkpoint(tmp_path):
    process, model, objective = setup()

    calls = iter(range(100))

    def poisoned(size, *, generator):
        pairs = process.sample(size, generator=generator)
        if next(calls) == 7:
            pairs.x[0, 0] = math.nan
        return pairs

    with pytest.raises(NonFiniteLossError, match=r"step 7.*checkpoint"):
        train(objective, poisoned, Training(steps=10, batch=32, checkpoint_every=5), out=tmp_path)
    assert checkpoints.load(tmp_path / "checkpoint.safetensors")["step"] == 5
    assert all(torch.isfinite(p).all() for p in model.parameters())


class Line(torch.nn.Module):
    """A finite loss; from the third batch on its gradient is multiplied by `factor`."""

    def __init__(self, factor=1.0):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(2))
        self.offset = torch.nn.Parameter(torch.ones((), dtype=torch.float64))
        self.factor, self.calls = factor, 0
        self.weight.register_hook(
            lambda gradient: gradient * self.factor if self.calls > 3 else None
        )

    def forward(self, batch):
        self.calls += 1
        return (self.weight * batch[0]).sum() + self.offset.float() ** 2


def draw_line(size, *, generator):
    return (torch.rand(2, generator=generator),)


LINE = Training(steps=6, batch=2, optimizer="adam", checkpoint_every=1, warmup=0)


@pytest.mark.parametrize("factor", [math.nan, math.inf])
def test_a_gradient_that_is_not_finite_stops_before_the_step(tmp_path, factor):
    objective = Line(factor)
    with pytest.raises(NonFiniteLossError, match=rf"gradient became {factor} at step 3: try a low"):
        train(objective, draw_line, LINE, out=tmp_path)
    assert torch.isfinite(objective.weight).all()
    assert checkpoints.load(tmp_path / "checkpoint.safetensors")["step"] == 3


def test_a_step_that_spoils_the_parameters_is_not_kept(tmp_path, monkeypatch):
    step, calls = torch.optim.Adam.step, iter(range(100))

    def spoil(self):
        step(self)
        if next(calls) == 3:
            self.param_groups[0]["params"][0].data.fill_(math.nan)

    monkeypatch.setattr(torch.optim.Adam, "step", spoil)
    with pytest.raises(NonFiniteLossError, match="parameter became nan at step 3"):
        train(Line(), draw_line, LINE, out=tmp_path)
    state = checkpoints.load(tmp_path / "checkpoint.safetensors")
    assert state["step"] == 3
    assert torch.isfinite(state["objective"]["weight"]).all()


def test_the_schedule_rises_and_falls():
    settings = Training(steps=100, warmup=10, decay=0.5)
    factors = [settings.lr_factor(step) for step in range(100)]
    assert factors[0] == pytest.approx(0.1)
    assert factors[10:50] == [1.0] * 40
    assert all(a >= b for a, b in itertools.pairwise(factors[50:]))
    assert factors[-1] < 0.002
    assert [Training(steps=5, warmup=0, decay=0).lr_factor(s) for s in range(5)] == [1.0] * 5


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: Training(steps=0), "steps"),
        (lambda: Training(batch=1), "batch"),
        (lambda: Training(lr=-1), "lr"),
        (lambda: Training(decay=2.0), "decay"),
        (lambda: Training(optimizer="sopa"), "did you mean 'soap'"),
    ],
)
def test_bad_settings_are_named(make, named):
    with pytest.raises(InputError, match=named):
        make()


def test_an_output_folder_that_is_a_file(tmp_path):
    (tmp_path / "file").write_text("mine")
    process, _, objective = setup()
    with pytest.raises(InputError, match="out must be a folder"):
        train(objective, process.sample, Training(steps=1, batch=32), out=tmp_path / "file")
    assert (tmp_path / "file").read_text() == "mine"


def test_records_go_to_tensorboard(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    process, model, _ = setup()
    objective = Contrastive(model, InfoNCE(model.conditional))
    how = Training(steps=6, batch=32, score_every=2, checkpoint_every=2, optimizer="adam")
    history = train(objective, process.sample, how, out=tmp_path, tensorboard=True)
    events = EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    found = [(event.step, event.value) for event in events.Scalars("loss")]
    assert found == [(r["step"], pytest.approx(r["loss"])) for r in history.records]
    with pytest.raises(InputError, match="out"):
        train(objective, process.sample, how, tensorboard=True)


def test_the_schedule_falls_as_a_cosine():
    settings = Training(steps=100, warmup=0, decay=0.4)
    for step in range(60, 100):
        wanted = math.cos(math.pi * (step - 60) / 80) ** 2
        assert settings.lr_factor(step) == pytest.approx(wanted)
    both = Training(steps=100, warmup=100, decay=1.0)  # rising and falling at the same time
    assert both.lr_factor(49) == pytest.approx(0.5 * math.cos(math.pi * 49 / 200) ** 2)


def test_the_defaults_of_training():
    assert numbers_of(train) == {"seed": 0}
    schedule = {"steps": 3000, "batch": 1024, "lr": 1e-2, "warmup": 50, "decay": 1.0}
    assert numbers_of(Training) == {**schedule, "score_every": 250, "checkpoint_every": 250}


def test_batch_normalisation_stays_as_it_is_on_the_cpu(monkeypatch):
    """torch synchronises it between processes on GPUs only, and fails elsewhere."""
    monkeypatch.setattr(loop, "DistributedDataParallel", lambda module: module)
    network = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
    assert loop._shared(network) is network
    assert type(network[1]) is torch.nn.BatchNorm1d


@pytest.mark.parametrize(("until", "left"), [(None, True), (2, False)])
def test_only_the_bar_of_a_whole_training_is_left(until, left, monkeypatch):
    """A fit begins many trainings, and the bars of all would fill pages."""
    process, _, objective = setup()
    bars, real = [], loop.progress_bar
    monkeypatch.setattr(loop, "progress_bar", lambda **how: bars.append(how) or real(**how))
    training = Training(steps=3, batch=8, optimizer="adam")
    train(objective, process.sample, training, until=until, progress="short")
    assert [bar["leave"] for bar in bars] == [left]
