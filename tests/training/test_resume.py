"""Runs that were stopped resume to the same bits, each in a folder of its own."""

import itertools
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from helpers.small import score, setup
from identica import (
    MLP,
    Box,
    ContrastiveModel,
    GenerativeProcess,
    InfoNCE,
    InvertibleMLP,
    Laplace,
    Potential,
    Sphere,
    Training,
    Uniform,
    VonMisesFisher,
    checkpoints,
    train,
)
from identica.errors import DamagedError
from identica.training import Contrastive

TESTS = Path(__file__).parents[1]
OPTIMIZERS = ["soap", "muon", "adam"]


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


def test_a_potential_and_a_pull_resume_to_the_same_bits(tmp_path):
    def run(out, tick=None):
        process, _, _ = setup()
        model = ContrastiveModel(
            Sphere(3), VonMisesFisher(2.0), MLP(3, 3, (8,)), potential=Potential(3, (8,))
        )
        options = {"symmetric": True, "negatives_from": "positives", "pull": (0.5, 2, 7)}
        objective = Contrastive(model, InfoNCE(model.conditional, **options))
        settings = Training(steps=8, batch=32, checkpoint_every=4)
        train(objective, process.sample, settings, out=out, tick=tick)
        return objective.state_dict()

    def stops(step, steps):
        if step == 5:
            raise KeyboardInterrupt

    whole = run(None)
    assert whole["model.potential.network.layers.1.weight"].abs().max() > 0
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, stops)
    resumed = run(tmp_path)
    assert whole.keys() == resumed.keys()
    assert all(torch.equal(whole[name], resumed[name]) for name in whole)


def test_seconds_add_up_over_a_resume(tmp_path, monkeypatch):
    """By a clock that goes on by one second whenever it is read."""
    clock = itertools.count()
    monkeypatch.setattr("identica.training.loop.time.perf_counter", lambda: float(next(clock)))
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


def test_a_killed_run_goes_on_to_the_same_bits(tmp_path):
    """SIGKILL at random moments, then resume: the same final weights as an undisturbed run."""

    def start(name):
        command = [sys.executable, "-m", "helpers.train_small", str(tmp_path / name)]
        path = os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])
        return subprocess.Popen(command, env={**os.environ, "PYTHONPATH": path})

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
