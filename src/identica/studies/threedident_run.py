"""One run on 3DIdent: its images, its network, its training and its scores."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from identica._io import locked, replacing
from identica._validate import one_of
from identica.datasets.threedident import FACTORS
from identica.datasets.threedident.pairs import (
    Renderer,
    Rows,
    as_images,
    augmented,
    labelled,
    neighbours,
    rendered,
)
from identica.datasets.threedident.storage import ImageSet, load_array
from identica.datasets.threedident.walks import drawn_rows, positives_among, walks
from identica.encoders import ContrastiveModel
from identica.errors import InputError
from identica.families import Uniform
from identica.heads import BoxHead
from identica.losses import InfoNCE
from identica.metrics import linear_r2, mcc
from identica.metrics.linear_r2 import linear_r2_per_factor
from identica.process import GenerativeProcess, Pairs
from identica.resnet import ResNet18, SmallResNet
from identica.spaces import Box
from identica.studies.study import Tick
from identica.studies.threedident_settings import (
    ImageRow,
    Images,
    Settings,
    Walking,
    matched_side,
    narrower,
    original,
    r2_of,
    walking_of,
    work,
)
from identica.studies.trained import Course, lent
from identica.training import Contrastive, Sampler, Supervised, Training

LATENTS = Box(len(FACTORS), low=-1.0, high=1.0)
NETWORKS: dict[str, Callable[..., nn.Module]] = {"resnet18": ResNet18, "small": SmallResNet}
Say = Callable[[str], None]
BATCH = 256  # images encoded at a time
TRIAL, TRIALS = 12345, 16  # the batches that networks are compared by after their start


# --- images -----------------------------------------------------------------------------------------


def make_process(row: ImageRow, images: Images) -> GenerativeProcess:
    """Uniform latents and the renderer; rows without a conditional of their own never draw from it."""
    conditional = Uniform() if row.conditional is None else row.conditional
    return GenerativeProcess(LATENTS, Uniform(), conditional, Renderer(images.size, images.samples))


def home(study: Path, images: Images) -> Path:
    """Where the images of a study are, for all its runs."""
    return study / "images" / f"{images.size}px-{images.samples}samples-{images.train}"


def test_folder(study: Path, images: Images) -> Path:
    """Where the images are that runs are scored on."""
    return original("test") if images.original else home(study, images) / f"test-{images.test}"


def unseen(study: Path, images: Images, say: Say | None = None) -> ImageSet:
    """The images that runs are scored on."""
    if images.original:
        return ImageSet(test_folder(study, images))
    process = make_process(ImageRow(0, "identity", {}), images)
    z = process.latents(images.test, generator=1, dtype=torch.float64)
    return rendered(test_folder(study, images), process, z, tick=_each(say, "images"))


def seen(study: Path, images: Images, say: Say | None = None) -> ImageSet:
    """The images that runs are trained on."""
    if images.original:
        return ImageSet(original("train"))
    process = make_process(ImageRow(0, "identity", {}), images)
    z = process.latents(images.train, generator=0, dtype=torch.float64)
    return rendered(home(study, images) / "train", process, z, tick=_each(say, "images"))


def batches(row: ImageRow, study: Path, settings: Settings, say: Say | None = None) -> Sampler:
    """What a row is trained on."""
    images = settings.images
    data = seen(study, images, say)
    if row.kind == "supervised":
        return labelled(data)
    if row.conditional is None:
        return augmented(data)
    if settings.walking is None:
        return neighbours(make_process(row, images), data)
    return walks(data, positives(row, study, images, say))


def positives(row: ImageRow, study: Path, images: Images, say: Say | None = None) -> Rows:
    """For each image that a row is trained on, some that are positives of it, drawn once for all runs."""
    name = re.sub(r"[^\w.]+", "-", repr(row.conditional)).strip("-")
    path, data = home(study, images) / f"{name}.npy", seen(study, images, say)
    with locked(path.with_suffix(".lock")):
        if not path.exists():
            found = positives_among(
                make_process(row, images),
                data.raw_latents,
                seed=2,
                tick=_each(say, "pairs of images"),
            )
            with replacing(path) as temporary, temporary.open("wb") as file:
                np.save(file, found, allow_pickle=False)
    found = load_array(path)
    if found.ndim != 2 or len(found) != len(data):
        raise InputError(f"{path} must hold positives of {len(data)} images: delete it")
    return found


def _each(say: Say | None, what: str) -> Callable[[int, int], None] | None:
    return None if say is None else lambda done, total: say(f"{what}, {done} of {total}")


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


def make_objective(
    row: ImageRow, settings: Settings, seed: int
) -> tuple[Contrastive | Supervised, nn.Module]:
    """The objective of a row, untrained, and the network within it that gives the codes."""
    network = one_of("network", settings.network, NETWORKS)
    if row.kind == "supervised":
        encoder = NETWORKS[network](len(FACTORS), seed=seed)
        return Supervised(encoder), encoder
    model, walking = make_model(row, settings, seed), walking_of(row, settings)
    return make_contrastive(model, settings, apart=walking.apart if walking else 1), model


def make_contrastive(
    model: ContrastiveModel,
    settings: Settings,
    *,
    apart: int = 1,
    anneal: tuple[float, int] | None = None,
) -> Contrastive:
    """The contrastive objective of a model."""
    loss = InfoNCE(
        model.conditional,
        self_negative=settings.self_negative,
        symmetric=settings.symmetric,
        apart=apart,
        anneal=anneal,
    )
    return Contrastive(model, loss)


@torch.no_grad()
def codes_of(encode: nn.Module, data: ImageSet) -> NDArray[np.float64]:
    """Codes N×n of all images of a data set."""
    with lent(encode) as device:
        return read(lambda x: encode(x.to(device)).cpu(), data).double().numpy()


@torch.no_grad()
def read(network: Callable[[Tensor], Tensor], data: ImageSet, say: Say | None = None) -> Tensor:
    """What a network makes of all images of a data set."""
    parts = []
    for rows in np.array_split(np.arange(len(data)), -(-len(data) // BATCH)):
        if say is not None:
            say(f"reading images, {rows[0]} of {len(data)}")
        parts.append(network(as_images(data.images(rows))))
    return torch.cat(parts)


def scores(z: NDArray[np.float64], codes: NDArray[np.float64]) -> dict[str, float]:
    """R² and MCC of codes N×n of factors N×10, and the R² of each factor."""
    r2 = linear_r2_per_factor(z, codes)
    by_factor = {r2_of(name): float(value) for name, value in zip(FACTORS, r2, strict=True)}
    return {"r2": float(r2.mean()), "mcc": mcc(z, codes), **by_factor}


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
    course = Course(out, work(row, settings)[0], tick)
    test = unseen(study, settings.images, course.say)
    if row.kind == "identity":
        r2 = linear_r2(test.raw_latents, small_pixels(test))
        return {"scores": {"r2": r2}, "seconds": 0.0, "pairs": 0, "seed": seed}

    score = partial(scores, test.raw_latents)

    def fit(
        name: str, objective: nn.Module, encode: nn.Module, on: ImageRow, how: Training
    ) -> None:
        sample = batches(on, study, settings, course.say)
        course.fit(
            name,
            objective,
            sample,
            how,
            seed=2 * seed,
            score=lambda: score(codes_of(encode, test)),
        )

    objective, encode = make_objective(row, settings, seed)
    walking = walking_of(row, settings)
    if walking is None:
        fit("main", objective, encode, row, getattr(settings, row.kind))
        return course.result(score(codes_of(encode, test)), objective, seed)

    assert isinstance(encode, ContrastiveModel)
    if not isinstance(encode.encoder, SmallResNet):
        raise InputError(
            'walking must be None unless network is "small": no other has a head apart'
        )
    near = narrower(row, walking.narrower)
    sample = batches(near, study, settings, course.say)
    started, network = first(near, settings, walking, seed, course, sample)
    fit("narrow", started, network, near, walking.narrow)
    assert isinstance(network, ContrastiveModel)
    encode.encoder = network.encoder  # the box of wide pairs has other sides
    fit("wide", objective, encode, row, walking.wide)
    train_head(encode, row, settings, walking, seed, study, test, course, score)
    return course.result(score(codes_of(encode, test)), objective, seed)


def first(
    row: ImageRow,
    settings: Settings,
    walking: Walking,
    seed: int,
    course: Course,
    sample: Sampler,
) -> tuple[Contrastive | Supervised, nn.Module]:
    """Of several networks that have started, the one with the lowest loss on the same batches."""
    training = walking.start

    def loss_of(objective: nn.Module) -> dict[str, float]:
        source = torch.Generator().manual_seed(TRIAL)
        with torch.no_grad():
            found = [objective(sample(training.batch, generator=source)) for _ in range(TRIALS)]
        return {"loss on trial": float(torch.stack(found).mean())}

    made = [make_objective(row, settings, seed + 1000 * i) for i in range(walking.starts)]
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
    walking: Walking,
    seed: int,
    study: Path,
    test: ImageSet,
    course: Course,
    score: Callable[[NDArray[np.float64]], dict[str, float]],
) -> None:
    """Train the head by itself on what the rest of the network makes of each image."""
    began = time.perf_counter()
    training, network = walking.head, model.encoder.eval()
    assert isinstance(network, SmallResNet)
    data = seen(study, settings.images)
    x, x_test = (read(network.read, images, course.say) for images in (data, test))
    draw = drawn_rows(positives(row, study, settings.images))
    course.seconds += time.perf_counter() - began

    def sample(size: int, /, *, generator: torch.Generator) -> Pairs:
        rows, others = draw(size, generator)
        here, there = x[rows], x[others]
        return Pairs(here, there, here, there)

    alone = ContrastiveModel(model.space, model.conditional, network.head, head=model.head)
    cooling = round(walking.cooling * training.steps)
    objective = make_contrastive(alone, settings, anneal=(walking.heat, cooling))

    @torch.no_grad()
    def now() -> dict[str, float]:
        return score(alone(x_test).double().numpy())

    course.fit("head", objective, sample, training, seed=2 * seed + 1, score=now)


def small_pixels(data: ImageSet, side: int = 16) -> NDArray[np.float64]:
    """All images shrunk to `side`×`side` means, N×3·side²: what a linear map can be fitted to."""
    blocks = data.size // min(side, data.size)
    parts = []
    for start in range(0, len(data), BATCH):
        x = as_images(data.images(np.arange(start, min(start + BATCH, len(data))))).float()
        parts.append(nn.functional.avg_pool2d(x, blocks).flatten(1))
    return torch.cat(parts).double().numpy()
