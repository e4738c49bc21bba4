"""Timing of a function or a run, and the machine's own speed to compare with."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from tqdm import tqdm

from identica.studies.experiment import Experiment
from identica.studies.study import read_metrics


def seconds(function: Callable[[], Any], *, repeat: int = 5, warm_up: int = 1) -> float:
    """The best of several runs, after the ones that compile and fill caches."""
    for _ in range(warm_up):
        function()
    best = float("inf")
    for _ in range(repeat):
        start = time.perf_counter()
        function()
        best = min(best, time.perf_counter() - start)
    return best


def trained(experiment: Experiment, label: str) -> tuple[dict[str, Any], list[dict[str, float]]]:
    """Run an experiment from the start; its result and its history."""
    steps = sum(training.steps for training in experiment.trainings)
    with TemporaryDirectory() as folder, tqdm(desc=label, total=steps, unit="step") as bar:

        def tick(step: int, steps: int, doing: str = "", /) -> None:
            bar.update(step - bar.n)

        return experiment.run(Path(folder), tick), read_metrics(Path(folder))


def matmul_rate() -> float:
    """float32 operations per second of a large matrix product."""
    a, b = torch.randn(2, 2048, 2048).unbind()
    return 2 * 2048**3 / seconds(lambda: a @ b, repeat=10, warm_up=3)
