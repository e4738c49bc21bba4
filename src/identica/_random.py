"""Randomness is an argument: a `torch.Generator`, or a seed to make one from."""

from __future__ import annotations

import torch

from identica._tensors import Device, as_device
from identica.errors import InputError

__all__ = ["Device", "as_generator"]


def as_generator(generator: torch.Generator | int, device: Device = "cpu") -> torch.Generator:
    """The generator itself, or a new one on `device` started at the given seed.

    >>> a, b = as_generator(7), as_generator(7)
    >>> bool((torch.randn(3, generator=a) == torch.randn(3, generator=b)).all())
    True
    """
    if isinstance(generator, torch.Generator):
        return generator
    if type(generator) is not int or not 0 <= generator < 2**64:
        raise InputError(
            f"generator must be a torch.Generator or a seed (whole number of at least 0 and below 2⁶⁴), "
            f"got {generator!r}"
        )
    return torch.Generator(as_device("device", device)).manual_seed(generator)
