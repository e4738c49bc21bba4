"""One experiment of a table: a row, a kind (identity, supervised or contrastive) and a seed."""

from __future__ import annotations

from dataclasses import asdict
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from identica.encoders import MLP, ContrastiveModel
from identica.heads import BoxHead, Head, SphereHead, make_head
from identica.losses import InfoNCE
from identica.metrics import linear_r2, mcc
from identica.mixing import InvertibleMLP
from identica.process import GenerativeProcess
from identica.spaces import Box, Sphere
from identica.studies.presets import Preset
from identica.studies.study import Tick
from identica.studies.tables import Row
from identica.studies.trained import fit, result
from identica.training import Contrastive, History, Sampler, Supervised

HELD_OUT = 16_384
SOFT = 0.5  # part of the training in which a soft sphere closes in
WARM = 0.7  # part of the training in which the temperature rises, where it does

_mixing = lru_cache(maxsize=8)(InvertibleMLP)  # finding well-conditioned matrices takes a second


def make_process(row: Row, seed: int) -> GenerativeProcess:
    """The true process of a row, with its own mixing for each seed."""
    mixing = _mixing(row.space.dim, seed=seed)
    return GenerativeProcess(row.space, row.marginal, row.conditional, mixing)


def make_model(row: Row, preset: Preset, seed: int) -> ContrastiveModel:
    """The model of a row, untrained."""
    n = row.space.dim
    head: Head | None = None
    if isinstance(row.model_space, Box):
        head = BoxHead(row.model_space, learnable=True, start=preset.bound, lr=preset.bound_lr)
    elif isinstance(row.model_space, Sphere) and preset.soften:
        head = SphereHead(row.model_space, soften=round(SOFT * preset.contrastive.steps))
    encoder = MLP(n, n, preset.hidden, seed=seed)
    return ContrastiveModel(row.model_space, row.model, encoder, head=head)


def make_loss(row: Row, preset: Preset) -> InfoNCE:
    """The loss of a row. The anchor counts among its own negatives, as published: off the sphere
    that fixes the scale of the solution, on it it hardly matters."""
    anneal = None
    if preset.tau_start is not None:
        anneal = preset.tau_start, round(WARM * preset.contrastive.steps)
    return InfoNCE(
        row.model,
        self_negative=True,
        negatives=preset.negatives,
        effective_negatives=preset.effective_negatives,
        positive_in_denominator=preset.positives == 1,
        symmetric=preset.symmetric,
        anneal=anneal,
    )


def supervised_network(row: Row, preset: Preset, seed: int) -> nn.Module:
    """A network of the same size that is told the factors; where the codes of the model live in the
    factors' own space, so does its output."""
    n = row.space.dim
    encoder = MLP(n, n, preset.hidden, seed=seed)
    if type(row.model_space) is not type(row.space):
        return encoder
    return nn.Sequential(encoder, make_head(row.space))


def run(
    row: Row,
    kind: str,
    seed: int,
    preset: Preset,
    *,
    out: Path | None = None,
    progress: str | None = None,
    tick: Tick | None = None,
) -> tuple[dict[str, Any], History]:
    """Train and score one experiment; the result as in result.json, and the history of training.

    `tick(step, steps)` is called before every step.
    """
    process = make_process(row, seed)
    # batches come from even seeds, so that the held-out samples are never drawn in training
    z = process.latents(HELD_OUT, generator=2 * seed + 1)
    x = process.mixing(z)

    def scores(codes: Tensor) -> dict[str, float]:
        return {"r2": linear_r2(z, codes), "mcc": mcc(z, codes)}

    if kind == "identity":
        return {"scores": scores(x), "seconds": 0.0, "pairs": 0, "seed": seed}, History()
    objective: nn.Module
    sample: Sampler
    if kind == "supervised":
        model = supervised_network(row, preset, seed)
        objective, sample, training = Supervised(model), process.labelled, preset.supervised
    else:
        model = make_model(row, preset, seed)
        objective = Contrastive(model, make_loss(row, preset))
        shared = partial(process.pool, positives=preset.positives)
        sample = process.sample if preset.positives == 1 else shared
        training = preset.contrastive

    @torch.no_grad()
    def score() -> dict[str, float]:
        return scores(model(x))

    history = fit(
        objective,
        sample,
        training,
        seed=2 * seed,
        score=score,
        out=out,
        progress=progress,
        tick=tick,
    )
    found = result(score(), history, training, seed)
    if kind == "contrastive":
        found["pairs"] *= preset.positives
    return found, history


def describe(row: Row, kind: str, seed: int, preset: Preset) -> dict[str, Any]:
    """Everything that decides the result of an experiment, as plain data for config.json.

    What does not matter is left out, so that rows with the same process share their identity and
    supervised runs.
    """
    config: dict[str, Any] = {
        "kind": kind,
        "seed": seed,
        "space": repr(row.space),
        "marginal": repr(row.marginal),
    }
    if kind == "supervised":
        config["output"] = repr(row.model_space)
        config["preset"] = {"hidden": preset.hidden, "supervised": asdict(preset.supervised)}
    if kind == "contrastive":
        config["conditional"] = repr(row.conditional)
        config |= {"model_space": repr(row.model_space), "model": repr(row.model)}
        config["preset"] = asdict(preset)
        config["preset"].pop("supervised")
    return config
