"""One run on 3DIdent: which images, which network, how it is trained, and how it is scored."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from identica._check import InputError, one_of
from identica.datasets._root import data_root
from identica.datasets.threedident import FACTORS
from identica.datasets.threedident.pairs import (
    CANDIDATES,
    Renderer,
    Rows,
    as_images,
    augmented,
    draw_rows,
    drawn,
    exact,
    labelled,
    neighbours,
    positives_of,
    rendered,
)
from identica.datasets.threedident.storage import ImageSet
from identica.encoders import BoxHead, ContrastiveModel
from identica.families import Family, Laplace, Normal, Uniform
from identica.losses import InfoNCE
from identica.metrics import linear_r2, mcc
from identica.metrics.linear_r2 import linear_r2_per_factor
from identica.process import GenerativeProcess, Pairs
from identica.resnet import ResNet18, SmallResNet
from identica.spaces import Box, Space
from identica.studies.presets import PRESETS
from identica.studies.study import Tick
from identica.studies.tables import Published
from identica.studies.trained import Course
from identica.training import Contrastive, Sampler, Supervised, Training

LATENTS = Box(len(FACTORS), low=-1.0, high=1.0)
NETWORKS: dict[str, Callable[..., nn.Module]] = {"resnet18": ResNet18, "small": SmallResNet}
BATCH = 256  # images encoded at a time
TRIAL, TRIALS = 12345, 16  # the batches that networks are compared by after their start
COOLING = 0.9  # the part of its training in which a head cools down


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

    `exact` pairs follow the process: they are rendered, as many as `train`, or drawn among the `train`
    images where the conditional is wide; others are nearest neighbours among them. `original` images are
    not rendered, but read from `3dident/train` and `3dident/test` under IDENTICA_DATA.
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
        start: how each of `starts` networks is trained first, on narrower pairs: wide ones take long to
            show that a code is worth having. The one with the lowest loss goes on: some fold a factor
            in the middle, which further training does not undo.
        narrow: how it goes on, still on narrower pairs.
        head: how the head is trained in the end, by itself, on what the rest of the network makes of
            each image once. That is cheap, so that steps can be many.
        heat: the temperature at which the head starts, and cools down from. In a box, all codes are then
            driven to its walls, and its axes are the ones to go along. At a temperature of 1, factors
            that are hard to see are drawn to the middle, feel no walls, and mixtures of them would stay.
            Where there are no walls, it makes no difference.
        starts: number of networks that start.
        self_negative: each anchor counts among its own negatives, as published. That only helps
            where the conditional is so narrow that the task is easy without it.
        symmetric: both members of a pair are anchors in turn: more is learnt from the same images;
            near the walls of a box the reversed conditional is a little off the assumed one.
        bound: where the learnt side of a box starts; None fixes it where the model is the process.
    """

    images: Images
    network: str
    contrastive: Training
    supervised: Training
    start: Training | None = None
    narrow: Training | None = None
    head: Training | None = None
    starts: int = 1
    heat: float = 1.0
    self_negative: bool = True
    symmetric: bool = False
    bound: float | None = 1.0


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
_quick = Training(steps=2200, batch=256, lr=7.5e-3, warmup=50, score_every=200, checkpoint_every=50)
_first = replace(_quick, lr=1e-2, decay=0)
FAST = Settings(
    images=Images(size=64, train=120_000, test=4096, exact=True, samples=4),
    network="small",
    start=replace(_first, steps=300, score_every=300),
    narrow=replace(_first, steps=1000),
    contrastive=_quick,
    head=Training(
        steps=4000,
        batch=512,
        lr=1e-3,
        optimizer="adam",
        decay=0.6,
        score_every=400,
        checkpoint_every=200,
    ),
    heat=12.0,
    supervised=replace(_quick, steps=3600, lr=1e-2, batch=128),
    starts=3,
    self_negative=False,
    symmetric=True,
    bound=None,
)
# The width of narrower pairs, as part of that of the process. Pairs that are narrower still are told from the
# rest of a batch by the seven easy factors, and the angles are not asked for.
NARROW = 0.7


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
    if parts := parts_of(row, settings):
        config |= {name: asdict(training) for name, training in parts.items()}
        config |= {"starts": settings.starts, "heat": settings.heat}
        config |= {"narrower": NARROW, "cooling": COOLING, "candidates": CANDIDATES}
    if isinstance(row.model_space, Box):
        config["bound"] = settings.bound
    return config


def parts_of(row: ImageRow, settings: Settings) -> dict[str, Training]:
    """What a row is trained by apart from its main part: only rows with exact pairs have more."""
    if row.kind != "contrastive" or row.conditional is None or not settings.images.exact:
        return {}
    parts = {"start": settings.start, "narrow": settings.narrow, "head": settings.head}
    return {name: training for name, training in parts.items() if training is not None}


