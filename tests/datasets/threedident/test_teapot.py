from importlib.resources import files

import numpy as np

from identica.datasets.threedident.scene import SIDE
from identica.datasets.threedident.teapot import teapot


def de_casteljau(points, t):
    while len(points) > 1:
        points = (1 - t) * points[:-1] + t * points[1:]
    return points[0]


def test_the_box_is_that_of_the_original_mesh():
    size = np.ptp(teapot().points, axis=0)
    np.testing.assert_allclose(size[:2], SIDE, atol=1.5e-4)
    np.testing.assert_allclose(size[2], 1.5 * 0.6347 * 3.15, rtol=1e-6)


def test_points_lie_on_the_bezier_patches():
    with (files("identica.datasets.threedident") / "teapot.npz").open("rb") as stream:
        data = np.load(stream, allow_pickle=False)
        control = data["points"].astype(float)[data["patches"]]
    angle = np.deg2rad(315)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    points = teapot().points
    for patch in (0, 7, 13, 18, 25, 31):
        for i, j in ((0, 0), (3, 7), (10, 4)):
            curve = np.stack([de_casteljau(row, j / 10) for row in control[patch]])
            x, y, z = de_casteljau(curve, i / 10)
            there = 1.5 * np.array([*(0.6347 * turn @ [x, y]), 0.6347 * z - 0.9067])
            assert np.linalg.norm(points - there, axis=1).min() < 1e-4


def test_patches_are_welded_without_flat_triangles():
    mesh = teapot()
    assert len(mesh.points) == 3241
    assert len(np.unique(mesh.triangles)) == len(mesh.points)
    a, b, c = mesh.points[mesh.triangles].transpose(1, 0, 2)
    assert np.linalg.norm(np.cross(b - a, c - a), axis=1).min() > 1e-6
    # Every edge but those of the rims has a triangle on both sides, which runs it the other way.
    edges = np.concatenate([mesh.triangles[:, [k, (k + 1) % 3]] for k in range(3)])
    forward = set(map(tuple, edges.tolist()))
    assert sum((b, a) in forward for a, b in forward) / len(forward) > 0.97


def test_normals_have_unit_length_and_point_outwards():
    mesh = teapot()
    np.testing.assert_allclose(np.linalg.norm(mesh.normals, axis=1), 1)
    belly = (np.abs(mesh.points[:, 2]) < 0.5) & (np.hypot(*mesh.points[:, :2].T) < 1.91)
    radial = mesh.points[belly, :2] / np.linalg.norm(mesh.points[belly, :2], axis=1, keepdims=True)
    assert ((mesh.normals[belly, :2] * radial).sum(axis=1) > 0.5).mean() > 0.9
    top, bottom = mesh.points[:, 2].argmax(), mesh.points[:, 2].argmin()
    assert mesh.normals[top, 2] > 0.99
    assert mesh.normals[bottom, 2] < -0.9
