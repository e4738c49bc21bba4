"""The experiment on 3DIdent: images, network, training stages and scores."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from identica._io import locked, replacing
from identica._validate import one_of
from identica.datasets.reading import map_npy
from identica.datasets.root import data_root
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
from identica.datasets.threedident.storage import LATENTS, ImageSet
from identica.datasets.threedident.walks import DRAWS, draw_rows, positives_among, walks
from identica.encoders import ContrastiveModel
from identica.errors import InputError
from identica.families import Family, Laplace, Normal, Uniform
from identica.metrics import linear_r2, linear_r2_per_factor, mcc
from identica.process import GenerativeProcess, Pairs
from identica.recipes import Walking
from identica.resnet import ResNet18, SmallResNet
from identica.spaces import Box
from identica.studies.experiment import Context, RowExperiment, Scores, Stage, Stages
from identica.studies.published import ImageRow
from identica.training import Contrastive, Sampler, Supervised, Training
from identica.training.devices import batch_on, device_of, placed

BOX = Box(len(FACTORS), low=-1.0, high=1.0)
NETWORKS: dict[str, Callable[..., nn.Module]] = {"resnet18": ResNet18, "small": SmallResNet}
Say = Callable[[str], None]


def silent(doing: str) -> None:
    """Report nothing."""


BATCH = 256  # images encoded in one batch
TRIAL, TRIALS = 12345, 16  # seed and number of the batches on which the starts are compared


@dataclass(frozen=True)
class Images:
    """The images: size, rays per pixel, number of training images and of test images.

    `original` images are not rendered, but read from `3dident/train` and `3dident/test` under
    IDENTICA_DATA.
    """

    size: int
    train: int
    test: int
    samples: int = 8
    original: bool = False

    def load(self, study: Path, part: str, say: Say = silent) -> ImageSet:
        """The training images ("train") or test images ("test") of a study."""
        folder = self.folder(study, part)
        if self.original:
            return ImageSet(folder)
        n, seed = (self.train, 0) if part == "train" else (self.test, 1)
        process = make_process(self)
        z = process.latents(n, generator=seed, dtype=torch.float64)
        return rendered(folder, process, z, tick=_each(say, "images"))

    def folder(self, study: Path, part: str) -> Path:
        """The folder of those images."""
        if self.original:
            return original(part)
        return self.home(study) / (part if part == "train" else f"test-{self.test}")

    def home(self, study: Path) -> Path:
        """The folder of all images of a study, shared by its runs."""
        return study / "images" / f"{self.size}px-{self.samples}samples-{self.train}"


FAST = Images(size=64, train=120_000, test=4096, samples=4)


def paper_images() -> Images:
    """The original images if they are available, otherwise as many rendered ones."""
    if not all(original(part).is_dir() for part in ("train", "test")):
        return Images(size=224, train=250_000, test=25_000)
    n, n_test = (len(map_npy(original(part) / LATENTS)) for part in ("train", "test"))
    return Images(size=224, train=n, test=n_test, original=True)


def original(part: str) -> Path:
    """The folder of the original "train" or "test" images, if they are available."""
    return data_root() / "3dident" / part


def make_process(images: Images, conditional: Family | None = None) -> GenerativeProcess:
    """Uniform latents and the renderer; without a conditional, positives are never drawn from it."""
    renderer = Renderer(images.size, images.samples)
    return GenerativeProcess(BOX, Uniform(), conditional or Uniform(), renderer)


def _each(say: Say, what: str) -> Callable[[int, int], None]:
    return lambda done, total: say(f"{what}, {done} of {total}")


# --- the experiment ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class ImageExperiment(RowExperiment):
    """A row with a seed. Images are rendered into the folder of the study and shared by its runs."""

    row: ImageRow
    images: Images

    @property
    def walking(self) -> Walking | None:
        """Settings for training on walks; None for augmented views, which form no walks."""
        has_pairs = self.kind == "contrastive" and self.row.conditional is not None
        return self.recipe.walking if has_pairs else None

    @property
    def config(self) -> dict[str, Any]:
        row, recipe = self.row, self.recipe
        config: dict[str, Any] = {
            "kind": row.kind,
            "seed": self.seed,
            "data": "3dident",
            "images": asdict(self.images),
        }
        if row.kind == "identity":
            return config
        config["network"] = recipe.network
        if self.walking:
            config |= {"walking": asdict(self.walking), "draws": DRAWS}
        else:
            config["training"] = asdict(recipe.training)
        if row.kind == "contrastive":
            pairs = "augmentations" if row.conditional is None else repr(row.conditional)
            config |= {
                "conditional": pairs,
                "model_space": repr(row.model_space),
                "model": repr(row.model),
                "self_negative": recipe.self_negative,
                "symmetric": recipe.symmetric,
            }
        if isinstance(row.model_space, Box):
            config["bound"] = recipe.bound
        return config

    @property
    def trainings(self) -> list[Training]:
        if self.walking:
            return self.walking.on_images()
        return [] if self.kind == "identity" else [self.recipe.training]

    def model(self) -> ContrastiveModel:
        """The contrastive model, untrained."""
        row, space = self.row, self.row.model_space
        assert space is not None
        assert row.model is not None
        if isinstance(space, Box) and self.recipe.bound is None:
            space = Box(space.dim, high=matched_side(row.conditional))
        encoder, head = self.encoder(space.dim), self.recipe.head(space)
        return ContrastiveModel(space, row.model, encoder, head=head)

    def encoder(self, n: int) -> nn.Module:
        """The network, untrained, with n outputs."""
        network = one_of("network", str(self.recipe.network), NETWORKS)
        return NETWORKS[network](n, seed=self.seed)

    def objective(self) -> tuple[nn.Module, nn.Module]:
        if self.kind == "supervised":
            encoder = self.encoder(len(FACTORS))
            return Supervised(encoder), encoder
        model, apart = self.model(), self.walking.apart if self.walking else 1
        return Contrastive(model, self.recipe.loss(model.conditional, apart=apart)), model

    def stages(self, context: Context) -> Stages:
        study = context.folder.parent.parent
        test = self.images.load(study, "test", context.say)
        if self.kind == "identity":
            return None, {"r2": linear_r2(test.raw_latents, small_pixels(test))}
        if self.walking:
            objective, model = yield from self._walk(self.walking, test, study, context.say)
        else:
            objective, model = self.objective()
            score, sample = partial(scored, model, test), self.batches(study, context.say)
            yield Stage(objective, sample, self.recipe.training, 2 * self.seed, score, "main")
        return objective, scored(model, test)

    def _walk(
        self, walking: Walking, test: ImageSet, study: Path, say: Say
    ) -> Generator[Stage, Scores, tuple[nn.Module, nn.Module]]:
        """Train several starts on narrower pairs, the best one on wide pairs, and then the head."""
        objective, model = self.objective()
        assert isinstance(model, ContrastiveModel)
        if not isinstance(model.encoder, SmallResNet):
            raise InputError(
                'walking must be None unless network is "small": no other has a separate head'
            )
        near, seed = self.narrower(walking.narrower), 2 * self.seed
        sample = near.batches(study, say)
        started, losses = [], []
        for i in range(walking.starts):
            start, network = replace(near, seed=self.seed + 1000 * i).objective()
            trial = partial(loss_on_trial, start, sample, walking.start.batch)
            started.append((start, network))
            stage = Stage(start, sample, walking.start, seed, trial, f"start-{i}", recorded=False)
            losses.append((yield stage)["loss on trial"])
        start, network = started[int(np.argmin(losses))]
        yield Stage(start, sample, walking.narrow, seed, partial(scored, network, test), "narrow")

        assert isinstance(network, ContrastiveModel)
        model.encoder = network.encoder  # the box for wide pairs has different sides
        sample, score = self.batches(study, say), partial(scored, model, test)
        yield Stage(objective, sample, walking.wide, seed, score, "wide")
        yield self._head(walking, model, test, study, say)
        return objective, model

    def _head(
        self, walking: Walking, model: ContrastiveModel, test: ImageSet, study: Path, say: Say
    ) -> Stage:
        """Train only the head, on the features of each image."""
        training, network = walking.head, model.encoder.eval()
        assert isinstance(network, SmallResNet)
        data = self.images.load(study, "train")
        x, x_test = (read(network, network.read, images, say) for images in (data, test))
        positives = self.positives(study)

        def sample(size: int, /, *, generator: torch.Generator) -> Pairs:
            rows, others = draw_rows(positives, size, generator)
            here, there = x[rows], x[others]
            return Pairs(here, there, here, there)

        alone = ContrastiveModel(model.space, model.conditional, network.head, head=model.head)
        # the temperature falls over a fraction of this stage
        heated = replace(self.recipe, tau_start=walking.heat, training=training)
        loss = heated.loss(model.conditional, warm=walking.cooling)

        @torch.no_grad()
        def score() -> Scores:
            return scores(test.raw_latents, alone(x_test).double().numpy())

        return Stage(Contrastive(alone, loss), sample, training, 2 * self.seed + 1, score, "head")

    def batches(self, study: Path, say: Say = silent) -> Sampler:
        """The sampler of training batches."""
        data = self.images.load(study, "train", say)
        if self.kind == "supervised":
            return labelled(data)
        if self.row.conditional is None:
            return augmented(data)
        if self.walking is None:
            return neighbours(make_process(self.images, self.row.conditional), data)
        return walks(data, self.positives(study, say))

    def positives(self, study: Path, say: Say = silent) -> Rows:
        """Positives of each image, drawn once for all runs."""
        name = re.sub(r"[^\w.]+", "-", repr(self.row.conditional)).strip("-")
        path = self.images.home(study) / f"{name}.npy"
        data = self.images.load(study, "train", say)
        with locked(path.with_suffix(".lock")):
            if not path.exists():
                process = make_process(self.images, self.row.conditional)
                tick = _each(say, "pairs of images")
                positives = positives_among(process, data.raw_latents, seed=2, tick=tick)
                with replacing(path) as temporary, temporary.open("wb") as file:
                    np.save(file, positives, allow_pickle=False)
        positives = np.array(map_npy(path))
        if positives.ndim != 2 or len(positives) != len(data):
            raise InputError(f"{path} must hold positives of {len(data)} images: delete it")
        return positives

    def narrower(self, by: float) -> ImageExperiment:
        """The same experiment with narrower pairs."""
        family = type(self.row.conditional)
        assert family in (Normal, Laplace)
        return replace(
            self, row=replace(self.row, conditional=family(by * scale_of(self.row.conditional)))
        )


def scale_of(conditional: Family | None) -> float:
    """The scale of a conditional: the standard deviation of a normal one, λ of a Laplace."""
    if isinstance(conditional, Normal):
        return conditional.std
    if isinstance(conditional, Laplace):
        return conditional.scale
    raise InputError(f"conditional must be Normal or Laplace, got {conditional!r}")


def matched_side(conditional: Family | None) -> float:
    """The side of a box for which a normal model of precision 1 has the width of the conditional."""
    scale = scale_of(conditional)
    return 2 / (scale * 2**0.5) if isinstance(conditional, Normal) else 1 / scale


@torch.no_grad()
def loss_on_trial(objective: nn.Module, sample: Sampler, batch: int) -> Scores:
    """The loss on batches that are the same for all networks."""
    source, device = torch.Generator().manual_seed(TRIAL), device_of(objective)
    batches = (batch_on(device, sample(batch, generator=source)) for _ in range(TRIALS))
    return {"loss on trial": float(torch.stack([objective(each) for each in batches]).mean())}


# --- codes and scores -------------------------------------------------------------------------------


def scored(model: nn.Module, data: ImageSet) -> Scores:
    """The scores of a model on all images of a data set."""
    return scores(data.raw_latents, codes_of(model, data))


def scores(z: NDArray[np.float64], codes: NDArray[np.float64]) -> Scores:
    """R² and MCC of codes N×n of factors N×10, and the R² of each factor."""
    r2 = linear_r2_per_factor(z, codes)
    by_factor = {r2_of(name): float(value) for name, value in zip(FACTORS, r2, strict=True)}
    return {"r2": float(r2.mean()), "mcc": mcc(z, codes), **by_factor}


def r2_of(factor: str) -> str:
    """The name of the score that is the R² of one factor."""
    return f"r2 of {factor}"


def codes_of(model: nn.Module, data: ImageSet) -> NDArray[np.float64]:
    """Codes N×n of all images of a data set."""
    return read(model, model, data).double().numpy()


@torch.no_grad()
def read(
    network: nn.Module, apply: Callable[[Tensor], Tensor], data: ImageSet, say: Say = silent
) -> Tensor:
    """Apply a network, or its method `apply`, to all images of a data set."""
    parts = []
    with placed(network) as device:
        for rows in np.array_split(np.arange(len(data)), -(-len(data) // BATCH)):
            say(f"reading images, {rows[0]} of {len(data)}")
            parts.append(apply(as_images(data.images(rows)).to(device)).cpu())
    return torch.cat(parts)


def small_pixels(data: ImageSet) -> NDArray[np.float64]:
    """All images downsampled to 16×16, N×768, as features for a linear map."""
    blocks = data.size // min(16, data.size)
    parts = []
    for start in range(0, len(data), BATCH):
        x = as_images(data.images(np.arange(start, min(start + BATCH, len(data))))).float()
        parts.append(nn.functional.avg_pool2d(x, blocks).flatten(1))
    return torch.cat(parts).double().numpy()
