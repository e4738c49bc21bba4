"""Spaces and families as plain data, for files without pickle."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from identica import families, spaces
from identica.errors import InputError

_KINDS: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        spaces.Sphere,
        spaces.Box,
        spaces.Euclidean,
        spaces.Product,
        families.Uniform,
        families.VonMisesFisher,
        families.Normal,
        families.Laplace,
        families.GeneralizedNormal,
        families.Joint,
    )
}


def to_plain(value: Any) -> Any:
    """Nested spaces, families, tuples and plain values as dicts and lists.

    >>> to_plain(spaces.Sphere(3))
    {'kind': 'Sphere', 'arguments': {'dim': 3, 'radius': 1.0}}
    """
    if isinstance(value, (spaces.Space, families.Family)):
        name = type(value).__name__
        if name not in _KINDS:
            raise InputError(f"{value} cannot be written to a file: its kind is not identica's own")
        content = {field.name: to_plain(getattr(value, field.name)) for field in fields(value)}  # type: ignore[arg-type]
        return {"kind": name, "arguments": content}
    if isinstance(value, (tuple, list)):
        return [to_plain(item) for item in value]
    return value


def from_plain(data: Any) -> Any:
    """The inverse of `to_plain`, except that lists become tuples.

    >>> from_plain(to_plain(spaces.Product(spaces.Sphere(3), spaces.Box(2))))
    Product(Sphere(dim=3, radius=1.0), Box(dim=2, low=0.0, high=1.0))
    """
    if isinstance(data, dict):
        if data.get("kind") not in _KINDS or not isinstance(data.get("arguments"), dict):
            raise InputError(f"not a space or family: {data!r}")
        kind = _KINDS[data["kind"]]
        arguments = {name: from_plain(item) for name, item in data["arguments"].items()}
        if kind in (spaces.Product, families.Joint):  # made from their parts, one by one
            return kind(*next(iter(arguments.values()), ()))
        return kind(**arguments)
    if isinstance(data, (tuple, list)):
        return tuple(from_plain(item) for item in data)
    return data
