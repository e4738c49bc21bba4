"""Calls of plots and data sets that work; see _base_calls.py."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import torch
from matplotlib.figure import Figure
from PIL import Image

import identica as ii
from identica import plots
from identica.datasets import (
    dsprites,
    images,
    kitti_masks,
    natural_sprites,
    neurons,
    recordings,
    threedident,
)
from identica.datasets.kitti_masks import KittiMasks
from identica.datasets.threedident import pairs as teapots
from identica.datasets.threedident import storage


class Base(NamedTuple):
    """A call that works: its name, what is called, and its arguments."""

    name: str
    call: Callable[..., Any]
    arguments: dict[str, Any]


def data_bases(folder: Path) -> Iterator[Base]:
    """Calls of plots and data sets."""
    yield from _plots()
    yield from _sprites(folder)
    yield from _recordings(folder)
    yield from _images(folder)
    yield from _masks(folder)
    yield from _teapots(folder)


def _drawn(plot: Callable[..., Any], **arguments: Any) -> Any:
    """A plot on a canvas, as problems may show only then."""
    try:
        found = plot(**arguments)
        np.ravel(found)[0].figure.canvas.draw()
        return found
    finally:
        plt.close("all")


def _plots() -> Iterator[Base]:
    z = np.random.default_rng(0).normal(size=(60, 3))
    records = [{"step": 1, "loss": 2.0, "bits": 0.5}, {"step": 2, "loss": 1.0, "bits": 0.7}]
    curve = {"source": records, "score": "bits", "on": "pairs", "published": 0.6}
    for plot, arguments in (
        (plots.codes, {"h": z, "label": z[:, 0], "name": "x", "cyclic": False, "dims": 2}),
        (plots.recovered, {"z": z[:, 0], "h": z, "up_to": "linear", "names": ["x"], "label": "y"}),
        (plots.density, {"h": z[:, 0], "names": ["x"]}),
        (plots.correlations, {"z": z, "h": z}),
        (plots.restarts, {"source": [z, z], "up_to": "linear"}),
        (plots.history, curve),
        (plots.evidence, {"source": {1: 0.5, 2: 0.9}, "choice": "window"}),
    ):
        name, call = f"plots.{plot.__name__}", partial(_drawn, plot)
        yield Base(name, call, {**arguments, "ax": Figure().subplots()})
    # with new figures, and several of what there was one of
    several = {"first": records, "second": [{"step": 1, "r2": 0.5}, {"step": 2, "r2": 0.9}]}
    for plot, arguments in (
        (plots.codes, {"h": z, "label": ["a", "b"] * 30, "dims": 3}),
        (plots.codes, {"h": z[:, 0], "label": np.linspace(-180, 180, 60), "cyclic": True}),
        (plots.recovered, {"z": z, "h": z, "up_to": None, "names": ["x", "y", "z"]}),
        (plots.density, {"h": z, "names": ["x", "y", "z"]}),
        (plots.history, {"source": {"r2": several["second"]}, "score": "r2", "on": "rows"}),
    ):
        yield Base(f"plots.{plot.__name__}, more", partial(_drawn, plot), arguments)
    for key in ("step", "loss", "bits"):
        call = lambda value, key=key: _drawn(  # noqa: E731
            plots.history, source=[{**records[0], key: value}, records[1]]
        )
        yield Base(f"plots.history, {key}", call, {"value": records[0][key]})
    for part, call in (
        ("bits", lambda value: _drawn(plots.evidence, source={1: value, 2: 0.5})),
        ("fit", lambda value: _drawn(plots.restarts, source=[z, value])),
        ("name", lambda value: _drawn(plots.density, h=z, names=["x", "y", value])),
    ):
        right = {"bits": 0.4, "fit": z, "name": "z"}[part]
        yield Base(f"plots, {part}", call, {"value": right})


def _sprites(folder: Path) -> Iterator[Base]:
    some = {"n": 2, "rng": 0}
    for drawn in (dsprites.sample, dsprites.pairs_uni, dsprites.pairs_lap):
        yield Base(f"dsprites.{drawn.__name__}", drawn, some)
    classes = np.zeros((1, 5), int)
    yield Base("dsprites.render", dsprites.render, {"latents_classes": classes})
    yield Base("dsprites.index_of", dsprites.index_of, {"latents_classes": classes})
    yield Base("dsprites.classes_of", dsprites.classes_of, {"index": [0, 1]})
    yield Base("dsprites.unpack", dsprites.unpack, {"packed": np.zeros((1, 512), np.uint8)})
    yield Base(
        "natural_sprites.render", natural_sprites.render, {"factors": [[0.5, 0.5, 0.25, 0, 0]]}
    )


def _images(folder: Path) -> Iterator[Base]:
    pictures = folder / "pictures"
    pictures.mkdir(exist_ok=True)
    Image.fromarray(np.zeros((4, 4), np.uint8)).save(pictures / "1.png")
    yield Base("images.load", images.load, {"folder": pictures})


def _recordings(folder: Path) -> Iterator[Base]:
    spikes = {"rows": 50, "rate": 0.25, "seed": 0}
    yield Base("neurons.place_cells", neurons.place_cells, spikes)
    turning = {**spikes, "uneven": True}
    yield Base("neurons.head_direction_cells", neurons.head_direction_cells, turning)
    counts, track = np.ones((5, 2), int), np.linspace(0, 1, 5)
    recording = {
        "name": "x",
        "counts": counts,
        "label": track,
        "bin": 0.1,
        "direction": np.zeros(5, int),
    }
    yield Base("Recording", recordings.Recording, recording)
    for part in recording:
        if part != "name":
            call = lambda value, part=part: recordings.check(  # noqa: E731
                recordings.Recording(**recording | {part: value})
            )
            yield Base(f"recordings.check, {part}", call, {"value": recording[part]})
    np.savez(folder / "rat.npz", counts=counts, position=track, direction=np.zeros(5, int))
    rat = {"name": "achilles", "path": folder / "rat.npz"}
    yield Base("recordings.load", recordings.load, rat)


def _masks(folder: Path) -> Iterator[Base]:
    parts = {
        "masks_packed": np.zeros((5, 512), np.uint8),
        "latents": np.zeros((5, 3), np.float32),
        "seq_lengths": np.array([2, 3], np.int32),
        "source": np.array(["", ""]),
        "video": np.array(["", ""]),
        "window": np.array([-1, -1], np.int8),
        "track_id": np.array([-1, -1], np.int32),
    }
    yield Base("KittiMasks", KittiMasks, parts)
    masks = KittiMasks(**parts)
    masks.save(folder / "masks.npz")
    yield Base("kitti_masks.load", kitti_masks.load, {"path": folder / "masks.npz"})
    yield Base("KittiMasks.save", masks.save, {"path": folder / "masks.npz"})
    yield Base("KittiMasks.pairs", masks.pairs, {"max_lag": 1, "n": 2, "rng": 0})
    yield Base("KittiMasks.frames", masks.frames, {"indices": [0, 1]})
    shown = {"data": masks, "rows": 2, "columns": 2}
    yield Base("kitti_masks.picture", kitti_masks.picture, shown)
    (folder / "tracks").mkdir(exist_ok=True)
    yield Base("kitti_masks.check", kitti_masks.check, {"data": masks})
    sprites = natural_sprites.from_kitti(moving(), discrete=True)
    driven = {"masks": moving(), "discrete": False}
    yield Base("natural_sprites.from_kitti", natural_sprites.from_kitti, driven)
    for drawn in (sprites.pairs, sprites.sample):
        yield Base(f"NaturalSprites.{drawn.__name__}", drawn, {"n": 2, "rng": 0})
    yield Base("NaturalSprites.images", sprites.images, {"factors": np.zeros((1, 5), int)})


def moving() -> KittiMasks:
    """Sequences of masks, with factors that change."""
    rng = np.random.default_rng(0)
    latents = np.c_[rng.uniform(10, 50, (40, 2)), rng.uniform(100, 900, 40)].astype(np.float32)
    names = np.array([""] * 4)
    return KittiMasks(
        np.zeros((40, 512), np.uint8),
        latents,
        np.full(4, 10, np.int32),
        names,
        names,
        np.full(4, -1, np.int8),
        np.full(4, -1, np.int32),
    )


def _teapots(folder: Path) -> Iterator[Base]:
    raw = np.zeros((2, 10))
    yield Base("threedident.place", threedident.place, {"raw_latents": raw})
    yield Base("threedident.latents", threedident.latents, {"x": 0.0, "y": [0.0, 0.1]})
    scene = {"raw_latents": raw, "size": 4, "samples": 1}
    yield Base("threedident.render", threedident.render, scene)
    built = {"folder": folder / "teapots", "raw_latents": raw, "draw": threedident.render}
    options = {"size": 16, "packed": True, "settings": {"samples": 8}, "step": 1, "tick": None}
    yield Base("storage.build", storage.build, {**built, **options})
    data = storage.build(folder / "few", raw, threedident.render, size=16)
    yield Base("ImageSet", storage.ImageSet, {"folder": folder / "few"})
    yield Base("ImageSet.images", data.images, {"rows": [0, 1]})
    one = {"size": 16, "samples": 1, "factors": ["x", "y"]}
    yield Base("Renderer", teapots.Renderer, one)
    yield Base("Renderer()", teapots.Renderer(16, 1), {"z": torch.zeros(1, 10)})
    process = ii.GenerativeProcess(
        ii.Box(10, -1, 1), ii.Uniform(), ii.Normal(0.2), teapots.Renderer(16, 1)
    )
    yield Base("neighbours", teapots.neighbours, {"process": process, "data": data})
    for make in (teapots.labelled, teapots.augmented):
        yield Base(make.__name__, make, {"data": data})
