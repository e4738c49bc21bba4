"""Runs that train: how far they are, where they go on, what result.json says, and their curves."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from torch import nn

from identica import checkpoints, distributed
from identica.runs import METRICS, PARTS, WEIGHTS, DamagedError
from identica.studies.study import SCORES, Finished, Picture, Tick
from identica.training import History, Sampler, Training, train, write_metrics


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
    """`train`, after which there is something to tell."""
    history = train(
        objective,
        sample,
        training,
        seed=seed,
        score=score,
        out=out,
        progress=progress,
        tick=tick,
    )
    if not history.records:
        raise DamagedError(f"{out} holds a checkpoint without the metrics that belong to it")
    return history


class Course:
    """Several trainings in turn, with one history, one count of steps and one clock.

    Each has a folder of its own below `out` with its checkpoint, so that a run that was killed passes
    over those that are done.

    Args:
        out: the folder of the run.
        steps: of all trainings together.
        tick: told how far the run is.
    """

    def __init__(self, out: Path, steps: int, tick: Tick | None = None) -> None:
        self.out, self.steps, self._tick = out, steps, tick
        self.history = History()
        self.step, self.seconds, self.pairs = 0, 0.0, 0

    def tick(self, step: int = 0) -> None:
        """Tell how far the run is, `step` steps into the training under way."""
        if self._tick is not None:
            self._tick(self.step + step, self.steps)

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
            tick=lambda step, _: self.tick(step),
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


def read_metrics(folder: Path) -> list[dict[str, float]]:
    """The history of a finished run, empty if it is gone or damaged."""
    with suppress(OSError, ValueError):
        lines = (folder / METRICS).read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines]
    return []


def curves(
    runs: Sequence[Finished], score: str, *, goal: float | None, on: str = "unseen pairs"
) -> list[Picture]:
    """A picture of a score during training, by seed; none where no run has its history left."""
    from identica.report import plots

    histories = {f"seed {run.seed}": read_metrics(run.folder) for run in runs}
    if not any(histories.values()):
        return []
    figure = plots.training_curve(histories, score, name=SCORES.get(score, score), goal=goal, on=on)
    return [Picture("Training, by seed", plots.inline(figure, dpi=90))]
