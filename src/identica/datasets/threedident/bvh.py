"""A bounding-volume hierarchy over triangles, for the first hit of a ray and for occlusion.

Nodes have eight children and leaves eight triangles, side by side in memory. The loops over eight
have no branches and stay in single precision, so each compiles to a few vector instructions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from identica.datasets.threedident._compiled import inlined
from identica.datasets.threedident.teapot import Mesh
from identica.datasets.threedident.vectors import Vector, cross, dot, single

Ids = NDArray[np.intp]
Floats = NDArray[np.float64]

WIDTH = 8
BALLS = 16
DEPTH = 128  # room for the nodes yet to visit: at most WIDTH for each level

# A plain 0 or 1 would widen the numbers it meets.
ZERO: Any = np.float32(0)
ONE: Any = np.float32(1)
START: Any = np.float32(1e-4)  # anything nearer is the surface that the ray leaves from

_BIT = 2 ** np.arange(WIDTH, dtype=np.float32)
_LOWEST = np.array([max((i & -i).bit_length() - 1, 0) for i in range(1 << WIDTH)], np.uint8)


class Tree(NamedTuple):
    """Inner nodes from the root on, and leaves. Unused places hold what no ray can meet."""

    boxes: NDArray[np.float32]  # n×6×8: lower and upper corners of the children's boxes
    children: NDArray[np.int32]  # n×8: inner node 0, 1, …, or -1, -2, … for leaf 0, 1, …
    corners: NDArray[np.float32]  # m×9×8: a corner of each triangle and the two edges from it
    normals: NDArray[np.float32]  # m×9×8: the normals at its three corners
    balls: NDArray[np.float32]  # 4×16: centres and radii of balls that together hold all triangles


def build(mesh: Mesh) -> Tree:
    """Split the triangles top down, each time where the surface area heuristic is least.

    The cost of a split is A_l n_l + A_r n_r, the surface areas and triangle counts of its
    two sides (MacDonald & Booth 1990).

    >>> from identica.datasets.threedident.teapot import teapot
    >>> build(teapot()).corners.shape
    (1060, 9, 8)
    """
    corners = mesh.points[mesh.triangles]
    lower, upper = corners.min(axis=1), corners.max(axis=1)
    boxes: list[NDArray[np.float32]] = []
    children: list[list[int]] = []
    leaves: list[Ids] = []

    def add(ids: Ids) -> int:
        if len(ids) <= WIDTH:
            leaves.append(ids)
            return -len(leaves)
        me = len(boxes)
        boxes.append(np.full((6, WIDTH), 1e30, np.float32))
        children.append([0] * WIDTH)
        for k, part in enumerate(_parts(ids, lower, upper, WIDTH)):
            boxes[me][:, k] = *lower[part].min(axis=0), *upper[part].max(axis=0)
            children[me][k] = add(part)
        return me

    def side_by_side(values: Floats) -> NDArray[np.float32]:
        packed = np.zeros((len(leaves), 9, WIDTH), np.float32)
        for k, ids in enumerate(leaves):
            packed[k, :, : len(ids)] = values[ids].reshape(-1, 9).T
        return packed

    everything = np.arange(len(corners))
    add(everything)
    balls = [
        _ball(corners[part].reshape(-1, 3)) for part in _parts(everything, lower, upper, BALLS)
    ]
    return Tree(
        np.array(boxes),
        np.array(children, np.int32),
        side_by_side(corners - corners[:, :1] * [[[0], [1], [1]]]),
        side_by_side(mesh.normals[mesh.triangles]),
        np.ascontiguousarray(np.transpose(balls), np.float32),
    )


def _ball(points: Floats) -> Floats:
    centre = (points.min(axis=0) + points.max(axis=0)) / 2
    return np.append(centre, np.linalg.norm(points - centre, axis=1).max())


def _parts(ids: Ids, lower: Floats, upper: Floats, n: int) -> list[Ids]:
    """Cut a set of triangles into n at most, always the largest box that does not fit a leaf."""
    parts = [ids]
    while len(parts) < n:
        sizes = [_areas(lower[p], upper[p])[-1] if len(p) > WIDTH else -1.0 for p in parts]
        if max(sizes) < 0:
            break
        parts.extend(_split(parts.pop(int(np.argmax(sizes))), lower, upper))
    return parts


def _split(ids: Ids, lower: Floats, upper: Floats) -> tuple[Ids, Ids]:
    """The cheapest cut of the triangles, sorted by their middle along x, y or z."""
    n = np.arange(1, len(ids))
    best, answer = np.inf, (ids, ids)
    for axis in range(3):
        ranked = ids[np.argsort(lower[ids, axis] + upper[ids, axis], kind="stable")]
        left = _areas(lower[ranked], upper[ranked])
        right = _areas(lower[ranked[::-1]], upper[ranked[::-1]])
        cost = left[:-1] * n + right[-2::-1] * n[::-1]
        cut = int(np.argmin(cost))
        if cost[cut] < best:
            best, answer = cost[cut], (ranked[: cut + 1], ranked[cut + 1 :])
    return answer


def _areas(lower: Floats, upper: Floats) -> Floats:
    """Half the surface area of the box around the first 1, 2, … triangles."""
    x, y, z = (np.maximum.accumulate(upper, axis=0) - np.minimum.accumulate(lower, axis=0)).T
    return np.asarray(x * y + y * z + z * x)


@inlined
def blocked(
    tree: Tree, stack: NDArray[np.int32], o: Vector, d: Vector, far: float, skip: int
) -> bool:
    """Whether o + t·d hits a triangle other than number `skip` with t < far."""
    return closest(tree, stack, o, d, far, skip, True)[1] >= 0


@inlined
def closest(
    tree: Tree,
    stack: NDArray[np.int32],
    o: Vector,
    d: Vector,
    far: float,
    skip: int = -1,
    any_will_do: bool = False,
) -> tuple[float, int]:
    """Distance and number of the first triangle that o + t·d hits with t < far, else (far, -1)."""
    o, d = single(o), single(d)
    inverse = (ONE / d[0], ONE / d[1], ONE / d[2])
    reach: Any = np.float32(far)
    found = -1
    stack[0], top = 0, 1
    while top > 0:
        top -= 1
        node = stack[top]
        if node >= 0:
            mask = enters(tree.boxes, node, o, inverse, reach)
            while mask:
                stack[top] = tree.children[node, _LOWEST[mask]]
                top += 1
                mask &= mask - np.uint64(1)
            continue
        mask = hits(tree.corners, -1 - node, o, d, reach)
        if skip // WIDTH == -1 - node:
            mask &= ~(np.uint64(1) << np.uint64(skip % WIDTH))
        while mask:
            k = WIDTH * (-1 - node) + np.int64(_LOWEST[mask])
            if any_will_do:
                return far, k
            t, _, _ = meet(tree.corners, k, o, d)
            if t < reach:
                reach, found = t, k
            mask &= mask - np.uint64(1)
    return (np.float64(reach), found) if found >= 0 else (far, -1)


@inlined
def enters(boxes: NDArray[np.float32], node: int, o: Vector, inverse: Vector, far: Any) -> Any:
    """A bit for each child whose box the ray enters before `far` (the slab test)."""
    mask = ZERO
    for i in range(WIDTH):
        ax, bx = (boxes[node, 0, i] - o[0]) * inverse[0], (boxes[node, 3, i] - o[0]) * inverse[0]
        ay, by = (boxes[node, 1, i] - o[1]) * inverse[1], (boxes[node, 4, i] - o[1]) * inverse[1]
        az, bz = (boxes[node, 2, i] - o[2]) * inverse[2], (boxes[node, 5, i] - o[2]) * inverse[2]
        enter = max(max(min(ax, bx), min(ay, by)), max(min(az, bz), ZERO))
        leave = min(min(max(ax, bx), max(ay, by)), min(max(az, bz), far))
        mask += _BIT[i] if enter <= leave else ZERO
    return np.uint64(mask)


@inlined
def hits(corners: NDArray[np.float32], leaf: int, o: Vector, d: Vector, far: Any) -> Any:
    """A bit for each triangle of the leaf that the ray hits before `far`."""
    mask = ZERO
    for i in range(WIDTH):
        t, u, v = meet(corners, WIDTH * leaf + i, o, d)
        inside = (u >= ZERO) & (v >= ZERO) & (u + v <= ONE) & (t > START) & (t < far)
        mask += _BIT[i] if inside else ZERO
    return np.uint64(mask)


@inlined
def meet(corners: NDArray[np.float32], k: int, o: Vector, d: Vector) -> Vector:
    """Distance t and barycentric u, v of the ray in the plane of triangle k (Möller & Trumbore 1997)."""
    c, n, i = corners, k // WIDTH, k % WIDTH
    e1 = (c[n, 3, i], c[n, 4, i], c[n, 5, i])
    e2 = (c[n, 6, i], c[n, 7, i], c[n, 8, i])
    s = (o[0] - c[n, 0, i], o[1] - c[n, 1, i], o[2] - c[n, 2, i])
    p, q = cross(d, e2), cross(s, e1)
    inverse = ONE / dot(e1, p)
    return dot(e2, q) * inverse, dot(s, p) * inverse, dot(d, q) * inverse


@inlined
def normals(tree: Tree, k: int, o: Vector, d: Vector) -> tuple[Vector, Vector]:
    """Where the ray hits triangle k: the smoothed unit normal, and its own normal of any length."""
    _, u, v = meet(tree.corners, k, o, d)
    m, c, n, i = tree.normals, tree.corners, k // WIDTH, k % WIDTH
    w = 1 - u - v
    x = w * m[n, 0, i] + u * m[n, 3, i] + v * m[n, 6, i]
    y = w * m[n, 1, i] + u * m[n, 4, i] + v * m[n, 7, i]
    z = w * m[n, 2, i] + u * m[n, 5, i] + v * m[n, 8, i]
    length = np.sqrt(x * x + y * y + z * z)
    e1 = (c[n, 3, i], c[n, 4, i], c[n, 5, i])
    e2 = (c[n, 6, i], c[n, 7, i], c[n, 8, i])
    return (x / length, y / length, z / length), cross(e1, e2)
