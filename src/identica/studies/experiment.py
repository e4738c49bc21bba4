"""The `Experiment` base class: configuration, training stages, resuming, and loading of finished runs."""

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
        objective, sample, training, seed, score: arguments of `train`.
        name: name of its folder in parts/; empty for an experiment with a single stage.
        recorded: whether its scores are part of the learning curve of the run.
        positives: number of pairs per anchor in a batch.
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
    """The folder of a run, and a callback to report progress between stages."""

    folder: Path
    say: Callable[[str], None] = lambda doing: None


Stages = Generator[Stage, Scores, tuple[nn.Module | None, Scores]]


class Experiment(ABC):
    """A run, as plain data that can be sent to another process.

    `stages` is a generator: each `yield` of a `Stage` trains it and evaluates to its last record. It returns
    the trained objective (None if nothing is trained) and the final scores. When an interrupted run resumes,
    finished stages are skipped.
    """

    seed: int

    @property
    @abstractmethod
    def config(self) -> dict[str, Any]:
        """Everything that determines the result, as plain data for config.json."""

    @abstractmethod
    def stages(self, context: Context) -> Stages:
        """Yield the training stages in order."""

    @abstractmethod
    def objective(self) -> tuple[nn.Module, nn.Module | Encode]:
        """The untrained objective, and the part of it that computes codes."""

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
        """Train and evaluate, resuming an interrupted run; return the content of result.json."""
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
                raise DamagedError(f"{folder} holds a checkpoint without its metrics")
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
        """Load the trained objective of a finished run, and the part of it that computes codes."""
        objective, encode = self.objective()
        checkpoints.load_weights(folder / WEIGHTS, objective.eval())
        return objective, encode


@dataclass(frozen=True)
class RowExperiment(Experiment):
    """A row of a table with a seed; trained in a single stage by default."""

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
    """Report the steps of a stage as steps of the whole run, or its name if it does not count."""

    def report(step: int, steps: int) -> None:
        if done < total:
            tick(done + step, total)
        else:
            tick(total, total, f"{stage.name}, step {step} of {steps}")

    return report
