"""Runs that train: how far they are, where they go on, what result.json says, and their curves."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from copy import deepcopy
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import torch
from torch import nn

from identica import checkpoints, distributed
from identica._io import first_free
from identica._random import as_generator
from identica.errors import DamagedError
from identica.runs.folder import METRICS, PARTS, WEIGHTS
from identica.studies.study import SCORES, Finished, Picture, Tick
from identica.training import History, Sampler, Training, train, write_metrics

CPU = torch.device("cpu")
_held: ContextVar[torch.device | None] = ContextVar("_held", default=None)  # the GPU of this run


def fit(
    objective: nn.Module,
    sample: Sampler,
    training: Training,
    *,
    seed: int,
    score: Callable[[], dict[str, float]],
    out: Path | None = None,
    progress: str | None = None,
    tick: Tick | None = None,
) -> History:
    """`train`, on a GPU where there is one and it helps.

    There a copy is trained, on batches that are drawn on the CPU. The objective takes over its weights
    whenever it is scored, and in the end: it stays on the CPU, and scores need know nothing of GPUs.
    Those that take long there can be computed on the GPU, see `lent`.
    """
    with place(objective) as device:
        twin = objective if device == CPU else deepcopy(objective).to(device)

        def take_over() -> None:
            if twin is not objective:
                objective.load_state_dict(twin.state_dict())
                objective.eval()

        def take_over_and_score() -> dict[str, float]:
            take_over()
            return score()

        history = train(
            twin,
            sample if twin is objective else moving(sample, device),
            training,
            seed=seed,
            score=take_over_and_score,
            out=out,
            progress=progress,
            tick=tick,
        )
        take_over()
    if not history.records:
        raise DamagedError(f"{out} holds a checkpoint without the metrics that belong to it")
    return history


@contextmanager
def place(objective: nn.Module) -> Iterator[torch.device]:
    """Where to train an objective: networks of convolutions on a GPU, all others on the CPU.

    Of runs side by side, each has a GPU for itself, and waits until there is one; what it does
    meanwhile has the same. Processes of a group have theirs from torchrun.
    """
    found = gpus() if any(isinstance(part, nn.Conv2d) for part in objective.modules()) else []
    if not found:
        yield CPU
    elif distributed.group()[1] > 1:
        yield torch.device("cuda", torch.cuda.current_device())
    elif (held := _held.get()) is not None:
        yield held
    else:
        home = Path(gettempdir())
        with first_free([home / f"identica-{os.getuid()}-{name}.lock" for name in found]) as number:
            device = torch.device("cuda", number)
            before = _held.set(device)
            try:
                yield device
            finally:
                _held.reset(before)


@contextmanager
def lent(network: nn.Module) -> Iterator[torch.device]:
    """A network of the CPU where it would be trained, for a while; gives the device."""
    with place(network) as device:
        network.to(device)
        try:
            yield device
        finally:
            network.to(CPU)


def gpus() -> list[str]:
    """Names of this machine's GPUs, no two alike."""
    number = torch.cuda.device_count() if torch.cuda.is_available() else 0
    return [str(torch.cuda.get_device_properties(n).uuid) for n in range(number)]


def moving(sample: Sampler, device: torch.device) -> Sampler:
    """The same sampler, which draws on the CPU whatever its generator, and moves its batches."""

    def draw(size: int, /, *, generator: torch.Generator) -> Any:
        seed = torch.randint(2**62, (), generator=generator, device=generator.device)
        batch = sample(size, generator=as_generator(int(seed)))
        return type(batch)(*(part.to(device) for part in batch))

    return draw


class Course:
    """Several trainings in turn, with one history, one count of steps and one clock.

    Each has a folder of its own below `out` with its checkpoint, so that a run that was killed passes
    over those that are done.

    Args:
        out: the folder of the run.
        steps: of all trainings together, save those at the end that take little time.
        tick: told how far the run is.
    """

    def __init__(self, out: Path, steps: int, tick: Tick | None = None) -> None:
        self.out, self.steps, self._tick = out, steps, tick
        self.history = History()
        self.step, self.seconds, self.pairs = 0, 0.0, 0

    def tick(self, name: str, step: int, steps: int) -> None:
        """Tell how far the run is, at a step of the training under way."""
        if self.step >= self.steps:
            self.say(f"{name}, step {step} of {steps}")
        elif self._tick is not None:
            self._tick(self.step + step, self.steps)

    def say(self, doing: str) -> None:
        """Tell what the run does where it is not at one of its steps."""
        if self._tick is not None:
            self._tick(self.step, self.steps, doing)

    def fit(
        self,
        name: str,
        objective: nn.Module,
        sample: Sampler,
        training: Training,
        *,
        seed: int,
        score: Callable[[], dict[str, float]],
        record: bool = True,
    ) -> dict[str, float]:
        """One training; its last record. With `record`, its records go to the history."""
        history = fit(
            objective,
            sample,
            training,
            seed=seed,
            score=score,
            out=self.out / PARTS / name,
            tick=lambda step, *_: self.tick(name, step, training.steps),
        )
        if record:
            self.history.records += [
                r | {"step": self.step + r["step"], "seconds": self.seconds + r["seconds"]}
                for r in history.records
            ]
        self.step += training.steps
        self.seconds += history.last["seconds"]
        self.pairs += training.steps * training.batch
        return history.last

    def result(self, scores: dict[str, float], objective: nn.Module, seed: int) -> dict[str, Any]:
        """Write the history and the weights of a run, and return the content of result.json."""
        if distributed.group()[0] == 0:
            write_metrics(self.out, self.history)
            checkpoints.save_weights(self.out / WEIGHTS, objective)
        return {"scores": scores, "seconds": self.seconds, "pairs": self.pairs, "seed": seed}


def result(
    scores: dict[str, float], history: History, training: Training, seed: int
) -> dict[str, Any]:
    """The content of result.json."""
    return {
        "scores": scores,
        "seconds": history.last["seconds"],
        "pairs": training.steps * training.batch,
        "seed": seed,
    }


# --- what a finished run left behind ----------------------------------------------------------------


def read_metrics(folder: Path, *names: str) -> list[dict[str, float]]:
    """The history of a finished run, empty if it is gone, damaged or lacks some of the names."""
    with suppress(OSError, ValueError, TypeError, AttributeError, OverflowError, RecursionError):
        lines = (folder / METRICS).read_text(encoding="utf-8").splitlines()
        records = [{key: float(n) for key, n in json.loads(line).items()} for line in lines]
        if all(set(names) <= record.keys() for record in records):
            return records
    return []


def curves(
    runs: Sequence[Finished], score: str, *, goal: float | None, on: str = "unseen pairs"
) -> list[Picture]:
    """A picture of a score during training, by seed; none where no run has its history left."""
    from identica.report import plots

    histories = {f"seed {run.seed}": read_metrics(run.folder, "step", score) for run in runs}
    if not any(histories.values()):
        return []
    figure = plots.training_curve(histories, score, name=SCORES.get(score, score), goal=goal, on=on)
    return [Picture("Training, by seed", plots.inline(figure, dpi=90))]
