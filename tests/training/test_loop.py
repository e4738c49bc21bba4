import itertools
import json
import math
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import nullcontext

import pytest
import torch
from safetensors.torch import load_file

from helpers.small import setup
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
    Sphere,
    Training,
    Uniform,
    VonMisesFisher,
    checkpoints,
    train,
)
from identica.errors import DamagedError, NonFiniteLossError
from identica.metrics import linear_r2
from identica.process import Pairs, Walk
from identica.training import Contrastive, Supervised
from identica.training.optimizers import make_optimizer

OPTIMIZERS = ["soap", "muon", "adam"]


def score(process, model):
    held_out = process.sample(1000, generator=99)

    def r2():
        with torch.no_grad():
            return {"r2": linear_r2(held_out.z, model(held_out.x))}

    return r2


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


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_a_stopped_run_goes_on_to_the_same_bits(tmp_path, optimizer):
    settings = Training(steps=40, batch=64, optimizer=optimizer, score_every=7, checkpoint_every=15)
    process, model, objective = setup()
    whole = train(
        objective, process.sample, settings, out=tmp_path / "whole", score=score(process, model)
    )

    process, model, objective = setup()
    calls = 0

    def stops(size, *, generator):
        nonlocal calls
        calls += 1
        if calls == 34:  # after the checkpoint at step 30
            raise KeyboardInterrupt
        return process.sample(size, generator=generator)

    with pytest.raises(KeyboardInterrupt):
        train(objective, stops, settings, out=tmp_path / "cut", score=score(process, model))
    process, model, objective = setup()
    cut = train(
        objective, process.sample, settings, out=tmp_path / "cut", score=score(process, model)
    )
    for a, b in zip(whole.records, cut.records, strict=True):
        assert {**a, "seconds": 0} == {**b, "seconds": 0}
    one = load_file(tmp_path / "whole" / "model.safetensors")
    other = load_file(tmp_path / "cut" / "model.safetensors")
    assert one.keys() == other.keys()
    assert all(torch.equal(one[k], other[k]) for k in one)


@pytest.mark.parametrize("seed", [1, 10**8])
def test_soap_resumes_to_the_same_bits_at_the_default_width(tmp_path, seed):
    """At this size products round differently if their factors lie elsewhere in memory. Where tensors
    lie in a file depends on the length of the seed, eight digits more or less."""
    stop = 12

    def run(out, tick=None):
        g = InvertibleMLP(10, seed=0, draws=10)
        process = GenerativeProcess(Box(10), Uniform(), Laplace(0.05), g)
        model = ContrastiveModel(Box(10), Laplace(1.0), MLP(10, 10))
        objective = Contrastive(model, InfoNCE(model.conditional, self_negative=True))
        settings = Training(steps=24, checkpoint_every=stop)
        train(objective, process.sample, settings, seed=seed, out=out, tick=tick)
        return objective.state_dict()

    def stops(step, steps):
        if step == stop:
            raise KeyboardInterrupt

    whole = run(None)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, stops)
    resumed = run(tmp_path)
    assert all(torch.equal(whole[name], resumed[name]) for name in whole)


def test_seconds_add_up_over_a_resume(tmp_path, monkeypatch):
    """By a clock that goes on by one second whenever it is read."""
    clock = itertools.count()
    monkeypatch.setattr("identica.training.time.perf_counter", lambda: float(next(clock)))
    settings = Training(steps=6, batch=32, score_every=1, checkpoint_every=2)
    process, _, objective = setup()

    def stops(step, steps):
        if step == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(objective, process.sample, settings, out=tmp_path, tick=stops)
    before = checkpoints.load(tmp_path / "checkpoint.safetensors")["seconds"]
    next(itertools.islice(clock, 1000, None))  # a long pause counts for nothing
    history = train(setup()[2], process.sample, settings, out=tmp_path)
    seconds = [record["seconds"] for record in history.records]
    assert all(a < b for a, b in itertools.pairwise(seconds))
    assert seconds[3] <= before < seconds[4] < before + 10


SCRIPT = """
import sys, torch
torch.set_num_threads(1)
from helpers.small import setup
from identica import Training, train
process, model, objective = setup()
settings = Training(steps=400, batch=64, score_every=50, checkpoint_every=10)
train(objective, process.sample, settings, out={out!r})
"""


