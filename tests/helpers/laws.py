"""One list of every (space, family), through which the laws of the tests go."""

from __future__ import annotations

from identica import (
    Box,
    Euclidean,
    GeneralizedNormal,
    Joint,
    Laplace,
    Normal,
    Product,
    Sphere,
    Uniform,
    VonMisesFisher,
)

SPACES = [
    Sphere(2),
    Sphere(3),
    Sphere(10, radius=2.5),
    Box(1),
    Box(3, low=-2.0, high=0.5),
    Box(2, low=(0.0, -3.0), high=(1.0, 7.0)),
    Euclidean(1),
    Euclidean(4),
    Product(Sphere(3, radius=0.5), Box(2), Euclidean(1)),
]

COORDINATEWISE = [
    Normal(0.05),
    Normal(0.7),
    Laplace(0.05),
    Laplace(3.0),
    GeneralizedNormal(3.0, 0.05),
    GeneralizedNormal(0.7, 0.3),
    GeneralizedNormal(1.5, 1.2),
]

PAIRS = [
    *((space, family) for space in SPACES[:8] for family in COORDINATEWISE),
    *((space, Uniform()) for space in SPACES[:6]),
    *((space, VonMisesFisher(k)) for space in SPACES[:3] for k in (0.0, 1.0, 10.0, 500.0)),
    (Product(Sphere(3), Box(2)), Uniform()),
    (
        Product(Sphere(3, radius=2.0), Box(2), Euclidean(1)),
        Joint((VonMisesFisher(10.0), 3), (Laplace(0.1), 2), (Normal(2.0), 1)),
    ),
]
IDS = [f"{space}-{family}" for space, family in PAIRS]
