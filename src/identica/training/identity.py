"""What identifies a training run, so that a folder never gives one run the weights of another.

Hashes would do on a single machine. On another, the same seed may give numbers that differ by rounding, so
tensors are compared by sketches: a few numbers that rounding changes little, and any other change a lot.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import NoneType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from identica.families import Family
from identica.spaces import Space

ROUNDING = 1e-3  # by which sketches may differ, as a fraction of the norm
PLAIN = (bool, int, float, str, tuple, NoneType, Space, Family)
LOOKED_AT = 1 << 16  # entries of a tensor that its sketch depends on


def identify(
    settings: Sequence[Any], seed: Any, objective: nn.Module, first: Any
) -> dict[str, Any]:
    """The identity of a run as plain data: its settings, its objective before training, and its
    first batch, which stands for the sampler and the data behind it."""
    state = {name: sketch(value) for name, value in objective.named_parameters()}
    # only the norm of buffers: they may hold eigenvectors, whose signs depend on the machine
    state |= {name: sketch(value)[:1] for name, value in objective.named_buffers()}
    parts = first if isinstance(first, (tuple, list)) else [first]
    return {
        "training": [None if part is None else dict(vars(part)) for part in settings],
        "seed": seed if isinstance(seed, int) else None,
        "objective": structure(objective),
        "initial state": state,
        "first batch": {str(k): sketch(x) for k, x in enumerate(parts) if isinstance(x, Tensor)},
    }


def differences(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Names of what differs between two identities by more than rounding."""
    sketched = "initial state", "first batch"
    return [
        name
        for name, found in other.items()
        if not (_alike(one.get(name), found) if name in sketched else one.get(name) == found)
    ]


def structure(module: nn.Module) -> dict[str, str]:
    """All parts of a module, by name, as `describe` has them."""
    return {name or ".": describe(part) for name, part in module.named_modules()}


def describe(module: nn.Module) -> str:
    """A module without its parts and tensors: its class and the options it keeps as attributes.

    >>> describe(nn.Dropout(0.5))
    'Dropout(p=0.5, inplace=False)'
    """
    options = ", ".join(
        f"{name}={value!r}"
        for name, value in vars(module).items()
        if isinstance(value, PLAIN) and name != "training" and not name.startswith("_")
    )
    return f"{type(module).__qualname__}({options})"


def sketch(tensor: Tensor) -> list[float]:
    """The norm of a tensor and its products with two fixed directions.

    >>> sketch(torch.tensor([3.0, 4.0]))[0]
    5.0
    """
    flat = tensor.detach().flatten()
    step = len(flat) // LOOKED_AT | 1  # odd, so as not to stay in one column
    values = flat[::step].to("cpu", torch.float64)
    places = torch.arange(len(values), dtype=torch.float64)
    return [float(x) for x in (values.norm(), values @ places.cos(), values @ (2 * places).sin())]


def _alike(one: Any, other: Mapping[str, list[float]]) -> bool:
    """Whether sketches of the same names differ by rounding only."""
    if not isinstance(one, dict) or one.keys() != other.keys():
        return False

    def close(a: list[float], b: list[float]) -> bool:
        # where a tensor holds infinities, as masks do, nothing is rounded
        allowed = ROUNDING * b[0] if math.isfinite(b[0]) else 0.0
        return len(a) == len(b) and np.allclose(a, b, rtol=0, atol=allowed, equal_nan=True)

    return all(close(one[name], other[name]) for name in other)
