"""The scene of 3DIdent as plain data, and how the ten latents place and colour it."""

from __future__ import annotations

from collections.abc import Sequence
from math import cos, pi, radians, sin
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from identica._validate import as_array, count, members
from identica.datasets._arguments import real_matrix
from identica.errors import InputError

SIDE = 4.44212  # the largest side of the teapot
LARGEST = 4096  # pixels along an image: one of them takes 2 GB to draw

POSITION = ("x", "y", "z")
ROTATION = ("rotation_x", "rotation_y", "rotation_z")
FACTORS = (*POSITION, *ROTATION, "spot_angle", "object_hue", "spot_hue", "ground_hue")


class Camera(NamedTuple):
    """A pinhole camera that looks at the origin, z upwards."""

    x: float = 8.0
    y: float = 0.0
    z: float = 8.0
    field_of_view: float = 1.2405


class Sun(NamedTuple):
    """White light from straight above."""

    strength: float = 0.5  # irradiance of a surface that faces it
    sine: float = sin(0.19934 / 2)  # of half its angular size


class Area(NamedTuple):
    """A white square in the air, facing down, over the origin."""

    radiance: float = 12.5
    side: float = 1.0
    height: float = 7.0


class Spot(NamedTuple):
    """A coloured spotlight on an arc over the scene, aimed at the object."""

    intensity: float = 3000 / (4 * pi)
    radius: float = 0.5
    cosine: float = cos(radians(35 / 2))  # of half the cone's angle
    blend: float = 0.1  # soft share of the cone, counted in cosines
    orbit: float = 4.0
    height: float = 6.0 + SIDE


class Scene(NamedTuple):
    """Everything that no latent moves."""

    camera: Camera = Camera()
    sun: Sun = Sun()
    area: Area = Area()
    spot: Spot = Spot()
    ground: float = -SIDE  # height of the ground
    reach: float = 3.0  # positions go this far to each side
    lift: float = SIDE / 2  # height of the object at z = 0
    turn: float = pi / 2  # angles go this far to each side
    hues: float = 0.25  # hues go this far to each side of red
    saturation: tuple[float, float, float] = (1.0, 0.8, 0.6)  # object, spotlight, ground


SCENE = Scene()


class Frames(NamedTuple):
    """What the latents decide, for N images; all vectors in world coordinates."""

    position: NDArray[np.float64]  # N×3, of the object
    rotation: NDArray[np.float64]  # N×3×3, object to world
    spot: NDArray[np.float64]  # N×3, where the spotlight is
    aim: NDArray[np.float64]  # N×3, where it points, unit length
    object_rgb: NDArray[np.float64]  # N×3, linear
    spot_rgb: NDArray[np.float64]
    ground_rgb: NDArray[np.float64]


def latents(**factors: Any) -> NDArray[np.float64]:
    """N×10 raw latents in which only the named factors vary; all others are 0.

    Each factor of `FACTORS` is a number or N numbers in [-1, 1].

    >>> latents(x=[-1, 1], spot_hue=0.5)
    array([[-1. ,  0. ,  0. ,  0. ,  0. ,  0. ,  0. ,  0. ,  0.5,  0. ],
           [ 1. ,  0. ,  0. ,  0. ,  0. ,  0. ,  0. ,  0. ,  0.5,  0. ]])
    """
    check_factors(list(factors))
    try:
        given = [np.atleast_1d(as_array(name, factors.get(name, 0.0))) for name in FACTORS]
        if any(values.dtype.kind not in "biuf" for values in given):
            raise ValueError("got something else")
        columns = np.broadcast_arrays(*given)
    except ValueError as error:
        raise InputError(f"factors must be numbers or as many numbers each: {error}") from None
    return check_latents(np.stack(columns, axis=1))


def check_factors(names: Sequence[str]) -> tuple[str, ...]:
    """Names of factors, each once, or an `InputError`."""
    names = [str(name) for name in members("factors", names, "names of factors")]
    unknown = sorted(set(names) - set(FACTORS))
    if unknown:
        raise InputError(f"factors must be among {', '.join(FACTORS)}; got {', '.join(unknown)}")
    if len(set(names)) < len(names):
        raise InputError(f"factors must be named once each, got {', '.join(names)}")
    return tuple(names)


def check_latents(raw_latents: Any) -> NDArray[np.float64]:
    """N×10 floats in [-1, 1], or an `InputError`."""
    matrix = real_matrix("raw_latents", raw_latents, len(FACTORS))
    outside = np.abs(matrix).max(axis=1, initial=0) > 1
    if outside.any():
        row = int(np.argmax(outside))
        raise InputError(
            f"raw_latents must lie in [-1, 1]: {int(outside.sum())} of {len(matrix)} rows do not, "
            f"the first is row {row}: {[round(value, 4) for value in matrix[row].tolist()]}"
        )
    return np.ascontiguousarray(matrix)


def check_size(size: int) -> int:
    """The side of an image in pixels, or an `InputError`."""
    return count("size", size, at_most=LARGEST)


def place(raw_latents: Any) -> Frames:
    """Positions, rotations and colours for N×10 raw latents in [-1, 1].

    >>> frames = place(latents(x=1))
    >>> frames.position, frames.object_rgb
    (array([[3.     , 0.     , 2.22106]]), array([[1., 0., 0.]]))
    """
    from scipy.spatial.transform import Rotation

    r, scene = check_latents(raw_latents), SCENE
    position = scene.reach * r[:, :3] + [0, 0, scene.lift]
    rotation = Rotation.from_euler("xyz", scene.turn * r[:, 3:6]).as_matrix()
    angle = scene.turn * r[:, 6]
    across = scene.spot.orbit * np.stack([np.sin(angle), np.cos(angle)], axis=1)
    spot = np.column_stack([across, np.full(len(r), scene.spot.height)])
    aim = position - spot
    aim /= np.linalg.norm(aim, axis=1, keepdims=True)
    colours = (hue_to_rgb(scene.hues * r[:, 7 + k], scene.saturation[k]) for k in range(3))
    return Frames(position, rotation, spot, aim, *colours)


def hue_to_rgb(hue: NDArray[np.float64], saturation: float) -> NDArray[np.float64]:
    """N×3 colours of value 1; the hue is wrapped to [0, 1), where 0 is red and 1/3 is green."""
    k = (6 * hue[:, None] + [5, 3, 1]) % 6
    return np.asarray(1 - saturation * np.minimum(k, 4 - k).clip(0, 1))
