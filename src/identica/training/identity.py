"""Identity of a training run, by which a folder never gives one run the weights of another.

On a single machine, hashes would suffice. On different machines, the same seed may give numbers that differ
by rounding, so tensors are compared by sketches: a few numbers that are robust to rounding but sensitive to
any other change.
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

ROUNDING = 1e-3  # tolerance for sketches, relative to the norm
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
    """Names of the entries in which two identities differ by more than rounding."""
    sketched = "initial state", "first batch"
    return [
        name
        for name, found in other.items()
        if not (_alike(one.get(name), found) if name in sketched else one.get(name) == found)
    ]


def structure(module: nn.Module) -> dict[str, str]:
    """Descriptions of all submodules, by name."""
    return {name or ".": describe(part) for name, part in module.named_modules()}


def describe(module: nn.Module) -> str:
    """Describe a module without submodules and tensors: its class and its plain attributes.

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
        # tensors with infinities, such as masks, are not subject to rounding
        allowed = ROUNDING * b[0] if math.isfinite(b[0]) else 0.0
        return len(a) == len(b) and np.allclose(a, b, rtol=0, atol=allowed, equal_nan=True)

    return all(close(one[name], other[name]) for name in other)
