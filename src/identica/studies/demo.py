"""The demo: invert a hidden mixing of ten factors on the sphere, and write a report."""

from __future__ import annotations

import json
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from identica import theory
from identica._io import write_json
from identica._validate import seed as check_seed
from identica.encoders import ContrastiveModel
from identica.families import Uniform, VonMisesFisher
from identica.metrics import linear_r2, mcc, procrustes
from identica.mixing import InvertibleMLP
from identica.process import GenerativeProcess, Pairs
from identica.recipes.studies import DEMO, DEMO_SUPERVISED
from identica.runs.folder import RESULT, open_run
from identica.spaces import Sphere
from identica.studies.published import ICML_TABLE1
from identica.training import Contrastive, History, Supervised, train

DIM, HELD_OUT = 10, 8192
PUBLISHED = ICML_TABLE1[1].published


class Row(NamedTuple):
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
    space, conditional, family = Sphere(DIM), VonMisesFisher(10.0), VonMisesFisher(1.0)
    config = {
        "job": "demo",
        "seed": seed,
        "space": repr(space),
        "marginal": repr(Uniform()),
        "conditional": repr(conditional),
        "model": repr(family),
        "contrastive": asdict(DEMO),
        "supervised": asdict(DEMO_SUPERVISED),
    }
    open_run(out, config)
    process = GenerativeProcess(space, Uniform(), conditional, InvertibleMLP(DIM, seed=seed))
    # training seeds are even, so that the held-out samples are never drawn in training
    held_out = process.sample(HELD_OUT, generator=2 * seed + 1)
    rows = [_row("identity", held_out, held_out.x, 0.0)]
    histories: dict[str, History] = {}
    for start, (name, recipe) in enumerate(
        [("supervised", DEMO_SUPERVISED), ("contrastive", DEMO)]
    ):
        network = recipe.mlp(DIM, DIM, seed=seed + start)
        model = ContrastiveModel(space, family, network, head=recipe.head(space))
        supervised = name == "supervised"
        histories[name] = train(
            Supervised(model) if supervised else Contrastive(model, recipe.loss(family)),
            process.sample,
            recipe.training,
            seed=2 * seed,
            score=partial(_scores, model, held_out),
            out=out / name if supervised else out,
            progress=name if progress else None,
        )
        seconds = histories[name].last["seconds"]
        rows.append(_row(name, held_out, _codes(model, held_out.x), seconds))

    scores = {row.name: {"r2": row.r2, "mcc": row.mcc} for row in rows}
    result = {
        "scores": scores.pop("contrastive"),
        **scores,
        "seconds": seconds,
        "pairs": DEMO.training.steps * DEMO.training.batch,
        "seed": seed,
    }
    write_json(out / RESULT, result)
    report = out / "report.html"
    _write_report(report, config, process, model, held_out, rows, histories)
    print(f"{'':12} {'R²':>7} {'published':>17} {'MCC':>7} {'seconds':>8}")
    for row in rows:
        print(f"{row.name:12} {row.r2:7.4f} {row.published:>17} {row.mcc:7.4f} {row.seconds:8.0f}")
    print(
        "R²: the share of the factors' variance that a linear map of the codes explains. The codes are raw"
    )
    print(
        "observations (identity), or trained on the true factors (supervised) or on pairs (contrastive)."
    )
    print(f"report: {report}")
    return report


@torch.no_grad()
def _codes(model: nn.Module, x: Tensor) -> Tensor:
    return model(x)


def _scores(model: nn.Module, held_out: Pairs) -> dict[str, float]:
    codes = _codes(model, held_out.x)
    return {"r2": linear_r2(held_out.z, codes), "mcc": mcc(held_out.z, codes)}


def _row(name: str, held_out: Pairs, codes: Tensor, seconds: float) -> Row:
    published = f"{PUBLISHED[name].mean:.4f} ± {PUBLISHED[name].std:.4f}"
    return Row(name, linear_r2(held_out.z, codes), mcc(held_out.z, codes), published, seconds)


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
    write_page(
        path,
        "demo.html",
        title="identica demo: a hidden mixing of ten factors, inverted",
        rows=rows,
        held_out=HELD_OUT,
        guarantee=theory.guarantee(process, model),
        isometry=theory.isometry(z, codes),
        uniformity=theory.distance_from_uniform(directions, model.space),
        curve=plots.inline(
            plots.training_curve(
                {name: history.records for name, history in histories.items()},
                "r2",
                goal=PUBLISHED["contrastive"].mean,
            )
        ),
        scatter=plots.inline(plots.true_against_recovered(z[few], turned[few])),
        raw_correlation=plots.inline(plots.correlations(z, codes)),
        correlation=plots.inline(plots.correlations(z, turned, "code after rotation")),
        config=json.dumps(config, indent=2),
    )
