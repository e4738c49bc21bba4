"""The ground: its light without the object, and the blocks that the object may affect."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from identica.datasets.threedident._compiled import compiled, inlined
from identica.datasets.threedident.bvh import BALLS, ZERO
from identica.datasets.threedident.lights import area_sample, sun_sample
from identica.datasets.threedident.material import GLOSS_IOR, SHEEN_IOR, fresnel, reflect
from identica.datasets.threedident.vectors import Vector, add, along, dot, scale, single, subtract
from identica.datasets.threedident.view import (
    HORIZON,
    UP,
    Shot,
    Stage,
    ground_distance,
    look,
    screen,
    to_world,
)

# Events in a block of the image: the object hides part of light 0, 1 or 2 from the ground, the object
# is visible, the spotlight reaches the ground.
SUN, AREA, SPOT, OBJECT, LIT = 1, 2, 4, 8, 16


class Ground(NamedTuple):
    """The ground as seen in a grid of G×G blocks."""

    points: NDArray[np.float64]  # G×G×3: x and y in the middle of the block, distance to its rim
    light: NDArray[np.float64]  # G×G×4: tinted and grey light, of the sun and of the area light


@compiled
def survey(stage: Stage, size: int, blocks: int, samples: NDArray[np.float32]) -> Ground:
    """The empty ground under sun and area light, which no latent moves."""
    side = (size + 2) * blocks
    points, light = np.zeros((side, side, 3)), np.zeros((side, side, 4))
    for row in range(side):
        for column in range(side):
            d = look(stage, *screen(size, blocks, row, column))
            far = ground_distance(stage, d)
            p = along(stage.eye, far, d)
            points[row, column, 0], points[row, column, 1] = p[0], p[1]
            for k in range(4):
                x, y = screen(size, blocks, row + k // 2 - 0.5, column + k % 2 - 0.5)
                corner = look(stage, x, y)
                rim = subtract(along(stage.eye, ground_distance(stage, corner), corner), p)
                points[row, column, 2] = max(points[row, column, 2], math.sqrt(dot(rim, rim)))
            if far >= HORIZON:
                continue
            view = scale(-1.0, d)
            sheen, gloss = fresnel(view[2], SHEEN_IOR), fresnel(view[2], GLOSS_IOR)
            for s in samples:
                d, power = sun_sample(stage.sun, s[2], s[3])
                tinted, grey = reflect(UP, view, d, sheen, gloss)
                light[row, column, 0] += power * tinted / len(samples)
                light[row, column, 1] += power * grey / len(samples)
                d, _, power = area_sample(stage.area, p, s[4], s[5])
                if d[2] > 0:
                    tinted, grey = reflect(UP, view, d, sheen, gloss)
                    light[row, column, 2] += power * tinted / len(samples)
                    light[row, column, 3] += power * grey / len(samples)
    return Ground(points, light)


@compiled
def foresee(
    stage: Stage,
    shot: Shot,
    balls: NDArray[np.float32],
    points: NDArray[np.float64],
    size: int,
    blocks: int,
    events: NDArray[np.uint8],
) -> None:
    """Write the possible events of each block, a superset of those that occur.

    The object is inside `balls`, which are given in its own coordinates.
    """
    moved = np.empty((4, BALLS), np.float32)
    for i in range(BALLS):
        c = add(shot.position, to_world(shot, (balls[0, i], balls[1, i], balls[2, i])))
        moved[0, i], moved[1, i], moved[2, i], moved[3, i] = c[0], c[1], c[2], balls[3, i]
    pixel = math.sqrt(2 * dot(stage.right, stage.right)) / (size * blocks)
    lamp = math.sqrt(0.5) * stage.area.side
    for row in range(len(events)):
        for column in range(len(events)):
            event = 0
            d = look(stage, *screen(size, blocks, row, column))
            if near(moved, stage.eye, d, np.inf, 0.0, pixel):
                event |= OBJECT
            p = (points[row, column, 0], points[row, column, 1], stage.ground)
            rim = points[row, column, 2]
            if near(moved, p, UP, np.inf, rim, stage.sun.sine):
                event |= SUN
            d, far, _ = area_sample(stage.area, p, 0.0, 0.0)
            if near(moved, p, d, far, rim, (lamp - rim) / far):
                event |= AREA
            offset = subtract(shot.spot, p)
            far = math.sqrt(dot(offset, offset))
            d = scale(1 / far, offset)
            # The cosine to the cone's axis changes by less than the angle it is seen under.
            if stage.spot.cosine + dot(d, shot.aim) < (stage.spot.radius + rim) / far:
                event |= LIT
                if near(moved, p, d, far, rim, (stage.spot.radius - rim) / far):
                    event |= SPOT
            events[row, column] = event


@inlined
def near(
    balls: NDArray[np.float32], o: Vector, d: Vector, length: float, width: float, spread: float
) -> bool:
    """Whether a beam around o + t·d, 0 < t < length, of radius width + spread·t meets a ball."""
    o, d = single(o), single(d)
    end, start, slope = single((length, width, spread))
    met = False
    for i in range(BALLS):
        x, y, z = balls[0, i] - o[0], balls[1, i] - o[1], balls[2, i] - o[2]
        t = min(max(x * d[0] + y * d[1] + z * d[2], ZERO), end)
        x, y, z = x - t * d[0], y - t * d[1], z - t * d[2]
        r = balls[3, i] + start + slope * t + abs(slope) * balls[3, i]
        met |= x * x + y * y + z * z < r * r
    return met