def work(row: ImageRow, settings: Settings) -> tuple[int, int]:
    """The steps of a run, and how many pairs they see."""
    main: Training | None = getattr(settings, row.kind, None)
    parts = parts_of(row, settings)
    all_of = [
        *parts.values(),
        *([parts["start"]] * (settings.starts - 1) if "start" in parts else []),
    ]
    all_of += [main] if main else []
    return sum(t.steps for t in all_of), sum(t.steps * t.batch for t in all_of)


def narrower(row: ImageRow) -> ImageRow:
    """The same row with pairs nearer to each other."""
    if isinstance(row.conditional, Normal):
        return replace(row, conditional=Normal(NARROW * row.conditional.std))
    return replace(row, conditional=Laplace(NARROW * laplace(row).scale))


def laplace(row: ImageRow) -> Laplace:
    """The conditional of a row that has no normal one."""
    if not isinstance(row.conditional, Laplace):
        raise InputError(f"conditional must be Normal or Laplace, got {row.conditional!r}")
    return row.conditional


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
    process = make_process(row, images)
    if not images.exact:
        return neighbours(process, data)
    if is_wide(row):
        return drawn(process, data)
    return exact(data, partners(row, study, images, tick))


def is_wide(row: ImageRow) -> bool:
    """Whether pairs can be drawn among images that exist: of ten thousand, about a hundred have a chance
    then. A Laplace of the same width has too sharp a peak in ten dimensions."""
    return isinstance(row.conditional, Normal) and row.conditional.std >= 0.5


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
        learnt = settings.bound is not None
        space = space if learnt else Box(space.dim, high=matched_side(row))
        head = BoxHead(space, learnable=learnt, start=settings.bound)
    encoder = NETWORKS[settings.network](space.dim, seed=seed)
    return ContrastiveModel(space, row.model, encoder, head=head)


def matched_side(row: ImageRow) -> float:
    """The side of a box for which a normal model of precision 1 has the width of the conditional.

    A learnt side outgrows it while the angles are not known yet, and nothing pushes it back: its walls
    are then not felt, and factors stay mixed.
    """
    if isinstance(row.conditional, Normal):
        return float(2 / (row.conditional.std * 2**0.5))
    return 1 / laplace(row).scale


def make_objective(
    row: ImageRow, settings: Settings, seed: int
) -> tuple[Contrastive | Supervised, nn.Module]:
    """The objective of a row, untrained, and the network within it that gives the codes."""
    network = one_of("network", settings.network, NETWORKS)
    if row.kind == "supervised":
        encoder = NETWORKS[network](len(FACTORS), seed=seed)
        return Supervised(encoder), encoder
    model = make_model(row, settings, seed)
    return make_contrastive(model, settings), model


def make_contrastive(
    model: ContrastiveModel, settings: Settings, anneal: tuple[float, int] | None = None
) -> Contrastive:
    """The contrastive objective of a model."""
    loss = InfoNCE(
        model.conditional,
        self_negative=settings.self_negative,
        symmetric=settings.symmetric,
        anneal=anneal,
    )
    return Contrastive(model, loss)


def r2_of(factor: str) -> str:
    """The name of the score that is the R² of one factor."""
    return f"r2 of {factor}"


@torch.no_grad()
def codes_of(encode: nn.Module, data: ImageSet) -> NDArray[np.float64]:
    """Codes N×n of all images of a data set."""
    return read(encode, data).double().numpy()