def test_a_killed_run_goes_on_to_the_same_bits(tmp_path):
    """SIGKILL at random moments, then resume: the same final weights as an undisturbed run."""

    def start(name):
        code = SCRIPT.format(tests=os.path.dirname(__file__), out=str(tmp_path / name))
        return subprocess.Popen([sys.executable, "-c", code])

    rng = random.Random(0)
    kills = 0
    for _ in range(3):
        process = start("killed")
        checkpoint = tmp_path / "killed" / "checkpoint.safetensors"
        before = checkpoint.stat().st_mtime_ns if checkpoint.exists() else 0
        while process.poll() is None:
            if checkpoint.exists() and checkpoint.stat().st_mtime_ns > before:
                time.sleep(rng.uniform(0, 0.3))
                process.send_signal(signal.SIGKILL)
                break
            time.sleep(0.01)
        process.wait()
        kills += process.returncode == -signal.SIGKILL
    assert kills >= 1
    assert start("killed").wait() == 0
    assert start("whole").wait() == 0
    one = load_file(tmp_path / "whole" / "model.safetensors")
    other = load_file(tmp_path / "killed" / "model.safetensors")
    assert all(torch.equal(one[k], other[k]) for k in one)
    left = {p.name for p in (tmp_path / "killed").iterdir() if not p.name.startswith(".")}
    assert left == {"checkpoint.safetensors", "metrics.jsonl", "model.safetensors"}


def test_metrics_are_a_record_per_line(tmp_path):
    process, model, objective = setup()
    settings = Training(steps=20, batch=32, score_every=5)
    train(objective, process.sample, settings, out=tmp_path, score=score(process, model))
    records = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [r["step"] for r in records] == [5, 10, 15, 20]
    assert all({"loss", "lr", "r2", "seconds"} <= r.keys() for r in records)


def test_a_finished_run_is_not_run_again(tmp_path):
    process, _, objective = setup()
    settings = Training(steps=10, batch=32)
    first = train(objective, process.sample, settings, out=tmp_path)

    def never(step, steps):
        raise AssertionError("ran again")

    again = setup()[2]
    history = train(again, process.sample, settings, out=tmp_path, tick=never)
    assert history.records == first.records
    assert all(map(torch.equal, again.state_dict().values(), objective.state_dict().values()))


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


# --- a folder belongs to one run --------------------------------------------------------------------


def other_runs():
    """What makes another run of the one in `setup`, by what its error is to name."""
    process, _, objective = setup()
    mixing = InvertibleMLP(3, seed=1, draws=100)
    wider = GenerativeProcess(Sphere(3), Uniform(), VonMisesFisher(15.0), process.mixing)
    elsewhere = GenerativeProcess(Sphere(3), Uniform(), VonMisesFisher(20.0), mixing)
    model = ContrastiveModel(Sphere(3), VonMisesFisher(2.0), objective.model.encoder)
    loss = InfoNCE(VonMisesFisher(1.0), symmetric=True, negatives=5)
    return {
        "training": {"training": Training(steps=5, batch=32)},
        "seed": {"seed": 1},
        "initial state": {"objective": setup(seed=5)[2]},
        "first batch": {"sample": wider.sample},
        "first batch, mixing": {"sample": elsewhere.sample},
        "objective": {
            "objective": Contrastive(model, InfoNCE(VonMisesFisher(1.0), symmetric=True))
        },
        "objective, loss": {"objective": Contrastive(setup()[1], loss)},
    }


