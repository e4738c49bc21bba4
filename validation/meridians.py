"""How far the minimum of the published loss is from a linear map, on a sphere with a marginal around a pole.

    python -m validation.meridians        # writes results/meridians.json

Rows 9 and 10 of both first tables of the paper. The marginal is symmetric about its pole, and the loss has
the temperature 1, at which it is mostly uniformity: its minimum pushes codes away from the pole. Maps that
move every point along its meridian are trained on the factors themselves, without a mixing. The R² of
the one with the lowest loss is what training on observations comes close to.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from identica import MLP, GenerativeProcess, InfoNCE, InvertibleMLP, Training, train
from identica.metrics import linear_r2
from identica.process import Pairs
from identica.studies import load
from identica.studies.published import Row

RESULTS = Path(__file__).parent.parent / "results" / "meridians.json"
ROWS = [(study, row) for study in ("icml-table1", "workshop-table1") for row in (9, 10)]
TRAINING = Training(steps=600, batch=2048, lr=5e-3, warmup=0, optimizer="adam")
HELD_OUT, BATCHES = 6144, 8  # the published batch


class Meridians(nn.Module):
    """cos φ at the pole e_1 for cos θ, with φ = θ + sin θ · f(cos θ); directions around it stay."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        self.bend = MLP(1, 1, (32, 32), seed=seed)
        for parameter in self.bend.layers[-1].parameters():
            nn.init.zeros_(parameter)

    def forward(self, z: Tensor) -> Tensor:
        height = z[:, :1].clamp(-1 + 1e-6, 1 - 1e-6)
        angle = height.arccos()
        angle = angle + angle.sin() * self.bend(height)
        around = nn.functional.normalize(z[:, 1:], dim=1)
        return torch.cat([angle.cos(), angle.sin() * around], dim=1)


class OnFactors(nn.Module):
    """The published loss of a map of the factors, which takes the place of encoder and mixing."""

    def __init__(self, row: Row) -> None:
        super().__init__()
        self.model, self.loss = Meridians(), InfoNCE(row.model, self_negative=True)

    def forward(self, batch: Pairs) -> Tensor:
        loss: Tensor = self.loss(self.model(batch.z), self.model(batch.z_pos))
        return loss


def measure(row: Row) -> dict[str, Any]:
    """R² and held-out loss of the linear map, and of the best one along meridians."""
    mixing = InvertibleMLP(row.space.dim, seed=0, draws=1)  # its observations are not used
    process = GenerativeProcess(row.space, row.marginal, row.conditional, mixing)
    objective = OnFactors(row)

    @torch.no_grad()
    def scores() -> dict[str, float]:
        generator = torch.Generator().manual_seed(1)
        batches = [process.sample(HELD_OUT, generator=generator) for _ in range(BATCHES)]
        r2 = [linear_r2(batch.z, objective.model(batch.z)) for batch in batches]
        losses = [float(objective(batch)) for batch in batches]
        return {"r2": round(sum(r2) / BATCHES, 4), "loss": round(sum(losses) / BATCHES, 4)}

    linear = scores()
    train(objective, process.sample, TRAINING, seed=0)
    return {"linear": linear, "lowest loss": scores()}


def main() -> None:
    records = []
    for study, number in ROWS:
        row = next(row for row in load(study) if row.row == number)
        records.append({"study": study, "row": number, **measure(row)})
        print(records[-1])
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(records, indent=1) + "\n")


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
