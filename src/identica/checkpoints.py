"""Checkpoints: nested state of tensors and plain values in one safetensors file, no pickle."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from identica._check import InputError
from identica._files import replacing
from identica.runs import DamagedError


def save(path: Path, state: Any) -> None:
    """Write nested dicts and lists of tensors and plain values, in one step."""
    tensors: dict[str, Tensor] = {}
    tree = _take_out(state, tensors)
    _write(path, tensors, {"identica": json.dumps(tree)})


def _write(path: Path, tensors: dict[str, Tensor], metadata: dict[str, str] | None = None) -> None:
    from safetensors.torch import save

    # by way of bytes: safetensors' own files are closed to everybody else, even on a shared folder
    with replacing(path) as temporary:
        temporary.write_bytes(save(tensors, metadata=metadata))


def load(path: Path) -> Any:
    """Read what `save` wrote; a damaged or foreign file gives one clear error."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            tree = json.loads((file.metadata() or {})["identica"])
            return _put_back(tree, {name: file.get_tensor(name) for name in file.keys()})  # noqa: SIM118
    except FileNotFoundError:
        raise InputError(f"{path} does not exist") from None
    except (SafetensorError, KeyError, ValueError, OSError) as error:
        raise DamagedError(
            f"{path} is not a checkpoint of identica, or is damaged: {error}"
        ) from None


def _take_out(value: Any, tensors: dict[str, Tensor]) -> Any:
    """The state as JSON, with tensors put aside under numbered names."""
    if isinstance(value, Tensor):
        # the order of its axes in memory comes along: products of transposed matrices round otherwise
        order = sorted(range(value.ndim), key=value.stride, reverse=True)
        name = f"t{len(tensors)}"
        tensors[name] = value.detach().permute(order).contiguous().clone()
        return {"tensor": [name, order]}
    if isinstance(value, dict):
        # optimiser states have whole numbers as keys, which JSON would turn into strings
        return {"items": [[key, _take_out(item, tensors)] for key, item in value.items()]}
    if isinstance(value, (list, tuple)):
        kind = "tuple" if isinstance(value, tuple) else "list"
        return {kind: [_take_out(item, tensors) for item in value]}
    return {"value": value}


def _put_back(tree: Any, tensors: dict[str, Tensor]) -> Any:
    (kind, content), *rest = tree.items()
    if rest:
        raise ValueError("unknown structure")
    match kind:
        case "tensor":
            name, order = content
            return tensors[name].permute([order.index(axis) for axis in range(len(order))])
        case "items":
            return {key: _put_back(item, tensors) for key, item in content}
        case "list":
            return [_put_back(item, tensors) for item in content]
        case "tuple":
            return tuple(_put_back(item, tensors) for item in content)
        case "value":
            return content
    raise ValueError(f"unknown structure {kind!r}")


def pack(state: Any) -> bytes:
    """Nested dicts and lists of tensors and plain values as bytes, for `unpack`."""
    from safetensors.torch import save

    tensors: dict[str, Tensor] = {}
    tree = json.dumps(_take_out(state, tensors))
    return save(tensors | {"tree": torch.tensor(list(tree.encode()), dtype=torch.uint8)})


def unpack(packed: bytes) -> Any:
    """What was given to `pack`."""
    from safetensors.torch import load

    # copies, as bytes are no place for aligned tensors: products of others round differently
    tensors = {name: tensor.clone() for name, tensor in load(packed).items()}
    return _put_back(json.loads(bytes(tensors.pop("tree").numpy())), tensors)


def save_weights(path: Path, module: torch.nn.Module) -> None:
    """Write a module's weights as a plain safetensors file."""
    _write(path, {name: value.contiguous() for name, value in module.state_dict().items()})


def load_weights(path: Path, module: torch.nn.Module) -> None:
    """Read what `save_weights` wrote into a module of the same shape."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        module.load_state_dict(load_file(path))
    except FileNotFoundError:
        raise InputError(f"{path} does not exist") from None
    except (SafetensorError, RuntimeError, OSError) as error:
        raise InputError(f"{path} does not hold the weights of this model: {error}") from None