@pytest.mark.parametrize("other", other_runs())
@pytest.mark.parametrize("finished", [True, False])
def test_a_folder_of_another_run_is_refused_and_left_alone(tmp_path, other, finished):
    process, _, objective = setup()
    settings = Training(steps=4, batch=32, checkpoint_every=2)

    def stops(step, steps):
        if step == 3 and not finished:
            raise KeyboardInterrupt

    with nullcontext() if finished else pytest.raises(KeyboardInterrupt):
        train(objective, process.sample, settings, out=tmp_path, tick=stops)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    usual = {"objective": setup()[2], "sample": process.sample, "training": settings}
    with pytest.raises(
        DamagedError, match=f"belongs to a run with another.* {other.split(',')[0]}"
    ):
        train(**{**usual, **other_runs()[other]}, out=tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    train(**usual, out=tmp_path)  # the run itself may go on


def test_rounding_of_another_machine_makes_no_other_run(tmp_path):
    process, _, objective = setup()
    settings = Training(steps=4, batch=32, checkpoint_every=2)
    train(objective, process.sample, settings, out=tmp_path)

    def rounded(size, *, generator):
        batch = process.sample(size, generator=generator)
        return type(batch)(*(part * (1 + 1e-5) for part in batch))

    _, _, objective = setup()
    with torch.no_grad():
        for parameter in objective.parameters():
            parameter.mul_(1 - 1e-5)
    train(objective, rounded, settings, out=tmp_path)


def test_the_schedule_rises_and_falls():
    settings = Training(steps=100, warmup=10, decay=0.5)
    factors = [settings.lr_factor(step) for step in range(100)]
    assert factors[0] == pytest.approx(0.1)
    assert factors[10:50] == [1.0] * 40
    assert all(a >= b for a, b in itertools.pairwise(factors[50:]))
    assert factors[-1] < 0.002
    assert [Training(steps=5, warmup=0, decay=0).lr_factor(s) for s in range(5)] == [1.0] * 5


def test_muon_moves_all_but_matrices_at_a_tenth_of_the_rate():
    head = BoxHead(Box(2), learnable=True, lr=0.5)
    model = ContrastiveModel(Box(2), Laplace(1.0), MLP(2, 2), head=head)
    groups = make_optimizer(model, Training(lr=0.01, optimizer="muon")).param_groups
    settings = {id(p): group for group in groups for p in group["params"]}
    assert settings.keys() == {id(p) for p in model.parameters()}
    for parameter in model.parameters():
        group, own = settings[id(parameter)], 0.5 if parameter is head.log_growth else 0.01
        rate = own if parameter.ndim == 2 else own / 10
        assert group["lr"] == group["peak"] == pytest.approx(rate)
        assert group["use_muon"] == (parameter.ndim == 2)


def test_heads_keep_their_own_learning_rate():
    head = BoxHead(Box(2), learnable=True, lr=0.5)
    model = ContrastiveModel(Box(2), Laplace(1.0), MLP(2, 2), head=head)
    groups = make_optimizer(model, Training(lr=0.01)).param_groups
    rates = {id(p): group["lr"] for group in groups for p in group["params"]}
    assert rates[id(head.log_growth)] == 0.5
    assert rates[id(model.encoder.layers[0].weight)] == 0.01


@pytest.mark.parametrize("damage", ["truncated", "foreign", "empty", "flipped"])
def test_a_damaged_checkpoint_is_named(tmp_path, damage):
    process, _, objective = setup()
    train(objective, process.sample, Training(steps=5, batch=32), out=tmp_path)
    path = tmp_path / "checkpoint.safetensors"
    content = path.read_bytes()
    if damage == "truncated":
        path.write_bytes(content[: len(content) // 2])
    elif damage == "foreign":
        path.write_bytes(b"not a checkpoint at all")
    elif damage == "empty":
        path.write_bytes(b"")
    else:
        path.write_bytes(content[:-9] + bytes([content[-9] ^ 1]) + content[-8:])
    with pytest.raises(DamagedError, match=r"checkpoint\.safetensors"):
        train(setup()[2], process.sample, Training(steps=5, batch=32), out=tmp_path)


def test_checkpoints_hold_nested_state(tmp_path):
    state = {"a": [1, None, {2: torch.arange(3)}], 5: {"x": (True, 2.5, "s")}, "none": []}
    checkpoints.save(tmp_path / "c", state)
    back = checkpoints.load(tmp_path / "c")
    assert back["a"][:2] == [1, None]
    assert torch.equal(back["a"][2][2], torch.arange(3))
    assert back[5] == {"x": (True, 2.5, "s")}
    assert back["none"] == []


def test_checkpoints_keep_the_layout_in_memory(tmp_path):
    tensors = [torch.rand(3, 4).T, torch.rand(2, 3, 4).permute(2, 0, 1), torch.tensor(1.0)]
    checkpoints.save(tmp_path / "c", tensors)
    for before, after in zip(tensors, checkpoints.load(tmp_path / "c"), strict=True):
        assert torch.equal(before, after)
        assert before.stride() == after.stride()


def test_weights_go_out_and_come_back(tmp_path):
    model, other = MLP(3, 2, seed=0), MLP(3, 2, seed=1)
    checkpoints.save_weights(tmp_path / "w", model)
    checkpoints.load_weights(tmp_path / "w", other)
    assert torch.equal(model(torch.ones(1, 3)), other(torch.ones(1, 3)))
    with pytest.raises(InputError, match="does not hold the weights"):
        checkpoints.load_weights(tmp_path / "w", MLP(3, 4))
    with pytest.raises(InputError, match="does not exist"):
        checkpoints.load_weights(tmp_path / "none", model)


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


def test_a_walk_is_trained_on_as_the_pairs_it_holds():
    """The objective of a walk is that of its neighbours as pairs, with each observation encoded once."""
    x = torch.randn(9, 4, generator=torch.Generator().manual_seed(0))
    model = ContrastiveModel(Sphere(3), VonMisesFisher(5.0), MLP(4, 3, hidden=(8,)))
    objective = Contrastive(model, InfoNCE(model.conditional, symmetric=True, apart=2))
    seen = []
    model.encoder.register_forward_hook(lambda module, args, out: seen.append(len(args[0])))
    loss = objective(Walk(x, x))
    assert seen == [9]
    torch.testing.assert_close(loss, objective(Pairs(x[:-1], x[1:], x[:-1], x[1:])))


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
