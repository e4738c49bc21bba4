"""Checkpoints: nested state of tensors and plain values in one safetensors file, no pickle."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from identica._io import replacing
from identica.errors import DamagedError, InputError

TREE, CHECKSUM = "identica", "identica-sha256"  # names in the metadata


def save(path: Path, state: Any) -> None:
    """Write nested dicts and lists of tensors and plain values, in one step."""
    tensors: dict[str, Tensor] = {}
    tree = _take_out(state, tensors)
    _write(path, tensors, json.dumps(tree))


def load(path: Path) -> Any:
    """Read what `save` wrote; a damaged or foreign file gives one clear error."""
    try:
        tensors, tree = _read(path)
        if tree is None:
            raise ValueError("it has no metadata of identica")
        return _put_back(json.loads(tree), tensors)
    except FileNotFoundError:
        raise InputError(f"{path} does not exist") from None
    except Exception as error:  # whatever content of the wrong type, size or depth leads to
        raise DamagedError(
            f"{path} is not a checkpoint of identica, or is damaged: {error}"
        ) from None


def _write(path: Path, tensors: dict[str, Tensor], tree: str | None = None) -> None:
    from safetensors.torch import save

    metadata = {CHECKSUM: checksum(tensors, tree)} | ({} if tree is None else {TREE: tree})
    # by way of bytes: safetensors' own files are closed to everybody else, even on a shared folder
    with replacing(path) as temporary:
        temporary.write_bytes(save(tensors, metadata=metadata))


def _read(path: Path) -> tuple[dict[str, Tensor], str | None]:
    """What `_write` was given. Plain weights of others, which have no checksum, are read as well."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            # copies, as a file is no place for aligned tensors: products of others round differently
            tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise ValueError(str(error)) from None
    tree = metadata.get(TREE)
    if {TREE, CHECKSUM} & metadata.keys() and metadata.get(CHECKSUM) != checksum(tensors, tree):
        raise ValueError("its content does not match its checksum")
    return tensors, tree


def checksum(tensors: Mapping[str, Tensor], tree: str | None = None) -> str:
    """A hash of named tensors and of the structure they belong to."""
    found = hashlib.sha256((tree or "").encode())
    for name, tensor in sorted(tensors.items()):
        found.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        # a copy, as a tensor of one entry may have any stride
        flat = tensor.cpu().flatten().clone(memory_format=torch.contiguous_format)
        found.update(flat.view(torch.uint8).numpy().data)
    return found.hexdigest()


def _take_out(value: Any, tensors: dict[str, Tensor]) -> Any:
    """The state as JSON, with tensors put aside under numbered names."""
    if isinstance(value, Tensor):
        # the order of its axes in memory comes along: products of transposed matrices round otherwise
        order = sorted(range(value.ndim), key=value.stride, reverse=True)
        name = f"t{len(tensors)}"
        tensors[name] = value.detach().permute(order).clone(memory_format=torch.contiguous_format)
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
    """Read what `save_weights` wrote, or a plain safetensors file, into a module of the same shape."""
    try:
        module.load_state_dict(_read(path)[0])
    except FileNotFoundError:
        raise InputError(f"{path} does not exist") from None
    except (ValueError, RuntimeError, OSError) as error:
        raise InputError(f"{path} does not hold the weights of this model: {error}") from None
