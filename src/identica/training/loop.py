"""The training loop, for any objective, from scratch or from a checkpoint."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from types import NoneType
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from identica import checkpoints, distributed
from identica._io import make_folder, write_text
from identica._progress import progress_bar
from identica._random import as_generator
from identica._validate import (
    as_path,
    count,
    flag,
    function,
    instance,
    nonnegative,
    one_of,
    positive,
)
from identica.errors import DamagedError, InputError, LostProcessError, NonFiniteLossError
from identica.runs.folder import CHECKPOINT, METRICS, WEIGHTS
from identica.training.devices import device_of
from identica.training.identity import differences, identify
from identica.training.optimizers import OPTIMIZERS, make_optimizer
from identica.training.stopping import Best, Stopping


@dataclass(frozen=True)
class Training:
    """Training settings.
    Args:
        steps: number of steps.
        batch: pairs per step.
        lr: peak learning rate.
        optimizer: "soap" (Adam in the eigenbasis of Shampoo's preconditioner), "muon", "adam" or
            "adamw" (with a weight decay of 0.01).
        warmup: steps over which the learning rate rises from 0.
        decay: fraction of the steps, at the end, over which it falls to 0 as a cosine; 0 for none.
        score_every: steps between evaluations; there is always one at the end.
        checkpoint_every: steps between checkpoints.
    """

    steps: int = 3000
    batch: int = 1024
    lr: float = 1e-2
    optimizer: str = "soap"
    warmup: int = 50
    decay: float = 1.0
    score_every: int = 250
    checkpoint_every: int = 250

    def __post_init__(self) -> None:
        for name in ("steps", "score_every", "checkpoint_every"):
            count(name, getattr(self, name))
        count("batch", self.batch, at_least=2)
        count("warmup", self.warmup, at_least=0)
        object.__setattr__(self, "lr", positive("lr", self.lr))  # converted to float
        if nonnegative("decay", self.decay) > 1:
            raise InputError(f"decay must lie between 0 and 1, got {self.decay!r}")
        one_of("optimizer", self.optimizer, OPTIMIZERS)

    def lr_factor(self, step: int) -> float:
        """Learning rate at a step (from 0), as a fraction of its peak."""
        rise = min(1.0, (step + 1) / self.warmup) if self.warmup else 1.0
        start = self.steps * (1 - self.decay)
        if self.decay == 0 or step < start:
            return rise
        return rise * (1 + math.cos(math.pi * (step - start) / (self.steps - start))) / 2


class Sampler(Protocol):
    """Draws a batch of a given size, such as `GenerativeProcess.sample`."""

    def __call__(self, size: int, /, *, generator: torch.Generator) -> Any: ...


@dataclass
class History:
    """Records of a training run, one per evaluation, as in metrics.jsonl."""

    records: list[dict[str, float]] = field(default_factory=list)

    @property
    def last(self) -> dict[str, float]:
        return self.records[-1]


def train(
    objective: nn.Module,
    sample: Sampler,
    training: Training | None = None,
    *,
    seed: int = 0,
    until: int | None = None,
    stopping: Stopping | None = None,
    score: Callable[[], dict[str, float]] | None = None,
    out: Path | str | None = None,
    progress: str | None = None,
    tick: Callable[[int, int], None] | None = None,
    tensorboard: bool = False,
) -> History:
    """Minimise an objective over batches, and return the recorded scores.

    With `out`, metrics.jsonl and checkpoints are written to that folder, and an interrupted run resumes from
    its last checkpoint with the same result (bit for bit, on the same machine with the same number of
    threads). The final weights are in model.safetensors. A folder belongs to one run: another training,
    seed, objective (including its initial parameters) or first batch raises an error.

    Under torchrun (see `identica.distributed`), each process encodes its part of every batch. The first
    process evaluates and writes; all return the same history.

    Args:
        objective: a module that maps a batch to the loss.
        sample: draws a batch, `sample(size, generator=…)`.
        training: schedule and optimiser; `Training()` by default.
        seed: determines the batches.
        until: stop after this step, for another call with the same `out` to resume; by default the last.
        stopping: early stopping; by default, training runs to the end and keeps the last weights.
        score: called every `score_every` steps; its result is recorded.
        out: folder for metrics and checkpoints.
        progress: label of a progress bar on stderr; none by default.
        tick: progress callback, called before every step with its number (from 0) and the total.
        tensorboard: also write the records to out/tensorboard.

    >>> from identica import MLP, Contrastive, ContrastiveModel, GenerativeProcess, InfoNCE, InvertibleMLP
    >>> from identica import Sphere, Uniform, VonMisesFisher
    >>> g = InvertibleMLP(2, seed=0, draws=10)
    >>> process = GenerativeProcess(Sphere(2), Uniform(), VonMisesFisher(10.0), g)
    >>> model = ContrastiveModel(Sphere(2), VonMisesFisher(10.0), MLP(2, 2, hidden=(16,)))
    >>> objective = Contrastive(model, InfoNCE(model.conditional))
    >>> history = train(objective, process.sample, Training(steps=20, batch=64, optimizer="adam"))
    >>> sorted(history.last)
    ['loss', 'lr', 'seconds', 'step']
    """
    instance("objective", objective, nn.Module, "a module")
    instance("training", training, (Training, NoneType), "a Training")
    for name, called in (("sample", sample), ("score", score), ("tick", tick)):
        if name == "sample" or called is not None:
            function(name, called)
    training = training or Training()
    last = training.steps if until is None else min(count("until", until, 0), training.steps)
    if progress is not None:
        instance("progress", progress, str, "a label of the bar, or None")
    flag("tensorboard", tensorboard)
    if stopping is not None:
        instance("stopping", stopping, Stopping, "a Stopping")
        if score is None:
            raise InputError("score must be given with stopping, which depends on it")
    optimizer = make_optimizer(objective, training)
    best = None if stopping is None else Best(objective, stopping)
    generator = as_generator(seed, device_of(objective))
    folder = None if out is None else make_folder("out", as_path("out", out))
    history, start, seconds = History(), 0, 0.0
    first, identity = None, {}
    if folder:
        first = sample(training.batch, generator=generator)
        identity = identify((training, stopping), seed, objective, first)
        kept = folder / CHECKPOINT
        state = distributed.from_first(lambda: checkpoints.load(kept) if kept.exists() else None)
        if state is not None:
            start, seconds = _restore(
                state, objective, optimizer, best, generator, identity, folder
            )
            history.records = distributed.from_first(lambda: _read_metrics(folder, start))

    rank, processes = distributed.group()
    leads = rank == 0  # evaluates, writes and reports for all
    board = _board(folder, start) if tensorboard and leads else None
    network = _shared(objective) if processes > 1 else objective
    bar = _progress_bar(progress if leads else None, start, last, until is None)
    began = time.perf_counter() - seconds

    def measure() -> dict[str, float]:
        objective.eval()
        record = {"step": done, "loss": value, "lr": training.lr * training.lr_factor(step)}
        with nullcontext() if best is None else best.averaged():
            record |= {} if score is None else score()
        objective.train()
        return record | {"seconds": round(time.perf_counter() - began, 3)}

    objective.train()
    for step in range(start, last):
        if best and best.exhausted(step):
            break
        if tick is not None:
            tick(step, training.steps)
        for group in optimizer.param_groups:
            group["lr"] = group["peak"] * training.lr_factor(step)

        drawn = first if step == 0 and folder else sample(training.batch, generator=generator)
        batch, first = distributed.own_part(drawn), None
        with _together(step, folder):
            loss = network(batch)
            _check_finite("loss", value := distributed.mean(loss.item()), step, folder)
            optimizer.zero_grad()
            loss.backward()
        _check_finite("gradient", _largest(p.grad for p in objective.parameters()), step, folder)
        optimizer.step()

        done = step + 1
        bar.update()
        if best:
            best.update(done)
        saves = done % training.checkpoint_every == 0 or done == last
        if saves:  # the loss of these parameters is not known yet, but a checkpoint must be finite
            _check_finite("largest parameter", _largest(objective.parameters()), step, folder)
        if done % training.score_every == 0 or done == last:
            record = distributed.from_first(measure)
            history.records.append(record)
            if board:
                for name, number in record.items():
                    board.add_scalar(name, number, done)
            shown = {k: f"{v:.4g}" for k, v in record.items() if k not in _NOT_SHOWN}
            bar.set_postfix(shown, refresh=False)
            if best:
                best.take(record)
                saves = saves or best.exhausted(done)
        if leads and folder and saves:
            write_metrics(folder, history)
            state = {
                "step": done,
                "seconds": time.perf_counter() - began,
                "identity": identity,
                "objective": objective.state_dict(),
                "optimizer": optimizer.state_dict(),
                "best": None if best is None else best.state(),
                "generator": generator.get_state(),
            }
            checkpoints.save(folder / CHECKPOINT, state)
    bar.close()
    if board:
        board.close()
    if best:
        best.restore()
    objective.eval()
    if folder and leads:
        checkpoints.save_weights(folder / WEIGHTS, objective)
    return history


_NOT_SHOWN = {"step", "lr", "seconds"}


# --- checkpoints and metrics --------------------------------------------------------------------


def _restore(
    state: Any,
    objective: nn.Module,
    optimizer: torch.optim.Optimizer,
    best: Best | None,
    generator: torch.Generator,
    identity: dict[str, Any],
    folder: Path,
) -> tuple[int, float]:
    """Restore a checkpoint; return its step and the seconds spent on training."""
    path = folder / CHECKPOINT
    if not isinstance(state, dict) or not isinstance(state.get("identity"), dict):
        raise DamagedError(f"{path} is not a checkpoint of a training run")
    if other := differences(state["identity"], identity):
        raise DamagedError(
            f"{path} belongs to a run with another {' and another '.join(other)}: use another folder"
        )
    try:
        objective.load_state_dict(state["objective"])
        optimizer.load_state_dict(state["optimizer"])
        if best is not None:
            best.load(state["best"])
        generator.set_state(state["generator"])
        return int(state["step"]), float(state["seconds"])
    except (KeyError, RuntimeError, ValueError, TypeError) as error:
        raise DamagedError(f"{path} does not fit this model: {error}") from None


def write_metrics(folder: Path, history: History) -> None:
    """metrics.jsonl in a folder: a line for each record."""
    write_text(folder / METRICS, "".join(json.dumps(r) + "\n" for r in history.records))


def _read_metrics(folder: Path, step: int) -> list[dict[str, float]]:
    """The records up to a step: later ones will be recorded again."""
    if not (folder / METRICS).exists():
        return []
    try:
        lines = (folder / METRICS).read_text(encoding="utf-8").splitlines()
        return [record for record in map(json.loads, lines) if record["step"] <= step]
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedError(f"{folder / METRICS} is damaged: {error}") from None


def _shared(objective: nn.Module) -> nn.Module:
    """An objective replicated in every process, with gradients averaged over all of them.

    On GPUs, batch normalisation is synchronised; torch does not support that on the CPU.
    """
    if device_of(objective).type == "cuda":
        nn.SyncBatchNorm.convert_sync_batchnorm(objective)
    return DistributedDataParallel(objective)


@contextmanager
def _together(step: int, folder: Path | None) -> Iterator[None]:
    """Raise a helpful error if another process is lost during a step."""
    try:
        yield
    except RuntimeError as error:
        if distributed.group()[1] == 1:
            raise
        again = f" to resume from {folder}" if folder else ""
        raise LostProcessError(
            f"a process of the group was lost at step {step}: start all of them again{again} ({error})"
        ) from error


def _check_finite(name: str, value: float, step: int, folder: Path | None) -> None:
    if math.isfinite(value):
        return
    kept = ""
    if folder and (folder / CHECKPOINT).exists():
        kept = f" The last good checkpoint is {folder / CHECKPOINT}."
    raise NonFiniteLossError(
        f"the {name} became {value} at step {step}: try a lower learning rate.{kept}"
    )


def _largest(tensors: Iterable[Tensor | None]) -> float:
    """The largest absolute value in some tensors; NaN if there is one."""
    some = [tensor.detach() for tensor in tensors if tensor is not None]
    return float(nn.utils.get_total_norm(some, math.inf))


def _board(folder: Path | None, start: int) -> Any:
    if folder is None:
        raise InputError("tensorboard needs out, a folder to write to")
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise InputError(
            "tensorboard is not installed: pip install identica[tensorboard]"
        ) from None
    return SummaryWriter(folder / "tensorboard", purge_step=start)


def _progress_bar(label: str | None, start: int, steps: int, whole: bool) -> Any:
    return progress_bar(
        desc=label,
        initial=start,
        total=steps,
        disable=label is None,
        unit="step",
        leave=whole,  # most starts are abandoned, and their bars would fill pages
        dynamic_ncols=True,
    )
