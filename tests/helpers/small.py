"""A small process and its model, to be trained in a second."""

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


def setup(seed=0):
    g = InvertibleMLP(3, seed=0, draws=2000)
    process = GenerativeProcess(Sphere(3), Uniform(), VonMisesFisher(20.0), g)
    model = ContrastiveModel(Sphere(3), VonMisesFisher(1.0), MLP(3, 3, hidden=(64, 64), seed=seed))
    return process, model, Contrastive(model, InfoNCE(model.conditional, symmetric=True))
