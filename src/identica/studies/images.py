"""Shared code of the image studies: training methods, encoding of many images, and plots of the codes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from identica.baselines import NETWORKS, VAE, AdaGVAE, BetaVAE, SlowVAE
from identica.datasets.pictures import tile
from identica.encoders import ContrastiveModel
from identica.losses import AlignUniform
from identica.metrics import match
from identica.plots.points import rescaled
from identica.process import Pairs
from identica.recipes import Recipe
from identica.studies.published import L1, N1, KittiRow, SpriteRow
from identica.studies.study import Picture
from identica.training import Contrastive, Sampler
from identica.training.devices import device_of

Matrix = NDArray[np.float64]
Rows = NDArray[np.intp]

CODES = 10
SHOWN = 3_000  # images used for a plot

# the autoencoders, and the terms of their objectives as published
VAES: dict[str, Any] = {"β-VAE": BetaVAE, "SlowVAE": SlowVAE, "Ada-GVAE": AdaGVAE}
TERMS: dict[str, dict[str, float]] = {
    "β-VAE": {"beta": 8.0},
    "SlowVAE": {"beta": 1.0, "gamma": 10.0, "rate": 6.0, "entropy": 0.5},
    "Ada-GVAE": {"beta": 1.0},
}


def method_objective(
    row: KittiRow | SpriteRow,
    recipe: Recipe,
    seed: int,
    *,
    network: str = "conv",
    white: int = 1,
    anneal: tuple[float, int] | None = None,
) -> tuple[nn.Module, nn.Module]:
    """The objective of a method, and the part of it that computes codes.

    Args:
        network: see `NETWORKS`; contrastive models have the encoder of the autoencoders.
        white: the largest value of a pixel.
        anneal: see `AlignUniform`.
    """
    if row.method in VAES:
        options = {"scale": float(white), "network": network, **TERMS[row.method]}
        vae = VAES[row.method](CODES, seed=seed, **options)
        return vae, vae
    assert row.space is not None
    family, (make_encoder, _) = L1 if row.p == 1 else N1, NETWORKS[network]
    encoder = make_encoder(CODES, channels=1, scale=float(white), seed=seed)
    model = ContrastiveModel(row.space, family, encoder, head=recipe.head(row.space))
    # the anchor counts among its own negatives, as published: that fixes the scale of the codes
    loss: nn.Module = recipe.loss(family)
    if row.method == "L_AU":
        loss = AlignUniform(row.alpha, row.p, self_negative=True, anneal=anneal)
    return Contrastive(model, loss), model


def pair_sampler(
    pairs: Callable[[int, int], tuple[NDArray[Any], NDArray[Any]]],
    images: Callable[[NDArray[Any]], NDArray[np.uint8]],
    factors: Callable[[NDArray[Any]], NDArray[Any]] = lambda chosen: chosen,
) -> Sampler:
    """A sampler that draws `pairs` and returns their images and factors."""

    def sample(size: int, /, *, generator: torch.Generator) -> Pairs:
        drawn = pairs(size, int(torch.randint(2**62, (), generator=generator)))
        x, x_pos = (torch.from_numpy(images(chosen)) for chosen in drawn)
        z, z_pos = (torch.from_numpy(factors(chosen)) for chosen in drawn)
        return Pairs(z, z_pos, x, x_pos)

    return sample


def meaning(
    z: Matrix,
    codes: Matrix,
    names: Sequence[str],
    images: Callable[[Rows], NDArray[np.uint8]],
    which: str,
    vae: VAE | None = None,
) -> list[Picture]:
    """Plot each factor (N×d) against the code (N×n) matched to it, and how images change with a single
    code: `images` returns those of given rows; an autoencoder decodes its codes instead."""
    from identica.report import plots

    columns = match(z, codes, "spearman").columns
    aligned = rescaled(z, codes[:, columns])
    figure = plots.true_against_recovered(z, aligned, names=names)
    scatter = Picture(f"True factors against their codes, {which}", plots.inline(figure, dpi=80))
    if vae is None:
        chosen, labels = walks(codes, columns), list(names)
        drawn = images(chosen.ravel()).reshape(*chosen.shape, 64, 64)
        caption = (
            "An image (left), and the images nearest to it in the codes as the code of one factor "
            "moves through its quantiles"
        )
    else:
        factor, every = dict(zip(columns.tolist(), names, strict=True)), np.arange(codes.shape[1])
        drawn = traversals(vae, codes, every)
        labels = [f"code {k + 1}" + (f": {factor[k]}" if k in factor else "") for k in every]
        caption = (
            "What the decoder renders as one code moves through its quantiles, named after the "
            "factor that it is matched to"
        )
    figure = plots.sheet(tile(drawn), labels)
    return [scatter, Picture(f"{caption}, {which}", plots.inline(figure, dpi=80))]


@torch.no_grad()
def codes_of(model: nn.Module, images: NDArray[np.uint8]) -> Matrix:
    """Codes N×n of images N×64×64, a thousand at a time."""
    encode, device = model.codes if isinstance(model, VAE) else model, device_of(model)
    parts = [encode(part.to(device)).cpu() for part in torch.from_numpy(images).split(1000)]
    return torch.cat(parts).double().numpy()


def walks(codes: Matrix, columns: Rows, stops: int = 9) -> Rows:
    """For each of the columns, a typical sample and then those nearest to it in the codes as that
    column alone moves through its quantiles, len(columns)×(1 + stops).

    >>> walks(np.array([[0.0, 5.0], [1.0, 5.1], [2.0, 4.9], [1.0, 9.0]]), np.array([0]), stops=3)
    array([[1, 0, 1, 2]])
    """
    start, places = moved(codes, columns, stops)
    rows = []
    for wanted in places:
        away = ((wanted[:, None] - codes[None]) ** 2).sum(axis=2)
        rows.append([start, *away.argmin(axis=1)])
    return np.array(rows)


@torch.no_grad()
def traversals(vae: VAE, codes: Matrix, columns: Rows, stops: int = 9) -> NDArray[np.uint8]:
    """Decode a typical sample while one code at a time moves through its quantiles.

    Returns grey images of 0…255, len(columns)×stops×64×64.
    """
    _, places = moved(codes, columns, stops)
    drawn = vae.decoder(torch.from_numpy(places).float().flatten(0, 1)).sigmoid()
    return (255 * drawn).round().byte().reshape(len(columns), stops, 64, 64).numpy()


def moved(codes: Matrix, columns: Rows, stops: int = 9) -> tuple[int, Matrix]:
    """A typical sample, and its codes with one column at a time at its quantiles,
    len(columns)×stops×n."""
    start = int(np.abs(codes - np.median(codes, axis=0)).sum(axis=1).argmin())
    levels = np.quantile(codes[:, columns], np.linspace(0.02, 0.98, stops), axis=0)
    places = np.tile(codes[start], (len(columns), stops, 1))
    for place, column, values in zip(places, columns, levels.T, strict=True):
        place[:, column] = values
    return start, places
