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
    _write(path, pack(state))


def load(path: Path) -> Any:
    """Load a file written by `save`; raise a clear error if it is damaged or of another kind."""
    try:
        return unpack(path.read_bytes())
    except FileNotFoundError:
        raise InputError(f"{path} does not exist") from None
    except Exception as error:  # content of the wrong type, size or depth may raise anything
        raise DamagedError(
            f"{path} is not a checkpoint of identica, or is damaged: {error}"
        ) from None


def save_weights(path: Path, module: torch.nn.Module) -> None:
    """Write a module's weights as a plain safetensors file."""
    weights = {name: value.contiguous() for name, value in module.state_dict().items()}
    _write(path, _encoded(weights))


def load_weights(path: Path, module: torch.nn.Module) -> None:
    """Load weights written by `save_weights`, or any safetensors file, into a module of the same shape."""
    try:
        module.load_state_dict(_decoded(path.read_bytes())[0])
    except FileNotFoundError:
        raise InputError(f"{path} does not exist") from None
    except (ValueError, RuntimeError, OSError) as error:
        raise InputError(f"{path} does not hold the weights of this model: {error}") from None


def pack(state: Any) -> bytes:
    """Nested dicts and lists of tensors and plain values as bytes, for `unpack`."""
    tensors: dict[str, Tensor] = {}
    tree = json.dumps(_take_out(state, tensors))
    return _encoded(tensors, tree)


def unpack(packed: bytes) -> Any:
    """The inverse of `pack`."""
    tensors, tree = _decoded(packed)
    if tree is None:
        raise ValueError("it has no metadata of identica")
    return _put_back(json.loads(tree), tensors)


def _write(path: Path, content: bytes) -> None:
    # written as bytes: files that safetensors creates are readable by their owner only
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def _encoded(tensors: dict[str, Tensor], tree: str | None = None) -> bytes:
    from safetensors.torch import save

    metadata = {CHECKSUM: checksum(tensors, tree)} | ({} if tree is None else {TREE: tree})
    return save(tensors, metadata=metadata)


def _decoded(content: bytes) -> tuple[dict[str, Tensor], str | None]:
    """The inverse of `_encoded`; also reads plain safetensors files, which have no checksum."""
    from safetensors import SafetensorError
    from safetensors.torch import load

    try:
        # copies: tensors within the bytes are not aligned, and products of unaligned ones round differently
        tensors = {name: tensor.clone() for name, tensor in load(content).items()}
    except SafetensorError as error:
        raise ValueError(str(error)) from None
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    metadata = header.get("__metadata__") or {}
    tree = metadata.get(TREE)
    if {TREE, CHECKSUM} & metadata.keys() and metadata.get(CHECKSUM) != checksum(tensors, tree):
        raise ValueError("its content does not match its checksum")
    return tensors, tree


def checksum(tensors: Mapping[str, Tensor], tree: str | None = None) -> str:
    """A hash of named tensors and of the structure they belong to."""
    digest = hashlib.sha256((tree or "").encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        # a copy, as a tensor of one entry may have any stride
        flat = tensor.cpu().flatten().clone(memory_format=torch.contiguous_format)
        digest.update(flat.view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _take_out(value: Any, tensors: dict[str, Tensor]) -> Any:
    """The state as JSON, with tensors put aside under numbered names."""
    if isinstance(value, Tensor):
        # the memory layout is stored as well: products of transposed matrices round differently
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
