"""The ray caster: one ray per block of the image, more in blocks that differ, and a pixel filter."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from identica._validate import count
from identica.datasets.threedident._compiled import compiled
from identica.datasets.threedident.bvh import DEPTH, Tree, blocked, build, closest, normals
from identica.datasets.threedident.film import develop, filter_taps, srgb_bytes
from identica.datasets.threedident.ground import LIT, OBJECT, Ground, foresee, survey
from identica.datasets.threedident.lights import area_sample, spot_mean, spot_sample, sun_sample
from identica.datasets.threedident.material import GLOSS_IOR, SHEEN_IOR, fresnel, reflect
from identica.datasets.threedident.sampling import TILE, sample_points
from identica.datasets.threedident.scene import LARGEST, SCENE, Frames, Scene, check_size, place
from identica.datasets.threedident.teapot import teapot
from identica.datasets.threedident.vectors import Vector, along, dot, scale, subtract
from identica.datasets.threedident.view import (
    UP,
    Shot,
    Stage,
    ground_distance,
    look,
    screen,
    stage,
    take_shot,
    to_object,
    to_world,
)
from identica.errors import InputError

CONTRAST = 0.05  # blocks whose light differs by this in its square root get more rays
BATCH = 8  # images that a thread draws in one go
SAMPLES = 4096  # rays for a pixel at most
WHITE = (1.0, 1.0, 1.0)


def render(raw_latents: Any, size: int = 64, samples: int = 8) -> NDArray[np.uint8]:
    """Images of the 3DIdent scene: a teapot in the air under sun, area light and spotlight.

    Direct light with soft shadows, as Blender's Cycles renders it without bounces. The same latents
    always give the same image, whatever else is in the batch. Uses `numba.get_num_threads()` threads.

    Reference: Zimmermann, Sharma, Schneider, Bethge & Brendel (ICML 2021).

    Args:
        raw_latents: N×10 numbers in [-1, 1], in the order of `FACTORS`.
        size: side of the images in pixels; at most 4096, less with more than 35 samples.
        samples: rays for a pixel at edges and in the rims of shadows (at least 4, rounded to what
            fits a grid; at most 4096); elsewhere a sixteenth of them will do.

    Returns:
        N×size×size×3 bytes, sRGB.

    >>> from identica.datasets.threedident import latents
    >>> images = render(latents(rotation_z=[-0.5, 0.5]), size=32)
    >>> images.shape, images.dtype
    ((2, 32, 32, 3), dtype('uint8'))
    """
    frames = place(raw_latents)
    size, samples = check_size(size), count("samples", samples, at_most=SAMPLES)
    # A pixel has blocks × blocks blocks of 2×2 cells, and a cell of a block that needs it n rays.
    blocks = max(1, round(math.sqrt(samples / 16)))
    n = max(1, round(samples / (2 * blocks) ** 2))
    if size * blocks > LARGEST:
        raise InputError(
            f"size must be at most {LARGEST // blocks} with {samples} samples, got {size}"
        )
    seen = stage(SCENE), _tree(), _ground(SCENE, size, blocks)
    fixed = *seen, sample_points(1), sample_points(n)
    images = np.empty((len(frames.position), size, size, 3), np.uint8)
    threads = numba.get_num_threads()
    step = max(1, min(BATCH, math.ceil(len(images) / threads)))

    def run(start: int) -> None:
        part = slice(start, start + step)
        some = Frames(*(values[part] for values in frames))
        draw(*fixed, filter_taps(2 * blocks), srgb_bytes(), CONTRAST / blocks, some, images[part])

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(run, range(0, len(images), step)))
    return images


@lru_cache(maxsize=1)
def _tree() -> Tree:
    return build(teapot())


@lru_cache(maxsize=2)  # those of the largest images take 1 GB each
def _ground(scene: Scene, size: int, blocks: int) -> Ground:
    return survey(stage(scene), size, blocks, sample_points(16)[0, 0])


@compiled
def draw(
    stage: Stage,
    tree: Tree,
    ground: Ground,
    one: NDArray[np.float32],
    many: NDArray[np.float32],
    taps: NDArray[np.float32],
    table: NDArray[np.uint8],
    contrast: float,
    frames: Frames,
    images: NDArray[np.uint8],
) -> None:
    """Draw all images of `frames`."""
    size, side, cells = images.shape[1], len(ground.points), len(taps) // 3
    events = np.empty((side, side), np.uint8)
    rough = np.empty((side, side), np.uint8)
    coarse = np.empty((side, side, 3), np.float32)
    fine = np.empty((2 * side, 2 * side, 3), np.float32)
    for i in range(len(images)):
        shot = take_shot(frames, i)
        foresee(stage, shot, tree.balls, ground.points, size, cells // 2, events)
        bare_ground(ground.light, shot.ground_rgb, coarse)
        shoot(stage, tree, shot, ground.light, events, one, events, size, coarse)
        compare(coarse, events, contrast, rough)
        double(coarse, fine)
        shoot(stage, tree, shot, ground.light, events, many, rough, size, fine)
        develop(fine, taps, table, images[i])


@compiled
def bare_ground(ground: NDArray[np.float64], rgb: Vector, light: NDArray[np.float32]) -> None:
    """Light of the empty ground outside the spotlight, for the blocks where nothing else happens."""
    for row in range(len(light)):
        for column in range(len(light)):
            tinted = ground[row, column, 0] + ground[row, column, 2]
            grey = ground[row, column, 1] + ground[row, column, 3]
            for c in range(3):
                light[row, column, c] = tinted * rgb[c] + grey


@compiled
def double(coarse: NDArray[np.float32], fine: NDArray[np.float32]) -> None:
    """Four cells for each block."""
    for row in range(len(fine)):
        for column in range(len(fine)):
            for c in range(3):
                fine[row, column, c] = coarse[row // 2, column // 2, c]


@compiled
def compare(
    light: NDArray[np.float32], events: NDArray[np.uint8], contrast: float, rough: NDArray[np.uint8]
) -> None:
    """Mark the blocks with an edge or a shadow's rim: they differ from one of their neighbours."""
    side = len(light)
    limit = np.float32(2 * contrast * contrast)
    rough[:] = 0
    for row in range(side):
        for column in range(side):
            if events[row, column] & ~LIT == 0:
                continue
            for r in range(max(row - 1, 0), min(row + 2, side)):
                for c in range(max(column - 1, 0), min(column + 2, side)):
                    for k in range(3):
                        a, b = light[row, column, k], light[r, c, k]
                        # |√a - √b| > contrast, without the roots
                        if (a - b) * (a - b) > limit * (a + b):
                            rough[row, column] = rough[r, c] = 1


