"""Small data and short fits of the estimator."""

from identica import MLP, Box, GenerativeProcess, InvertibleMLP, Laplace, Uniform

TINY = {"steps": 3, "batch": 16}
SMALL = MLP(2, 2, hidden=(64, 64))


def pairs(size=2000, seed=0):
    g = InvertibleMLP(2, seed=3, draws=50)
    process = GenerativeProcess(Box(2), Uniform(), Laplace(0.05), g)
    return process.sample(size, generator=seed)
