"""Randomness is an argument: a `torch.Generator`, or a seed to make one from."""

from __future__ import annotations

import torch

from identica._check import InputError

Device = torch.device | str


def as_generator(generator: torch.Generator | int, device: Device = "cpu") -> torch.Generator:
    """The generator itself, or a new one on `device` started at the given seed.

    >>> a, b = as_generator(7), as_generator(7)
    >>> bool((torch.randn(3, generator=a) == torch.randn(3, generator=b)).all())
    True
    """
    if isinstance(generator, torch.Generator):
        return generator
    if isinstance(generator, bool) or not isinstance(generator, int) or generator < 0:
        raise InputError(
            f"generator must be a torch.Generator or a seed (whole number of at least 0), "
            f"got {generator!r}"
        )
    return torch.Generator(device).manual_seed(generator)
