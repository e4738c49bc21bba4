"""Validation of tensors, data types and devices passed as arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from identica._validate import kind_of
from identica.errors import InputError

Device = torch.device | str

Convert = Callable[[Tensor], Tensor]

FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def floats(name: str, value: Any, *, meta: bool = False) -> Tensor:
    """A tensor of floats; with `meta`, it may be one without values, on the meta device."""
    known = isinstance(value, Tensor) and value.dtype in FLOATS
    if not known or (value.is_meta and not meta):
        raise InputError(f"{name} must be a tensor of floats, got {kind_of(value)}")
    return value


def points(name: str, value: Any, columns: int, *, meta: bool = False) -> Tensor:
    """A …×n tensor of floats; with `meta`, it may be one without values."""
    if floats(name, value, meta=meta).shape[-1:] != (columns,):
        raise InputError(f"{name} must have {columns} columns, got shape {tuple(value.shape)}")
    return value


def float_type(name: str, value: Any) -> torch.dtype:
    """A data type of floats."""
    if not isinstance(value, torch.dtype) or value not in FLOATS:
        raise InputError(
            f"{name} must be a data type of floats such as torch.float32, got {value!r}"
        )
    return value


def as_device(name: str, value: Any) -> torch.device:
    """A device that is available."""
    try:
        device = torch.device(value)
        torch.empty(0, device=device)
    except (RuntimeError, TypeError, ValueError, AssertionError) as error:
        why = str(error).splitlines()[0]
        raise InputError(f"{name} must be an available torch device: {why}") from None
    if device.type == "meta":
        raise InputError(f"{name} must be a device that holds values, got {value!r}")
    return device


def alike(name: str, value: Tensor, other_name: str, other: Tensor) -> None:
    """Raise unless two tensors broadcast, on one device."""
    same_device(name, value, other_name, other)
    try:
        torch.broadcast_shapes(value.shape, other.shape)
    except RuntimeError:
        raise InputError(
            f"{name} must have the shape of {other_name}, {tuple(other.shape)}, or broadcast with it; "
            f"got {tuple(value.shape)}"
        ) from None


def takes_doubles(convert: Convert) -> bool:
    """Whether a conversion supports float64: Apple's GPUs do not.

    >>> takes_doubles(lambda tensor: tensor.to("cpu"))
    True
    """
    try:
        convert(torch.empty(0, dtype=torch.float64))
    except TypeError:
        return False
    return True


def moved(tensor: Tensor, device: torch.device) -> Tensor:
    """Move a tensor to a device, unless it is float64 and the device does not support that."""
    return tensor.to(device) if takes_doubles(lambda t: t.to(device)) else tensor


def same_device(name: str, value: Tensor, other_name: str, other: Tensor) -> None:
    """Raise unless two tensors are on one device."""
    if value.device != other.device:
        raise InputError(
            f"{name} must be on the device of {other_name}, {other.device}, got {value.device}"
        )
