"""A study whose runs only count, for tests of what happens around runs: no torch, no training.

A run counts to `steps` with a checkpoint after every step, and scores seed/steps. Its options make it
misbehave. Every step it really does is a line in counted.log of its folder.
"""

import os
import signal
import time
from dataclasses import dataclass

from identica._io import write_text
from identica.runs.folder import CHECKPOINT, run_name
from identica.studies.study import Study, Target


@dataclass(frozen=True)
class Figure:
    mean: float
    std: float


@dataclass(frozen=True)
class Count:
    row: int
    steps: int = 5
    pause: float = 0.0
    crashes: int = 0  # how often a worker that works on it is killed
    fails: bool = False


@dataclass(frozen=True)
class CountingRun:
    """What the machinery knows of an experiment: a name, a configuration, the size of the work, the work."""

    row: Count
    kind: str
    seed: int

    @property
    def config(self):
        row = self.row
        return {"kind": self.kind, "seed": self.seed, "row": row.row, "steps": row.steps}

    @property
    def name(self):
        return run_name(self.config)

    @property
    def pairs(self):
        return self.row.steps

    def run(self, folder, tick):
        row, place = self.row, folder / CHECKPOINT
        begin = int(place.read_text()) if place.exists() else 0
        for step in range(begin, row.steps):
            tick(step, row.steps)
            time.sleep(row.pause)
            with (folder / "counted.log").open("a") as log:
                log.write(f"{step} {os.getpid()} {os.environ.get('OMP_NUM_THREADS')}\n")
            if row.fails:
                raise ArithmeticError("the loss became nan\nat step 0")
            deaths = folder / "deaths.log"
            if len(deaths.read_text()) < row.crashes if deaths.exists() else row.crashes:
                with deaths.open("a") as log:
                    log.write("x")
                os.kill(os.getpid(), signal.SIGKILL)
            write_text(place, str(step + 1))
        scores = {"r2": self.seed / row.steps}
        return {"scores": scores, "seconds": 0.0, "pairs": row.steps, "seed": self.seed}


class Counting(Study[Count]):
    def targets(self, row):
        return [Target("contrastive", "r2", Figure(0.5, 0.1))]  # type: ignore[arg-type]

    def experiment(self, row, kind, seed, preset):
        return CountingRun(row, kind, seed)

    def cells(self, row):
        return {"steps": str(row.steps)}


def study(rows):
    return Counting("counting", "Counting", rows)


def jobs(*rows, seeds=(0,)):
    table = study(rows)
    return [table.experiment(row, "contrastive", seed, "fast") for row in rows for seed in seeds]
