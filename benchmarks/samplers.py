"""Samplers against drawing the same number of standard normals."""

from __future__ import annotations

from functools import partial

import torch

from benchmarks._measure import seconds
from identica import (
    Box,
    Euclidean,
    GeneralizedNormal,
    Laplace,
    Normal,
    Sphere,
    Uniform,
    VonMisesFisher,
)

SIZE, DIM = 6144, 10
COORDINATEWISE = [Normal(0.05), Laplace(0.05), GeneralizedNormal(3.0, 0.05)]
PAIRS = [
    (Sphere(DIM), Uniform()),
    (Sphere(DIM), VonMisesFisher(1.0)),
    (Sphere(DIM), VonMisesFisher(10.0)),
    (Box(DIM), Uniform()),
    *(
        (space, family)
        for space in (Sphere(DIM), Box(DIM), Euclidean(DIM))
        for family in COORDINATEWISE
    ),
]


def measure() -> list[dict[str, object]]:
    """A record for each (space, family): time as a multiple of the normals'."""
    generator = torch.Generator().manual_seed(0)
    torch.set_num_threads(1)  # as normals are drawn, whatever the number
    records = []
    for space, family in PAIRS:
        if isinstance(space, Euclidean):
            centre = torch.zeros(SIZE, DIM)
        else:
            centre = space.sample(SIZE, generator=generator)
        normals = seconds(lambda: torch.randn(SIZE, DIM, generator=generator), repeat=50)
        draw = partial(family._sample, space, centre, generator)
        draws = seconds(draw, repeat=50, warm_up=2)
        records.append(
            {"space": str(space), "family": str(family), "times_normals": round(draws / normals, 2)}
        )
    return records
