"""The main job: invert a hidden mixing of ten factors on the sphere, and report on it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from identica import theory
from identica._io import write_json
from identica._validate import seed as check_seed
from identica.encoders import ContrastiveModel
from identica.families import Uniform, VonMisesFisher
from identica.metrics import correlation_matrix, linear_r2, mcc, procrustes
from identica.mixing import InvertibleMLP
from identica.process import GenerativeProcess, Pairs
from identica.recipes import DEMO, DEMO_SUPERVISED
from identica.runs.folder import RESULT, open_run
from identica.spaces import Sphere
from identica.training import Contrastive, History, Supervised, Training, train

DIM = 10
# ICML 2021, table 1, row 2: (mean, s.d.) of R²
PUBLISHED = {
    "identity": (0.6698, 0.0279),
    "supervised": (0.9971, 0.0005),
    "contrastive": (0.9986, 0.0001),
}
HELD_OUT = 8192


@dataclass(frozen=True)
class Row:
    """A line of the demo's table."""

    name: str
    r2: float
    mcc: float
    published: str
    seconds: float


def demo(out: Path, *, seed: int = 0, progress: bool = True) -> Path:
    """Run the demo into a folder and return the path of its report.

    The factors are uniform on S⁹, positives are von Mises–Fisher(10) around them, and the mixing is
    the paper's. A second call with the same folder and seed resumes where the first stopped.
    """
    check_seed("seed", seed)
    config = {
        "job": "demo",
        "seed": seed,
        "space": repr(Sphere(DIM)),
        "marginal": repr(Uniform()),
        "conditional": repr(VonMisesFisher(10.0)),
        "model": repr(VonMisesFisher(1.0)),
        "contrastive": asdict(DEMO),
        "supervised": asdict(DEMO_SUPERVISED),
    }
    open_run(out, config)
    process = GenerativeProcess(
        Sphere(DIM), Uniform(), VonMisesFisher(10.0), InvertibleMLP(DIM, seed=seed)
    )
    # training seeds are even, so that the held-out samples are never drawn in training
    held_out = process.sample(HELD_OUT, generator=2 * seed + 1)

    rows = [_row("identity", held_out, held_out.x, 0.0)]
    supervised, model = (
        ContrastiveModel(
            Sphere(DIM),
            VonMisesFisher(1.0),
            recipe.mlp(DIM, DIM, seed=seed + start),
            head=recipe.head(Sphere(DIM)),
        )
        for start, recipe in enumerate((DEMO_SUPERVISED, DEMO))
    )
    jobs: dict[str, tuple[nn.Module, nn.Module, Training, Path]] = {
        "supervised": (
            supervised,
            Supervised(supervised),
            DEMO_SUPERVISED.training,
            out / "supervised",
        ),
        "contrastive": (
            model,
            Contrastive(model, DEMO.loss(model.conditional)),
            DEMO.training,
            out,
        ),
    }
    histories, seconds = {}, {}
    for name, (network, objective, training, folder) in jobs.items():
        history = train(
            objective,
            process.sample,
            training,
            seed=2 * seed,
            score=lambda network=network: _scores(held_out, network),  # type: ignore[misc]
            out=folder,
            progress=name if progress else None,
        )
        histories[name] = history
        seconds[name] = history.last["seconds"]
        rows.append(_row(name, held_out, _codes(network, held_out.x), seconds[name]))

    result = {
        "scores": {"r2": rows[-1].r2, "mcc": rows[-1].mcc},
        "identity": {"r2": rows[0].r2, "mcc": rows[0].mcc},
        "supervised": {"r2": rows[1].r2, "mcc": rows[1].mcc},
        "seconds": seconds["contrastive"],
        "pairs": DEMO.training.steps * DEMO.training.batch,
        "seed": seed,
    }
    write_json(out / RESULT, result)
    report = out / "report.html"
    _write_report(report, config, process, model, held_out, rows, histories)
    _print_table(rows, report)
    return report


@torch.no_grad()
def _codes(model: nn.Module, x: Tensor) -> Tensor:
    return model(x)


def _scores(held_out: Pairs, model: nn.Module) -> dict[str, float]:
    codes = _codes(model, held_out.x)
    return {"r2": linear_r2(held_out.z, codes), "mcc": mcc(held_out.z, codes)}


def _row(name: str, held_out: Pairs, codes: Tensor, seconds: float) -> Row:
    mean, std = PUBLISHED[name]
    published = f"{mean:.4f} ± {std:.4f}"
    return Row(name, linear_r2(held_out.z, codes), mcc(held_out.z, codes), published, seconds)


def _print_table(rows: list[Row], report: Path) -> None:
    print(f"{'':12} {'R²':>7} {'published':>17} {'MCC':>7} {'seconds':>8}")
    for row in rows:
        print(f"{row.name:12} {row.r2:7.4f} {row.published:>17} {row.mcc:7.4f} {row.seconds:8.0f}")
    print(f"report: {report}")


def _write_report(
    path: Path,
    config: dict[str, Any],
    process: GenerativeProcess,
    model: ContrastiveModel,
    held_out: Pairs,
    rows: list[Row],
    histories: dict[str, History],
) -> None:
    from identica.report import plots
    from identica.report.pages import write_page

    z, codes = held_out.z.double().numpy(), _codes(model, held_out.x).double().numpy()
    directions = codes / np.linalg.norm(codes, axis=1, keepdims=True)  # whatever the learnt radius
    fit = procrustes(z, codes)
    turned = (codes - codes.mean(0)) @ fit.rotation * fit.scale + z.mean(0)
    few = slice(0, 1500)
    found = theory.guarantee(process, model)
    write_page(
        path,
        "demo.html",
        title="identica demo: a hidden mixing of ten factors, inverted",
        summary=(
            "Ten factors, uniform on a sphere, were mixed by a random invertible network. From pairs of "
            "mixed observations alone, contrastive learning found an encoder whose codes explain "
            f"{100 * rows[-1].r2:.2f} % of the factors' variance linearly; the raw observations explain "
            f"{100 * rows[0].r2:.2f} %, and an encoder trained on the true factors {100 * rows[1].r2:.2f} %."
        ),
        rows=[asdict(row) for row in rows],
        names={
            "identity": "nothing: the raw observations",
            "supervised": "the true factors (an upper bound)",
            "contrastive": "pairs alone",
        },
        held_out=f"{HELD_OUT:,}",
        guaranteed=bool(found),
        guarantee=str(found),
        isometry=theory.isometry(z, codes),
        uniformity=theory.distance_from_uniform(directions, model.space),
        curve=plots.inline(
            plots.training_curve(
                {name: history.records for name, history in histories.items()},
                "r2",
                name="R²",
                goal=PUBLISHED["contrastive"][0],
            )
        ),
        scatter=plots.inline(plots.true_against_recovered(z[few], turned[few], "recovered")),
        raw_correlation=plots.inline(plots.matrix(correlation_matrix(z, codes), "code", "factor")),
        correlation=plots.inline(
            plots.matrix(correlation_matrix(z, turned), "code after rotation", "factor")
        ),
        config=json.dumps(config, indent=2),
    )