@torch.no_grad()
def read(
    network: Callable[[Tensor], Tensor], data: ImageSet, tick: Callable[[], None] | None = None
) -> Tensor:
    """What a network makes of all images of a data set."""
    parts = []
    for rows in np.array_split(np.arange(len(data)), -(-len(data) // BATCH)):
        if tick is not None:
            tick()
        parts.append(network(as_images(data.images(rows))))
    return torch.cat(parts)


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
    main: Training | None = getattr(settings, row.kind, None)
    parts = parts_of(row, settings)
    course = Course(out, work(row, settings)[0], tick)
    images = settings.images
    test = unseen(study, images, course.tick)
    if main is None:
        r2 = linear_r2(test.raw_latents, small_pixels(test))
        return {"scores": {"r2": r2}, "seconds": 0.0, "pairs": 0, "seed": seed}

    def score(codes: NDArray[np.float64]) -> dict[str, float]:
        r2 = linear_r2_per_factor(test.raw_latents, codes)
        by_factor = {r2_of(name): float(value) for name, value in zip(FACTORS, r2, strict=True)}
        return {"r2": float(r2.mean()), "mcc": mcc(test.raw_latents, codes), **by_factor}

    def fit(
        name: str, objective: nn.Module, encode: nn.Module, sample: Sampler, training: Training
    ) -> None:
        course.fit(
            name,
            objective,
            sample,
            training,
            seed=2 * seed,
            score=lambda: score(codes_of(encode, test)),
        )

    objective, encode = make_objective(row, settings, seed)
    if "head" in parts and not isinstance(getattr(encode, "encoder", None), SmallResNet):
        raise InputError('head must be None unless network is "small": no other has a head apart')
    if "start" in parts or "narrow" in parts:
        near = narrower(row)
        sample = batches(near, study, images, course.tick)
        started, network = first(near, settings, seed, course, sample, parts.get("start"))
        if "narrow" in parts:
            fit("narrow", started, network, sample, parts["narrow"])
        encode.encoder = network.encoder  # the box of wide pairs has other sides
    fit("main", objective, encode, batches(row, study, images, course.tick), main)
    if "head" in parts:
        assert isinstance(encode, ContrastiveModel)
        train_head(encode, row, settings, seed, study, test, course, score)
    return course.result(score(codes_of(encode, test)), objective, seed)


def first(
    row: ImageRow,
    settings: Settings,
    seed: int,
    course: Course,
    sample: Sampler,
    training: Training | None,
) -> tuple[Contrastive | Supervised, nn.Module]:
    """Of several networks that have started, the one with the lowest loss on the same batches."""
    if training is None:
        return make_objective(row, settings, seed)

    def loss_of(objective: nn.Module) -> dict[str, float]:
        source = torch.Generator().manual_seed(TRIAL)
        with torch.no_grad():
            found = [objective(sample(training.batch, generator=source)) for _ in range(TRIALS)]
        return {"loss on trial": float(torch.stack(found).mean())}

    made = [make_objective(row, settings, seed + 1000 * i) for i in range(settings.starts)]
    losses = []
    for i, (objective, _) in enumerate(made):
        score = partial(loss_of, objective)
        last = course.fit(
            f"start-{i}", objective, sample, training, seed=2 * seed, score=score, record=False
        )
        losses.append(last["loss on trial"])
    return made[int(np.argmin(losses))]


def train_head(
    model: ContrastiveModel,
    row: ImageRow,
    settings: Settings,
    seed: int,
    study: Path,
    test: ImageSet,
    course: Course,
    score: Callable[[NDArray[np.float64]], dict[str, float]],
) -> None:
    """Train the head by itself on what the rest of the network makes of each image."""
    began = time.perf_counter()
    training, network = settings.head, model.encoder.eval()
    assert training is not None
    assert isinstance(network, SmallResNet)
    data = seen(study, settings.images)
    x, x_test = (read(network.read, images, course.tick) for images in (data, test))
    sample = head_batches(row, settings, study, network, x, course.tick)
    course.seconds += time.perf_counter() - began

    alone = ContrastiveModel(model.space, model.conditional, network.head, head=model.head)
    cooling = round(COOLING * training.steps)
    objective = make_contrastive(alone, settings, anneal=(settings.heat, cooling))

    @torch.no_grad()
    def scores() -> dict[str, float]:
        return score(alone(x_test).double().numpy())

    course.fit("head", objective, sample, training, seed=2 * seed + 1, score=scores)


def head_batches(
    row: ImageRow,
    settings: Settings,
    study: Path,
    network: SmallResNet,
    x: Tensor,
    tick: Callable[[], None],
) -> Sampler:
    """The pairs that a head is trained on, from what its network makes of the images, x."""
    images = settings.images
    if is_wide(row):
        draw, x_pos = draw_rows(make_process(row, images), seen(study, images).raw_latents), x
    else:
        draw, x_pos = same_rows(len(x)), read(network.read, partners(row, study, images), tick)

    def sample(size: int, /, *, generator: torch.Generator) -> Pairs:
        rows, others = draw(size, generator)
        here, there = x[rows], x_pos[others]
        return Pairs(here, there, here, there)

    return sample


def same_rows(n: int) -> Callable[[int, torch.Generator], tuple[Rows, Rows]]:
    """Rows of pairs whose members stand in the same row of two sets."""

    def draw(size: int, generator: torch.Generator) -> tuple[Rows, Rows]:
        rows = torch.randint(n, (size,), generator=generator).numpy()
        return rows, rows

    return draw


def small_pixels(data: ImageSet, side: int = 16) -> NDArray[np.float64]:
    """All images shrunk to `side`×`side` means, N×3·side²: what a linear map can be fitted to."""
    blocks = data.size // min(side, data.size)
    parts = []
    for start in range(0, len(data), BATCH):
        x = as_images(data.images(np.arange(start, min(start + BATCH, len(data))))).float()
        parts.append(nn.functional.avg_pool2d(x, blocks).flatten(1))
    return torch.cat(parts).double().numpy()
