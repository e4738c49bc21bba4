"""The training step as a whole: encoder operations per second against the matrix product's rate."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch

from benchmarks._measure import matmul_rate, seconds
from identica.studies import find
from identica.studies.synthetic import SyntheticExperiment
from identica.training.optimizers import make_optimizer

ROWS = [("icml-table1", 2), ("icml-table2", 1), ("icml-table2", 2)]


def encoder_flops(experiment: SyntheticExperiment) -> int:
    """Operations of forward and backward passes of the encoder over a batch of pairs."""
    dim, hidden = experiment.row.space.dim, experiment.recipe.network
    assert not isinstance(hidden, str)
    widths = [dim, *hidden, dim]
    multiply_adds = sum(a * b for a, b in pairwise(widths))
    # forward, gradient of the weights, gradient of the inputs (none for the first layer)
    per_row = 2 * (3 * multiply_adds - widths[0] * widths[1])
    return 2 * experiment.recipe.training.batch * per_row


def step_seconds(experiment: SyntheticExperiment, steps: int = 20) -> dict[str, float]:
    """Seconds per step of an experiment and of its parts."""
    process, training = experiment.process(), experiment.recipe.training
    objective, model = experiment.objective()
    loss: Any = objective.loss
    optimizer = make_optimizer(objective, training)
    generator, batch = torch.Generator().manual_seed(0), training.batch
    pairs = process.sample(batch, generator=generator)
    x = torch.cat([pairs.x, pairs.x_pos])
    codes = model(x).detach().requires_grad_()

    def step() -> None:
        value = objective(process.sample(batch, generator=generator))
        value.item()
        optimizer.zero_grad()
        value.backward()
        optimizer.step()

    def ten_steps() -> None:  # the optimiser works harder every tenth step
        for _ in range(10):
            step()

    parts = {
        "step": seconds(ten_steps, repeat=steps // 10 + 1, warm_up=1) / 10,
        "encoder": seconds(lambda: model(x).sum().backward(), repeat=steps),
        "loss": seconds(lambda: loss(*codes.chunk(2)).backward(), repeat=steps),
        "sample": seconds(lambda: process.sample(batch, generator=generator), repeat=steps),
    }
    return {name: round(value, 6) for name, value in parts.items()}


def measure() -> list[dict[str, Any]]:
    """A record for each row, with one thread (as runs of a study have) and with all: times, and the
    encoder's share of the matrix product's rate with as many threads."""
    records, all_threads = [], torch.get_num_threads()
    for threads in (1, all_threads):
        torch.set_num_threads(threads)
        rate = matmul_rate()
        for study, number in ROWS:
            experiment = contrastive(study, number, "fast")
            times = step_seconds(experiment)
            share = encoder_flops(experiment) / times["step"] / rate
            records.append(
                {"study": study, "row": number, "threads": threads, "seconds": times}
                | {"matmul_gflops": round(rate / 1e9, 1), "share_of_matmul": round(share, 3)}
            )
    torch.set_num_threads(all_threads)
    return records


def contrastive(study: str, row: int, preset: str, seed: int = 0) -> SyntheticExperiment:
    """The contrastive experiment of a row."""
    table: Any = find(study)
    return table.experiment(table.rows[row - 1], "contrastive", seed, preset)


def paper_step_seconds(experiment: SyntheticExperiment) -> float:
    """Seconds per step of the published recipe: its network, batch and a loss that holds all
    distances at once."""
    row, training = experiment.row, experiment.recipe.training
    process, model = experiment.process(), experiment.model()
    optimizer = make_optimizer(model, training)
    generator = torch.Generator().manual_seed(0)

    def step() -> None:
        pairs = process.sample(training.batch, generator=generator)
        h, h_pos = model(pairs.x), model(pairs.x_pos)
        positive = row.model.similarity(h, h_pos)
        negatives = row.model.pairwise(h, h.roll(1, 0))
        loss = torch.logaddexp(negatives.logsumexp(1), positive).mean() - positive.mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return seconds(step, repeat=1, warm_up=1)
