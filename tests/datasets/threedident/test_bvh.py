import numpy as np
import pytest

from identica.datasets.threedident.bvh import DEPTH, WIDTH, blocked, build, closest, normals
from identica.datasets.threedident.teapot import teapot


@pytest.fixture(scope="module")
def tree():
    return build(teapot())


@pytest.fixture(scope="module")
def rays():
    """Random rays that pass by or through the teapot, and every distance at which they hit it."""
    rng = np.random.default_rng(0)
    o = rng.normal(size=(300, 3))
    o *= 8 / np.linalg.norm(o, axis=1, keepdims=True)
    d = rng.uniform(-2, 2, (300, 3)) - o
    d /= np.linalg.norm(d, axis=1, keepdims=True)
    a, b, c = teapot().points[teapot().triangles].transpose(1, 0, 2)
    distances = np.empty((len(o), len(a)))
    for i in range(len(o)):
        # o + t·d = a + u·(b - a) + v·(c - a), solved for each triangle
        system = np.stack([np.broadcast_to(-d[i], a.shape), b - a, c - a], axis=2)
        t, u, v = np.linalg.solve(system, (o[i] - a)[..., None])[..., 0].T
        inside = (u >= 0) & (v >= 0) & (u + v <= 1) & (t > 0)
        distances[i] = np.where(inside, t, np.inf)
    return o, d, distances


def corners_of(tree, k):
    c = tree.corners[k // WIDTH, :, k % WIDTH].astype(float)
    return c[:3], c[:3] + c[3:6], c[:3] + c[6:]


def test_every_triangle_is_in_one_leaf(tree):
    held = tree.corners.transpose(0, 2, 1).reshape(-1, 9)
    held = held[np.any(held != 0, axis=1)]
    a, b, c = teapot().points[teapot().triangles].transpose(1, 0, 2)
    given = np.hstack([a, b - a, c - a]).astype(np.float32)
    np.testing.assert_array_equal(held[np.lexsort(held.T)], given[np.lexsort(given.T)])


def test_balls_hold_the_whole_teapot(tree):
    centres, radii = tree.balls[:3].T.astype(float), tree.balls[3].astype(float)
    gaps = np.linalg.norm(teapot().points[:, None] - centres, axis=2) - radii
    assert gaps.min(axis=1).max() < 1e-5


def test_the_closest_hit_is_that_of_all_triangles(tree, rays):
    o, d, distances = rays
    stack = np.empty(DEPTH, np.int32)
    first = distances.min(axis=1)
    assert 0.3 < np.isfinite(first).mean() < 0.95
    for i in range(len(o)):
        far, k = closest(tree, stack, tuple(o[i]), tuple(d[i]), 100.0)
        if np.isfinite(first[i]):
            assert far == pytest.approx(first[i], abs=2e-5)
            a, b, c = corners_of(tree, k)
            normal = np.cross(b - a, c - a)
            gap = normal @ (o[i] + far * d[i] - a) / np.linalg.norm(normal)
            assert abs(gap) < 1e-4
        else:
            assert (far, k) == (100.0, -1)


def test_a_hit_beyond_the_reach_does_not_count(tree, rays):
    o, d, distances = rays
    stack = np.empty(DEPTH, np.int32)
    first = distances.min(axis=1)
    for i in np.flatnonzero(np.isfinite(first))[:50]:
        for reach, free in ((first[i] - 1e-3, True), (first[i] + 1e-3, False)):
            assert closest(tree, stack, tuple(o[i]), tuple(d[i]), reach)[1] < 0 or not free
            assert blocked(tree, stack, tuple(o[i]), tuple(d[i]), reach, -1) is not free


def test_blocked_from_a_surface_is_what_all_other_triangles_say(tree, rays):
    o, d, distances = rays
    stack = np.empty(DEPTH, np.int32)
    for i in range(len(o)):
        hit = np.sort(distances[i])
        if not np.isfinite(hit[0]):
            assert not blocked(tree, stack, tuple(o[i]), tuple(d[i]), 100.0, -1)
            continue
        far, k = closest(tree, stack, tuple(o[i]), tuple(d[i]), 100.0)
        more = hit[np.isfinite(hit)] - hit[0]
        if np.any((more > 1e-6) & (more < 1e-3)):
            continue  # too close to an edge to tell
        p = tuple(o[i] + far * d[i])
        assert blocked(tree, stack, p, tuple(d[i]), 100.0, k) == bool(np.any(more >= 1e-3))


def test_normals_are_interpolated_between_the_corners(tree):
    k = 8 * 500 + 1
    a, b, c = corners_of(tree, k)
    flat = np.cross(b - a, c - a)
    corner_normals = tree.normals[k // WIDTH, :, k % WIDTH].reshape(3, 3)
    weights = np.array([0.5, 0.2, 0.3])
    eye = weights @ [a, b, c] + 3 * flat / np.linalg.norm(flat)
    smooth, own = normals(tree, k, tuple(eye), tuple(-flat / np.linalg.norm(flat)))
    expected = weights @ corner_normals
    np.testing.assert_allclose(smooth, expected / np.linalg.norm(expected), atol=1e-4)
    np.testing.assert_allclose(own, flat, atol=1e-6)
