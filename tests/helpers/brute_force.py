"""InfoNCE by loops over plain floats, and families and codes to compare it on."""

import itertools
import math

import numpy as np
import torch

from identica import GeneralizedNormal, Joint, Laplace, Normal, VonMisesFisher

FAMILIES = [
    VonMisesFisher(2.0),
    Normal(0.8),
    Laplace(0.7),
    GeneralizedNormal(3.0, 0.9),
    GeneralizedNormal(0.6),
    Joint((VonMisesFisher(1.5), 2), (Laplace(1.0), 1)),
]


def codes(n=7, d=3, dtype=torch.float64):
    generator = torch.Generator().manual_seed(3)
    h = torch.randn(n, d, generator=generator, dtype=dtype)
    return h, h + 0.3 * torch.randn(n, d, generator=generator, dtype=dtype)


def similarity(family, a, b):
    """The similarity from its definition, coordinate by coordinate."""
    match family:
        case VonMisesFisher(kappa):
            return kappa * float(np.dot(a, b))
        case Normal(std):
            return -sum((x - y) ** 2 for x, y in zip(a, b, strict=True)) / (2 * std**2)
        case Laplace(scale):
            return -sum(abs(x - y) for x, y in zip(a, b, strict=True)) / scale
        case GeneralizedNormal(shape, scale):
            return -sum(abs((x - y) / scale) ** shape for x, y in zip(a, b, strict=True))
        case Joint(parts):
            total, start = 0.0, 0
            for part, n in parts:
                total += similarity(part, a[start : start + n], b[start : start + n])
                start += n
            return total


def potential(codes):
    """Two functions of a code, for the two directions."""
    return torch.stack([codes.sin().sum(-1), 2 - codes.square().sum(-1)], -1)


def brute_force(
    h,
    h_pos,
    family,
    tau,
    self_negative,
    negatives,
    in_denominator,
    symmetric,
    source="anchors",
    b=lambda code: 0.0,
    b_reversed=None,
):
    """InfoNCE by loops over plain floats."""
    if symmetric:
        args = (family, tau, self_negative, negatives, in_denominator, False, source)
        back = brute_force(h_pos, h, *args, b_reversed or b)
        return (brute_force(h, h_pos, *args, b) + back) / 2
    h, h_pos = np.asarray(h), np.asarray(h_pos)
    others = h if source == "anchors" else h_pos
    size, losses = len(h), []
    for i in range(size):
        pos = similarity(family, h[i], h_pos[i]) / tau + b(h_pos[i])
        offsets = list(range(0 if self_negative else 1, size))[:negatives]
        keys = [others[(i + o) % size] for o in offsets]
        total = sum(math.exp(similarity(family, h[i], key) / tau + b(key)) for key in keys)
        losses.append(math.log(total + (math.exp(pos) if in_denominator else 0)) - pos)
    return sum(losses) / size


OPTIONS = list(itertools.product([True, False], [None, 1, 4], [True, False], [True, False]))
