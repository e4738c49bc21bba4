"""Stop SOAP runs of the default width at random steps, and count those that resume to the same bits.

python -m validation.resume [POINTS] [SEED]
"""

from __future__ import annotations

import random
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import torch
from torch import Tensor

from identica import (
    MLP,
    Box,
    ContrastiveModel,
    GenerativeProcess,
    InfoNCE,
    InvertibleMLP,
    Laplace,
    Training,
    Uniform,
    train,
)
from identica.training import Contrastive

STEPS = 60
DIM = 10


class Stopped(Exception):
    """Raised in the middle of a run."""


def run(out: Path | None, training: Training, stop: int | None = None) -> list[Tensor]:
    """Train with the default network and batch, up to a step or to the end; the final weights."""
    process = GenerativeProcess(
        Box(DIM), Uniform(), Laplace(0.05), InvertibleMLP(DIM, seed=0, draws=100)
    )
    model = ContrastiveModel(Box(DIM), Laplace(1.0), MLP(DIM, DIM, seed=0))
    objective = Contrastive(model, InfoNCE(model.conditional, self_negative=True))

    def tick(step: int, steps: int) -> None:
        if step == stop:
            raise Stopped

    train(objective, process.sample, training, out=out, tick=tick)
    return list(objective.state_dict().values())


def main(points: int = 10, seed: int = 0) -> None:
    whole = run(None, Training(steps=STEPS))
    equal, draw = 0, random.Random(seed)
    for stop in sorted(draw.sample(range(1, STEPS), points)):
        # a checkpoint right before the stop, and none after: everything comes from that one
        training = Training(steps=STEPS, checkpoint_every=stop)
        with tempfile.TemporaryDirectory() as name:
            with suppress(Stopped):
                run(Path(name), training, stop)
            resumed = run(Path(name), training)
        same = all(torch.equal(a, b) for a, b in zip(whole, resumed, strict=True))
        apart = max(float((a - b).abs().max()) for a, b in zip(whole, resumed, strict=True))
        print(f"resumed at step {stop:2} of {STEPS}: largest difference of a weight {apart:.2g}")
        equal += same
    print(f"{equal} of {points} resumed SOAP runs ended in equal bits")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
