"""Runs that train: how far they are, where they go on, what result.json says, and their curves."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from torch import nn

from identica import checkpoints
from identica._check import InputError
from identica.runs import CHECKPOINT, METRICS
from identica.studies.study import Finished, Picture, Tick
from identica.training import History, Sampler, Training, train


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
    """`train`, which calls `tick(step, steps)` before every step, also after going on from `out`."""
    if tick is not None:
        sample = _ticking(sample, tick, _steps_done(out), training.steps)
    history = train(objective, sample, training, seed=seed, score=score, out=out, progress=progress)
    if not history.records:
        raise InputError(f"{out} holds a checkpoint without the metrics that belong to it")
    return history


def result(
    scores: dict[str, float], history: History, seed: int, *trainings: Training
) -> dict[str, Any]:
    """The content of result.json, after one training or several in turn."""
    return {
        "scores": scores,
        "seconds": history.last["seconds"],
        "pairs": sum(training.steps * training.batch for training in trainings),
        "seed": seed,
    }


def _ticking(sample: Sampler, tick: Tick, step: int, steps: int) -> Sampler:
    """The same sampler, which tells how many batches it has been asked for."""

    def draw(size: int, /, *, generator: torch.Generator) -> Any:
        nonlocal step
        tick(step, steps)
        step += 1
        return sample(size, generator=generator)

    return draw


def _steps_done(out: Path | None) -> int:
    if out is None or not (out / CHECKPOINT).exists():
        return 0
    state = checkpoints.load(out / CHECKPOINT)
    return int(state.get("step", 0)) if isinstance(state, dict) else 0


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
    figure = plots.training_curve(histories, score, goal=goal, on=on)
    return [Picture("Training, by seed", plots.inline(figure, dpi=90))]
