"""A small process and its model, to be trained in a second."""

import torch

from identica import (
    MLP,
    Contrastive,
    ContrastiveModel,
    GenerativeProcess,
    InfoNCE,
    InvertibleMLP,
    Sphere,
    Uniform,
    VonMisesFisher,
)
from identica.metrics import linear_r2


def setup(seed=0):
    g = InvertibleMLP(3, seed=0, draws=2000)
    process = GenerativeProcess(Sphere(3), Uniform(), VonMisesFisher(20.0), g)
    model = ContrastiveModel(Sphere(3), VonMisesFisher(1.0), MLP(3, 3, hidden=(64, 64), seed=seed))
    return process, model, Contrastive(model, InfoNCE(model.conditional, symmetric=True))


def score(process, model):
    held_out = process.sample(1000, generator=99)

    def r2():
        with torch.no_grad():
            return {"r2": linear_r2(held_out.z, model(held_out.x))}

    return r2
