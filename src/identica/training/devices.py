"""Device placement: convolutional networks train on a GPU if there is one, all others on the CPU."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from tempfile import gettempdir
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from identica import distributed
from identica._io import first_free
from identica._random import as_generator

if TYPE_CHECKING:
    from identica.training.loop import Sampler

CPU = torch.device("cpu")
_held: ContextVar[torch.device | None] = ContextVar("_held", default=None)  # the GPU of this run


@contextmanager
def placed(network: nn.Module) -> Iterator[torch.device]:
    """Move a network to the device on which it trains best, and back at the end; yields the device."""
    before = device_of(network)
    with device_for(network) as device:
        network.to(device)
        try:
            yield device
        finally:
            network.to(before)


@contextmanager
def device_for(network: nn.Module) -> Iterator[torch.device]:
    """The device for a network.

    Parallel runs get one GPU each, and wait until one is free; everything within a run uses the same one.
    The processes of a group get theirs from torchrun.
    """
    available = gpus() if any(isinstance(part, nn.Conv2d) for part in network.modules()) else []
    if not available:
        yield CPU
    elif distributed.group()[1] > 1:
        yield torch.device("cuda", torch.cuda.current_device())
    elif (held := _held.get()) is not None:
        yield held
    else:
        home = Path(gettempdir())
        with first_free(
            [home / f"identica-{os.getuid()}-{name}.lock" for name in available]
        ) as number:
            device = torch.device("cuda", number)
            before = _held.set(device)
            try:
                yield device
            finally:
                _held.reset(before)


def gpus() -> list[str]:
    """Unique names of this machine's GPUs."""
    number = torch.cuda.device_count() if torch.cuda.is_available() else 0
    return [str(torch.cuda.get_device_properties(n).uuid) for n in range(number)]


def moved(sample: Sampler, device: torch.device) -> Sampler:
    """The same sampler with its batches on a device. Batches are drawn on the CPU."""
    if device == CPU:
        return sample

    def draw(size: int, /, *, generator: torch.Generator) -> Any:
        seed = torch.randint(2**62, (), generator=generator, device=generator.device)
        return batch_on(device, sample(size, generator=as_generator(int(seed))))

    return draw


def batch_on(device: torch.device, batch: Any) -> Any:
    """The same batch, a named tuple of tensors, on a device."""
    return type(batch)(*(part.to(device) for part in batch))


def device_of(network: nn.Module) -> torch.device:
    """The device of a network's parameters."""
    return next((p.device for p in network.parameters()), CPU)
