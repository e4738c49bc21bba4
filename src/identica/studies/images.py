"""What studies of images share: autoencoders, the codes of many images, and pictures of what codes mean."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from identica.baselines import VAE, AdaGVAE, BetaVAE, SlowVAE
from identica.training.devices import device_of

CODES = 10

# the autoencoders, and the terms of their objectives as published
VAES: dict[str, type[VAE]] = {"β-VAE": BetaVAE, "SlowVAE": SlowVAE, "Ada-GVAE": AdaGVAE}
TERMS: dict[str, dict[str, float]] = {
    "β-VAE": {"beta": 8.0},
    "SlowVAE": {"beta": 1.0, "gamma": 10.0, "rate": 6.0, "entropy": 0.5},
    "Ada-GVAE": {"beta": 1.0},
}


@torch.no_grad()
def codes_of(model: nn.Module, images: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Codes N×n of images N×64×64, a thousand at a time."""
    encode, device = model.codes if isinstance(model, VAE) else model, device_of(model)
    parts = [encode(part.to(device)).cpu() for part in torch.from_numpy(images).split(1000)]
    return torch.cat(parts).double().numpy()


def walks(
    codes: NDArray[np.float64], columns: NDArray[np.intp], stops: int = 9
) -> NDArray[np.intp]:
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
def traversals(
    vae: VAE, codes: NDArray[np.float64], columns: NDArray[np.intp], stops: int = 9
) -> NDArray[np.uint8]:
    """What a decoder draws as one code alone moves through its quantiles, around a typical sample.

    Gives grey images of 0…255, len(columns)×stops×64×64.
    """
    _, places = moved(codes, columns, stops)
    drawn = vae.decoder(torch.from_numpy(places).float().flatten(0, 1)).sigmoid()
    return (255 * drawn).round().byte().reshape(len(columns), stops, 64, 64).numpy()


def moved(
    codes: NDArray[np.float64], columns: NDArray[np.intp], stops: int = 9
) -> tuple[int, NDArray[np.float64]]:
    """A typical sample, and its codes with one column at a time at its quantiles,
    len(columns)×stops×n."""
    start = int(np.abs(codes - np.median(codes, axis=0)).sum(axis=1).argmin())
    levels = np.quantile(codes[:, columns], np.linspace(0.02, 0.98, stops), axis=0)
    places = np.tile(codes[start], (len(columns), stops, 1))
    for place, column, values in zip(places, columns, levels.T, strict=True):
        place[:, column] = values
    return start, places
