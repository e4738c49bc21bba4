"""Camera geometry, and coordinate transforms of one image."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from identica.datasets.threedident._compiled import inlined
from identica.datasets.threedident.scene import Area, Frames, Scene, Spot, Sun
from identica.datasets.threedident.vectors import Vector, add, along, dot, scale, unit

UP = (0.0, 0.0, 1.0)
HORIZON = 1000.0  # the ground ends here


class Stage(NamedTuple):
    """The `Scene` in the form that the kernels need, shared by all images."""

    eye: Vector
    forward: Vector
    right: Vector  # from the middle of the picture to its side, at distance 1
    up: Vector
    ground: float
    sun: Sun
    area: Area
    spot: Spot


class Shot(NamedTuple):
    """One image: a row of `Frames`."""

    position: Vector
    rotation: tuple[Vector, Vector, Vector]
    spot: Vector
    aim: Vector
    object_rgb: Vector
    spot_rgb: Vector
    ground_rgb: Vector


def stage(scene: Scene) -> Stage:
    """The camera's axes, and the lights."""
    camera = scene.camera
    eye = np.array([camera.x, camera.y, camera.z])
    forward = -eye / np.linalg.norm(eye)
    right = np.cross(forward, UP)
    right /= np.linalg.norm(right)
    half = math.tan(camera.field_of_view / 2)
    return Stage(
        eye=_plain(eye),
        forward=_plain(forward),
        right=_plain(half * right),
        up=_plain(half * np.cross(right, forward)),
        ground=scene.ground,
        sun=scene.sun,
        area=scene.area,
        spot=scene.spot,
    )


def _plain(a: NDArray[np.float64]) -> Vector:
    return float(a[0]), float(a[1]), float(a[2])


@inlined
def screen(size: int, cells: int, row: float, column: float) -> tuple[float, float]:
    """The middle of a cell in the picture, which spans [-1, 1]², x to the right and y upwards.

    A pixel has `cells`×`cells` of them, and the grid starts a pixel outside the picture.
    """
    step = 2 / (size * cells)
    return (column + 0.5 - cells) * step - 1, 1 - (row + 0.5 - cells) * step


@inlined
def look(stage: Stage, x: float, y: float) -> Vector:
    """The unit direction from the eye through (x, y) of the picture."""
    return unit(along(along(stage.forward, x, stage.right), y, stage.up))


@inlined
def ground_distance(stage: Stage, d: Vector) -> float:
    """The distance of the ground in direction d, at most that of the horizon."""
    drop = stage.ground - stage.eye[2]
    return drop / min(d[2], drop / HORIZON)


@inlined
def row_vector(rows: NDArray[np.float64], i: int) -> Vector:
    return rows[i, 0], rows[i, 1], rows[i, 2]


@inlined
def take_shot(frames: Frames, i: int) -> Shot:
    """Image number i."""
    turn = frames.rotation[i]
    return Shot(
        row_vector(frames.position, i),
        (row_vector(turn, 0), row_vector(turn, 1), row_vector(turn, 2)),
        row_vector(frames.spot, i),
        row_vector(frames.aim, i),
        row_vector(frames.object_rgb, i),
        row_vector(frames.spot_rgb, i),
        row_vector(frames.ground_rgb, i),
    )


@inlined
def to_object(shot: Shot, a: Vector) -> Vector:
    """A direction of the world in the object's coordinates."""
    x, y, z = shot.rotation
    return add(add(scale(a[0], x), scale(a[1], y)), scale(a[2], z))


@inlined
def to_world(shot: Shot, a: Vector) -> Vector:
    """A direction of the object in world coordinates."""
    x, y, z = shot.rotation
    return dot(x, a), dot(y, a), dot(z, a)