@compiled
def shoot(
    stage: Stage,
    tree: Tree,
    shot: Shot,
    ground: NDArray[np.float64],
    events: NDArray[np.uint8],
    points: NDArray[np.float32],
    where: NDArray[np.uint8],
    size: int,
    light: NDArray[np.float32],
) -> None:
    """Write the light in each cell of the blocks marked in `where`, the mean over its points."""
    stack = np.empty(DEPTH, np.int32)
    side, n = len(light), points.shape[2]
    share = side // len(events)  # cells along a block
    cells = side // (size + 2)  # cells along a pixel
    eye = to_object(shot, subtract(stage.eye, shot.position))
    for row in range(side):
        for column in range(side):
            y, x = row // share, column // share
            if not where[y, x]:
                continue
            event = np.int64(events[y, x])
            red = green = blue = 0.0
            for k in range(n):
                s = points[row % TILE, column % TILE, k]
                d = look(stage, *screen(size, cells, row + s[1], column + s[0]))
                # What the ray meets: the ground, unless the object is before it.
                hit, far = -1, ground_distance(stage, d)
                normal, rgb, sheen, gloss = UP, shot.ground_rgb, SHEEN_IOR, GLOSS_IOR
                if event & OBJECT:
                    ray = to_object(shot, d)
                    far, hit = closest(tree, stack, eye, ray, far)
                    if hit >= 0:
                        smooth, flat = normals(tree, hit, eye, ray)
                        normal, rgb = to_world(shot, smooth), shot.object_rgb
                        if dot(flat, ray) > 0:  # seen from inside
                            normal, sheen, gloss = scale(-1.0, normal), 1 / sheen, 1 / gloss
                p, view = along(stage.eye, far, d), scale(-1.0, d)
                local = to_object(shot, subtract(p, shot.position))
                sheen, gloss = fresnel(dot(normal, view), sheen), fresnel(dot(normal, view), gloss)
                for lamp in range(3):
                    shaded = hit >= 0 or event >> lamp & 1
                    lamp_rgb = WHITE if lamp < 2 else shot.spot_rgb
                    if lamp == 0:
                        d, power = sun_sample(stage.sun, s[2], s[3])
                        far = np.inf
                    elif lamp == 1:
                        d, far, power = area_sample(stage.area, p, s[4], s[5])
                    elif shaded:
                        d, far, power = spot_sample(stage.spot, shot.spot, shot.aim, p, s[6], s[7])
                    elif event & LIT:
                        d, far, power = spot_mean(stage.spot, shot.spot, shot.aim, p)
                    else:
                        break
                    if power <= 0 or dot(normal, d) <= 0:
                        continue
                    if shaded and blocked(tree, stack, local, to_object(shot, d), far, hit):
                        continue
                    if hit < 0 and lamp < 2:
                        tinted, grey = ground[y, x, 2 * lamp], ground[y, x, 2 * lamp + 1]
                    else:
                        tinted, grey = reflect(normal, view, d, sheen, gloss)
                        tinted, grey = power * tinted, power * grey
                    red += lamp_rgb[0] * (rgb[0] * tinted + grey)
                    green += lamp_rgb[1] * (rgb[1] * tinted + grey)
                    blue += lamp_rgb[2] * (rgb[2] * tinted + grey)
            light[row, column, 0] = red / n
            light[row, column, 1] = green / n
            light[row, column, 2] = blue / n
