"""An experiment: its data, objective, stages and score; how it runs, resumes and is read back."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor, nn

from identica import checkpoints, distributed
from identica.errors import DamagedError
from identica.recipes import Recipe
from identica.runs import Tick
from identica.runs.folder import PARTS, WEIGHTS, run_name
from identica.training import History, Sampler, Training, train, write_metrics
from identica.training.devices import moved, placed

Encode = Callable[[Tensor], Tensor]
Scores = dict[str, float]


class Stage(NamedTuple):
    """One training of an experiment.

    Attributes:
        objective, sample, training, seed, score: as in `train`.
        name: of its folder below parts/; empty for an experiment of one stage.
        recorded: whether its scores belong to the curve of the run.
        positives: pairs in which each observation of a batch is the anchor.
    """

    objective: nn.Module
    sample: Sampler
    training: Training
    seed: int
    score: Callable[[], Scores]
    name: str = ""
    recorded: bool = True
    positives: int = 1


class Context(NamedTuple):
    """Where a run is: its folder, and how to report what it does between two stages."""

    folder: Path
    say: Callable[[str], None] = lambda doing: None


Stages = Generator[Stage, Scores, tuple[nn.Module | None, Scores]]


class Experiment(ABC):
    """A run to do. It is plain data, so that it can be sent to another process.

    Its stages are a generator: each `yield` of a `Stage` trains it and gives its last record, and what it
    returns is the trained objective (None where nothing is trained) with the final scores. Stages that were
    finished before a run was killed are passed over.
    """

    seed: int

    @property
    @abstractmethod
    def config(self) -> dict[str, Any]:
        """Everything that decides the result, as plain data for config.json."""

    @abstractmethod
    def stages(self, context: Context) -> Stages:
        """The trainings, in turn."""

    @abstractmethod
    def objective(self) -> tuple[nn.Module, nn.Module | Encode]:
        """What is trained, as it is before, and the part of it that gives codes."""

    @property
    @abstractmethod
    def trainings(self) -> list[Training]:
        """The trainings whose steps count as progress."""

    @cached_property
    def name(self) -> str:
        """The name of its run folder; experiments with the same configuration share it."""
        return run_name(self.config)

    @property
    def pairs(self) -> int:
        """The pairs seen in training, from which the remaining time is estimated."""
        return sum(training.steps * training.batch for training in self.trainings)

    def run(self, folder: Path, tick: Tick = lambda *_: None) -> dict[str, Any]:
        """Train and score, from wherever an earlier run stopped; the content of result.json."""
        total = sum(training.steps for training in self.trainings)
        history, done, seconds, pairs = History(), 0, 0.0, 0
        stages = self.stages(Context(folder, lambda doing: tick(done, total, doing)))
        last: Any = None
        while True:
            began = time.perf_counter()
            try:
                stage = stages.send(last)
            except StopIteration as end:
                objective, scores = end.value
                break
            seconds += 0.0 if last is None else time.perf_counter() - began
            with placed(stage.objective) as device:
                found = train(
                    stage.objective,
                    moved(stage.sample, device),
                    stage.training,
                    seed=stage.seed,
                    score=stage.score,
                    out=folder / PARTS / stage.name if stage.name else folder,
                    tick=_counted(tick, stage, done, total),
                )
            if not found.records:
                raise DamagedError(f"{folder} holds a checkpoint without the metrics beside it")
            last = found.last
            if stage.recorded:
                history.records += [
                    r | {"step": done + r["step"], "seconds": seconds + r["seconds"]}
                    for r in found.records
                ]
            done += stage.training.steps
            seconds += last["seconds"]
            pairs += stage.training.steps * stage.training.batch * stage.positives
        if objective is not None and distributed.group()[0] == 0:
            write_metrics(folder, history)
            checkpoints.save_weights(folder / WEIGHTS, objective)
        return {"scores": scores, "seconds": seconds, "pairs": pairs, "seed": self.seed}

    def trained(self, folder: Path) -> tuple[nn.Module, Any]:
        """The objective of a finished run with its weights, and the part of it that gives codes."""
        objective, encode = self.objective()
        checkpoints.load_weights(folder / WEIGHTS, objective.eval())
        return objective, encode


@dataclass(frozen=True)
class RowExperiment(Experiment):
    """A row with a seed; by default it is trained in one stage."""

    row: Any
    seed: int
    recipe: Recipe

    @property
    def kind(self) -> str:
        return str(self.row.kind)

    @property
    def trainings(self) -> list[Training]:
        return [self.recipe.training]


def _counted(tick: Tick, stage: Stage, done: int, total: int) -> Callable[[int, int], None]:
    """Report the steps of a stage as steps of the whole run; stages that do not count, by name."""

    def report(step: int, steps: int) -> None:
        if done < total:
            tick(done + step, total)
        else:
            tick(total, total, f"{stage.name}, step {step} of {steps}")

    return report
