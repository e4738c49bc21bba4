"""The Utah teapot as a mesh of triangles, from its 32 public Bézier patches."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Mesh(NamedTuple):
    """Triangles that share smoothed vertices."""

    points: NDArray[np.float64]  # V×3
    normals: NDArray[np.float64]  # V×3, unit length, pointing outwards
    triangles: NDArray[np.int32]  # T×3, indices into points


@cache
def teapot(steps: int = 10) -> Mesh:
    """The teapot of 3DIdent: each patch cut into `steps` × `steps` cells of two triangles.

    A patch is P(u, v) = Σ_ab B_a(u) B_b(v) C_ab with the cubic Bernstein
    polynomials B and the control points C measured by M. Newell (1975). It is
    turned by 315° about z, centred, and scaled so that its largest side is 4.442.

    >>> mesh = teapot()
    >>> (mesh.points.max(axis=0) - mesh.points.min(axis=0)).round(3)
    array([4.442, 4.442, 2.999])
    """
    with (files(__package__) / "teapot.npz").open("rb") as stream:
        data = np.load(stream, allow_pickle=False)
        control = data["points"].astype(np.float64)[data["patches"]]
    u = np.linspace(0, 1, steps + 1)[:, None]
    bernstein = np.hstack([(1 - u) ** 3, 3 * u * (1 - u) ** 2, 3 * u**2 * (1 - u), u**3])
    grid = np.einsum("ia,jb,pabk->pijk", bernstein, bernstein, control)

    half = np.sqrt(0.5)
    turn = np.array([[half, half, 0], [-half, half, 0], [0, 0, 1]])
    points = 1.5 * (0.6347 * grid.reshape(-1, 3) @ turn.T - [0, 0, 0.9067])

    # Patches share their borders: weld the vertices so that normals are smooth across them.
    _, first, weld = np.unique(points.round(4), axis=0, return_index=True, return_inverse=True)
    cell = weld.reshape(-1, steps + 1, steps + 1)
    a, b, c, d = cell[:, :-1, :-1], cell[:, :-1, 1:], cell[:, 1:, 1:], cell[:, 1:, :-1]
    triangles = np.stack([np.stack([a, b, c], -1), np.stack([a, c, d], -1)], 3).reshape(-1, 3)
    # Cells at the poles of lid and bottom have a side of length zero.
    proper = (triangles != np.roll(triangles, 1, axis=1)).all(axis=1)
    triangles = triangles[proper].astype(np.int32)
    points = points[first]
    return Mesh(points, _vertex_normals(points, triangles), triangles)


def _vertex_normals(
    points: NDArray[np.float64], triangles: NDArray[np.int32]
) -> NDArray[np.float64]:
    """The mean normal of the triangles at each vertex, weighted by their angle there."""
    corners = points[triangles]
    face = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    face /= np.linalg.norm(face, axis=1, keepdims=True)
    total = np.zeros_like(points)
    for k in range(3):
        p = corners[:, (k + 1) % 3] - corners[:, k]
        q = corners[:, (k + 2) % 3] - corners[:, k]
        cosine = (p * q).sum(1) / np.linalg.norm(p, axis=1) / np.linalg.norm(q, axis=1)
        np.add.at(total, triangles[:, k], face * np.arccos(cosine.clip(-1, 1))[:, None])
    return total / np.linalg.norm(total, axis=1, keepdims=True)
