"""One run on 3DIdent: which images, which network, how it is trained, and how it is scored."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from identica import checkpoints
from identica._check import one_of
from identica.datasets._root import data_root
from identica.datasets.threedident import FACTORS
from identica.datasets.threedident.pairs import (
    Renderer,
    as_images,
    augmented,
    exact,
    labelled,
    neighbours,
    positives_of,
    rendered,
)
from identica.datasets.threedident.storage import ImageSet
from identica.encoders import BoxHead, ContrastiveModel
from identica.families import Family, Uniform
from identica.losses import InfoNCE
from identica.metrics import linear_r2, mcc
from identica.metrics.linear_r2 import linear_r2_per_factor
from identica.process import GenerativeProcess
from identica.resnet import ResNet18, SmallResNet
from identica.runs import WEIGHTS
from identica.spaces import Box, Space
from identica.studies.presets import PRESETS
from identica.studies.study import Tick
from identica.studies.tables import Published
from identica.studies.threedident_head import train_head
from identica.studies.trained import fit, result
from identica.training import Contrastive, Sampler, Supervised, Training, write_metrics

LATENTS = Box(len(FACTORS), low=-1.0, high=1.0)
NETWORKS: dict[str, Callable[..., nn.Module]] = {"resnet18": ResNet18, "small": SmallResNet}
BATCH = 256  # images encoded at a time


@dataclass(frozen=True)
class ImageRow:
    """A row of the table: a conditional (None: two augmented views of one image), a model, and what
    was published, by score. Rows of other kinds than "contrastive" have neither."""

    row: int
    kind: str
    published: dict[str, Published]
    conditional: Family | None = None
    model_space: Space | None = None
    model: Family | None = None
    match: bool = False
    forbidden: tuple[str, ...] = ()  # scores that theory keeps low


@dataclass(frozen=True)
class Images:
    """Which images: their size, rays per pixel, how many to train on, how many to score on.

    `exact` pairs are rendered as the process says, as many as `train`; others are nearest neighbours
    among `train` images. `original` ones are not rendered, but read from `3dident/train` and
    `3dident/test` under IDENTICA_DATA.
    """

    size: int
    train: int
    test: int
    exact: bool
    samples: int = 8
    original: bool = False


@dataclass(frozen=True)
class Settings:
    """How a row is trained.

    Attributes:
        images: what it is trained and scored on.
        network: "resnet18" or "small".
        contrastive, supervised: how each is trained.
        head: how the head of a contrastive network is trained afterwards, by itself, on what the rest
            of the network makes of each image once. That is cheap, so that batches can be large and
            steps many. None leaves it out, and so do pairs that are not images in a cache.
        self_negative: each anchor counts among its own negatives, as published. That only helps
            where the conditional is so narrow that the task is easy without it.
        symmetric: both members of a pair are anchors in turn: more is learnt from the same images;
            near the walls of a box the reversed conditional is a little off the assumed one.
        bound, learn_bound: the side of a box, or where it starts if it is learnt.
    """

    images: Images
    network: str
    contrastive: Training
    supervised: Training
    head: Training | None = None
    self_negative: bool = True
    symmetric: bool = False
    bound: float = 1.0
    learn_bound: bool = True


_published = Training(
    steps=30_000,
    batch=512,
    lr=1e-4,
    optimizer="adam",
    warmup=0,
    decay=0,
    score_every=500,
    checkpoint_every=50,
)
PAPER = Settings(
    images=Images(size=224, train=250_000, test=25_000, exact=False),
    network="resnet18",
    contrastive=_published,
    supervised=_published,
)
_quick = Training(steps=3600, batch=256, lr=1e-2, warmup=50, score_every=200, checkpoint_every=50)
# Without the self-pair the model's conditional is the true one where the codes span 2/(σ√2) = 4.04. A
# learnt side outgrows that while the angles are not known yet, and nothing pushes it back: its walls are
# then not felt, and factors stay mixed.
FAST = Settings(
    images=Images(size=64, train=120_000, test=4096, exact=True, samples=4),
    network="small",
    contrastive=_quick,
    supervised=replace(_quick, batch=128),
    head=Training(
        steps=3000, batch=1024, lr=1e-3, optimizer="adam", score_every=250, checkpoint_every=500
    ),
    self_negative=False,
    symmetric=True,
    bound=4.04,
    learn_bound=False,
)


def choose(preset: str) -> Settings:
    """The settings of a preset; `paper` takes the original images where they are at hand."""
    if one_of("preset", preset, PRESETS) == "fast":
        return FAST
    at_hand = all(original(part).is_dir() for part in ("train", "test"))
    return replace(PAPER, images=replace(PAPER.images, original=at_hand))


def describe(row: ImageRow, seed: int, settings: Settings) -> dict[str, Any]:
    """Everything that decides the result of a run, as plain data for config.json."""
    config: dict[str, Any] = {
        "kind": row.kind,
        "seed": seed,
        "data": "3dident",
        "images": asdict(settings.images),
    }
    if row.kind == "identity":
        return config
    config |= {"network": settings.network, "training": asdict(getattr(settings, row.kind))}
    if row.kind == "contrastive":
        config |= {
            "conditional": "augmentations" if row.conditional is None else repr(row.conditional),
            "model_space": repr(row.model_space),
            "model": repr(row.model),
            "self_negative": settings.self_negative,
            "symmetric": settings.symmetric,
        }
        if head := head_training(row, settings):
            config["head"] = asdict(head)
    if isinstance(row.model_space, Box):
        config |= {"bound": settings.bound, "learn_bound": settings.learn_bound}
    return config


def head_training(row: ImageRow, settings: Settings) -> Training | None:
    """How the head of a row is trained by itself, None if it is not."""
    in_cache = row.kind == "contrastive" and row.conditional is not None and settings.images.exact
    return settings.head if in_cache else None


def trainings(row: ImageRow, settings: Settings) -> list[Training]:
    """All that a row is trained by, in turn."""
    in_turn = getattr(settings, row.kind, None), head_training(row, settings)
    return [training for training in in_turn if training is not None]


# --- images -----------------------------------------------------------------------------------------


def make_process(row: ImageRow, images: Images) -> GenerativeProcess:
    """Uniform latents and the renderer; rows without a conditional of their own never draw from it."""
    conditional = Uniform() if row.conditional is None else row.conditional
    return GenerativeProcess(LATENTS, Uniform(), conditional, Renderer(images.size, images.samples))


def home(study: Path, images: Images) -> Path:
    """Where the images of a study are, for all its runs."""
    return study / "images" / f"{images.size}px-{images.samples}samples-{images.train}"


def original(part: str) -> Path:
    """Where the original "train" or "test" images are, for those who have them."""
    return data_root() / "3dident" / part


def test_folder(study: Path, images: Images) -> Path:
    """Where the images are that runs are scored on."""
    return original("test") if images.original else home(study, images) / f"test-{images.test}"


def unseen(study: Path, images: Images, tick: Callable[[], None] | None = None) -> ImageSet:
    """The images that runs are scored on."""
    if images.original:
        return ImageSet(test_folder(study, images))
    process = make_process(ImageRow(0, "identity", {}), images)
    z = process.latents(images.test, generator=1, dtype=torch.float64)
    return rendered(test_folder(study, images), process, z, tick=_quiet(tick))


def seen(study: Path, images: Images, tick: Callable[[], None] | None = None) -> ImageSet:
    """The images that runs are trained on; of exact pairs, the anchors."""
    if images.original:
        return ImageSet(original("train"))
    process = make_process(ImageRow(0, "identity", {}), images)
    z = process.latents(images.train, generator=0, dtype=torch.float64)
    return rendered(home(study, images) / "train", process, z, tick=_quiet(tick))


def batches(
    row: ImageRow, study: Path, images: Images, tick: Callable[[], None] | None = None
) -> Sampler:
    """What a row is trained on."""
    data = seen(study, images, tick)
    if row.kind == "supervised":
        return labelled(data)
    if row.conditional is None:
        return augmented(data)
    if not images.exact:
        return neighbours(make_process(row, images), data)
    return exact(data, partners(row, study, images, tick))


def partners(
    row: ImageRow, study: Path, images: Images, tick: Callable[[], None] | None = None
) -> ImageSet:
    """Of exact pairs, the positives."""
    name = re.sub(r"[^\w.]+", "-", repr(row.conditional)).strip("-")
    process, folder = make_process(row, images), home(study, images) / name
    return positives_of(process, seen(study, images), folder, seed=2, tick=_quiet(tick))


def _quiet(tick: Callable[[], None] | None) -> Callable[[int, int], None] | None:
    return None if tick is None else lambda done, total: tick()


# --- networks ---------------------------------------------------------------------------------------


def make_model(row: ImageRow, settings: Settings, seed: int) -> ContrastiveModel:
    """The model of a row, untrained."""
    assert row.model_space is not None
    assert row.model is not None
    space, head = row.model_space, None
    if isinstance(space, Box):
        space = space if settings.learn_bound else Box(space.dim, high=settings.bound)
        head = BoxHead(space, learnable=settings.learn_bound, start=settings.bound)
    encoder = NETWORKS[settings.network](space.dim, seed=seed)
    return ContrastiveModel(space, row.model, encoder, head=head)


def make_objective(
    row: ImageRow, settings: Settings, seed: int
) -> tuple[Contrastive | Supervised, nn.Module]:
    """The objective of a row, untrained, and the network within it that gives the codes."""
    network = one_of("network", settings.network, NETWORKS)
    if row.kind == "supervised":
        encoder = NETWORKS[network](len(FACTORS), seed=seed)
        return Supervised(encoder), encoder
    model = make_model(row, settings, seed)
    loss = InfoNCE(
        model.conditional,
        self_negative=settings.self_negative,
        symmetric=settings.symmetric,
    )
    return Contrastive(model, loss), model


def r2_of(factor: str) -> str:
    """The name of the score that is the R² of one factor."""
    return f"r2 of {factor}"


@torch.no_grad()
def codes_of(encode: nn.Module, data: ImageSet) -> NDArray[np.float64]:
    """Codes N×n of all images of a data set."""
    parts = [
        encode(as_images(data.images(rows)))
        for rows in np.array_split(np.arange(len(data)), -(-len(data) // BATCH))
    ]
    return torch.cat(parts).double().numpy()


# --- runs -------------------------------------------------------------------------------------------


def run(
    row: ImageRow,
    seed: int,
    settings: Settings,
    study: Path,
    *,
    out: Path,
    tick: Tick | None = None,
) -> dict[str, Any]:
    """Train and score one row with one seed; the result as in result.json.

    Images are rendered into the folder of the study if they are not there yet, for all its runs.
    """
    in_turn = trainings(row, settings)
    steps = sum(training.steps for training in in_turn)

    def tell(step: int) -> None:
        if tick is not None:
            tick(step, steps)

    def alive() -> None:
        tell(0)

    test = unseen(study, settings.images, alive)
    if not in_turn:
        r2 = linear_r2(test.raw_latents, small_pixels(test))
        return {"scores": {"r2": r2}, "seconds": 0.0, "pairs": 0, "seed": seed}
    objective, encode = make_objective(row, settings, seed)
    sample = batches(row, study, settings.images, alive)

    def score(codes: NDArray[np.float64]) -> dict[str, float]:
        r2 = linear_r2_per_factor(test.raw_latents, codes)
        by_factor = {r2_of(name): float(value) for name, value in zip(FACTORS, r2, strict=True)}
        return {"r2": float(r2.mean()), "mcc": mcc(test.raw_latents, codes), **by_factor}

    history = fit(
        objective,
        sample,
        in_turn[0],
        seed=2 * seed,
        score=lambda: score(codes_of(encode, test)),
        out=out,
        tick=lambda step, _: tell(step),
    )
    if head := head_training(row, settings):
        assert isinstance(objective, Contrastive)
        done, seconds = in_turn[0].steps, history.last["seconds"]
        records = train_head(
            objective,
            (seen(study, settings.images), partners(row, study, settings.images)),
            head,
            seed=2 * seed + 1,
            test=test,
            score=score,
            tick=lambda step: tell(done + step),
        )
        history.records += [
            record | {"step": done + record["step"], "seconds": seconds + record["seconds"]}
            for record in records
        ]
        write_metrics(out, history)
        checkpoints.save_weights(out / WEIGHTS, objective)
    return result(score(codes_of(encode, test)), history, seed, *in_turn)


def small_pixels(data: ImageSet, side: int = 16) -> NDArray[np.float64]:
    """All images shrunk to `side`×`side` means, N×3·side²: what a linear map can be fitted to."""
    blocks = data.size // min(side, data.size)
    parts = []
    for start in range(0, len(data), BATCH):
        x = as_images(data.images(np.arange(start, min(start + BATCH, len(data))))).float()
        parts.append(nn.functional.avg_pool2d(x, blocks).flatten(1))
    return torch.cat(parts).double().numpy()
