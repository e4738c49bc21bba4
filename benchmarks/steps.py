"""The training step as a whole: encoder operations per second against the matrix product's rate."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch

from benchmarks._measure import matmul_rate, seconds
from identica.process import GenerativeProcess
from identica.studies import Row, load
from identica.studies.experiment import make_loss, make_model, make_process
from identica.studies.presets import PAPER, Preset, choose
from identica.training import Contrastive
from identica.training.optimizers import make_optimizer

ROWS = [("icml-table1", 2), ("icml-table2", 1), ("icml-table2", 2)]


def encoder_flops(preset: Preset, dim: int) -> int:
    """Operations of forward and backward passes of the encoder over a batch of pairs."""
    widths = [dim, *preset.hidden, dim]
    multiply_adds = sum(a * b for a, b in pairwise(widths))
    # forward, gradient of the weights, gradient of the inputs (none for the first layer)
    per_row = 2 * (3 * multiply_adds - widths[0] * widths[1])
    return 2 * preset.contrastive.batch * per_row


def step_seconds(row: Row, preset: Preset, steps: int = 20) -> dict[str, float]:
    """Seconds per step of the fast preset and of its parts."""
    process: GenerativeProcess = make_process(row, 0)
    model, loss = make_model(row, preset, 0), make_loss(row, preset)
    objective = Contrastive(model, loss)
    optimizer = make_optimizer(objective, preset.contrastive)
    generator = torch.Generator().manual_seed(0)
    batch = preset.contrastive.batch
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
            row = load(study)[number - 1]
            preset = choose("fast", row)
            times = step_seconds(row, preset)
            share = encoder_flops(preset, row.space.dim) / times["step"] / rate
            records.append(
                {"study": study, "row": number, "threads": threads, "seconds": times}
                | {"matmul_gflops": round(rate / 1e9, 1), "share_of_matmul": round(share, 3)}
            )
    torch.set_num_threads(all_threads)
    return records


def paper_step_seconds(row: Row) -> float:
    """Seconds per step of the published recipe: its network, batch and a loss that holds all
    distances at once."""
    process, model = make_process(row, 0), make_model(row, PAPER, 0)
    optimizer = make_optimizer(model, PAPER.contrastive)
    generator = torch.Generator().manual_seed(0)

    def step() -> None:
        pairs = process.sample(PAPER.contrastive.batch, generator=generator)
        h, h_pos = model(pairs.x), model(pairs.x_pos)
        positive = row.model.similarity(h, h_pos)
        negatives = row.model.pairwise(h, h.roll(1, 0))
        loss = torch.logaddexp(negatives.logsumexp(1), positive).mean() - positive.mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return seconds(step, repeat=1, warm_up=1)
