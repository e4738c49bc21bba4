"""Prints a checksum of what each compiled function computes, as a program of its own."""

import hashlib

import numpy as np
import torch

from identica.datasets import threedident
from identica.families import Family, Laplace, VonMisesFisher
from identica.losses import InfoNCE
from identica.spaces import Box, Space, Sphere


def checksum(*values):
    return hashlib.sha256(b"".join(np.ascontiguousarray(v).tobytes() for v in values)).hexdigest()


def loss(family):
    generator = torch.Generator().manual_seed(0)
    h, h_pos = torch.rand(2, 100, 3, generator=generator).requires_grad_()
    value = InfoNCE(family)(h, h_pos)
    return checksum(value.detach(), *torch.autograd.grad(value, (h, h_pos)))


def draws(family, space):
    generator = torch.Generator().manual_seed(0)
    return checksum(
        family.sample(space, space.sample(500, generator=generator), generator=generator)
    )


def image():
    latents = np.random.default_rng(0).uniform(-1, 1, (1, 10))
    return checksum(threedident.render(latents, size=16, samples=4))


def main():
    torch.set_num_threads(1)
    compared: list[Family] = [VonMisesFisher(1.0), Laplace(1.0)]
    for family in compared:
        print(family, loss(family))
    drawn: list[tuple[Family, Space]] = [
        (VonMisesFisher(3.0), Sphere(3)),
        (Laplace(0.1), Sphere(3)),
        (Laplace(0.1), Box(3)),
    ]
    for family, space in drawn:
        print(family, space, draws(family, space))
    print("image", image())


if __name__ == "__main__":
    main()
