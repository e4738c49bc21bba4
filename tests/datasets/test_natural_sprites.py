from itertools import pairwise

import numpy as np
import pytest
from matplotlib.path import Path as Polygon

from identica.datasets import kitti_masks, natural_sprites
from identica.datasets.natural_sprites import SIZES, from_kitti, load, picture, render
from identica.errors import InputError


def random_factors(n, seed=0):
    rng = np.random.default_rng(seed)
    position, scale = rng.uniform(0.1, 0.9, (n, 2)), rng.uniform(0.05, 0.5, (n, 1))
    return np.hstack([position, scale, rng.integers(0, [40, 4], (n, 2))])


def corners(shape):
    """The shapes spelled out: a square, a triangle, a star, a plus sign; y up, area not yet 1."""
    star = [(1, 1), (0, 2 * 2**0.5), (-1, 1), (-2 * 2**0.5, 0)]
    arm = 1 + 2**0.5
    plus = [(arm, 1), (1, 1), (1, arm), (-1, arm), (-1, 1), (-arm, 1)]
    return np.array(
        [
            [(1, 1), (-1, 1), (-1, -1), (1, -1)],
            [(0, 2), (-(3**0.5), -1), (3**0.5, -1)],
            star + [(-x, -y) for x, y in star],
            plus + [(-x, -y) for x, y in plus],
        ][shape],
        float,
    )


AREAS = (4, 3 * 3**0.5, 8 * 2**0.5, 4 + 8 * 2**0.5)


def test_images_agree_with_a_point_in_polygon_test():
    """Share of 5×5 points inside, by matplotlib, at any position, size and orientation."""
    factors = random_factors(24)
    factors[:, 4] = np.arange(24) % 4
    lattice = (np.arange(320) + 0.5) / 5
    points = np.stack(np.meshgrid(lattice, lattice), axis=-1).reshape(-1, 2)
    for image, (x, y, scale, orientation, shape) in zip(render(factors), factors, strict=True):
        angle = np.deg2rad(9 * orientation)
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        outline = corners(int(shape)) * 64 * scale / AREAS[int(shape)] ** 0.5 @ turn.T
        outline = outline * [1, -1] + [64 * x, 64 * y]
        inside = Polygon(outline).contains_points(points).reshape(64, 5, 64, 5)
        np.testing.assert_array_equal(image, np.round(inside.mean(axis=(1, 3)) * 255))


def test_area_and_centre_are_the_factors():
    factors = random_factors(400)
    factors[:, :2] = 0.4 + 0.25 * factors[:, :2]
    factors[:, 2] = 0.1 + 0.4 * factors[:, 2]
    images = render(factors) / 255
    area = images.sum(axis=(1, 2))
    np.testing.assert_allclose(area, (64 * factors[:, 2]) ** 2, rtol=0.03)
    middles = np.arange(64) + 0.5
    x, y = images.sum(axis=1) @ middles / area, images.sum(axis=2) @ middles / area
    np.testing.assert_allclose(x / 64, factors[:, 0], atol=0.002)
    np.testing.assert_allclose(y / 64, factors[:, 1], atol=0.002)


@pytest.mark.parametrize(
    ("factors", "match"),
    [
        ([[1.1, 0.5, 0.2, 0, 0]], "x must be in 0…1"),
        ([[0.5, -0.1, 0.2, 0, 0]], "y must be in 0…1"),
        ([[0.5, 0.5, 0, 0, 0]], "scale must be above 0"),
        ([[0.5, 0.5, 0.2, 40, 0]], "orientation must be whole, 0…39, got 40"),
        ([[0.5, 0.5, 0.2, 0.5, 0]], "orientation must be whole"),
        ([[0.5, 0.5, 0.2, 0, 4]], "shape must be whole, 0…3"),
        ([[0.5, 0.5, np.nan, 0, 0]], "factors must be finite"),
        ([[0.5, 0.5, 0.2, 0]], "N×5"),
        ([["a", 0.5, 0.2, 0, 0]], "factors must be numeric"),
        ([["0.5", "0.5", "0.2", "0", "0"]], "factors must be numeric"),
        (np.full((1, 5), 0.5, object), "factors must be numeric"),
        (np.full((1, 5), 0.5 + 1j), "factors must be numeric"),
        (np.zeros((1, 5), "M8[D]"), "factors must be numeric"),
    ],
)
def test_factors_out_of_range(factors, match):
    with pytest.raises(InputError, match=match):
        render(factors)


def measured_file(path, films):
    """Films are lists of frames, a frame a list of windows, as the loader documents it."""
    frames = max(map(len, films))
    lines = ["id,cat_id," + ",".join(f"t_{k}" for k in range(frames))]
    for number, film in enumerate(films):
        cells = [f'"{frame}"' if frame else "" for frame in film]
        lines.append(f"{number},7," + ",".join(cells + [""] * (frames - len(film))))
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def films():
    rng = np.random.default_rng(0)

    def window():
        y, x, area = rng.uniform(0, 63), rng.uniform(0, 63), int(rng.integers(1, 1500))
        return (y, x, area) if rng.random() < 0.8 else None

    return [
        [
            [window() for _ in range(3)] if rng.random() < 0.8 else []
            for _ in range(rng.integers(2, 12))
        ]
        for _ in range(80)
    ]


def neighbours(films):
    """All transitions (x, y, area), directly."""
    moves = []
    for film in films:
        for before, after in pairwise(film):
            for a, b in zip(before, after, strict=False):
                if a and b:
                    moves.append([(a[1], a[0], a[2]), (b[1], b[0], b[2])])
    return np.array(moves)


def test_measured_transitions_are_filtered_and_scaled(tmp_path, films):
    sprites = load(measured_file(tmp_path / "a.csv", films))
    assert sprites.name == "natural-sprites"
    assert not sprites.discrete
    moves = neighbours(films)
    area = moves[:, :, 2]
    bounds = [(np.percentile(area[:, k], 5), np.percentile(area[:, k], 95)) for k in (0, 1)]
    kept = np.array(
        [all(lo <= a <= hi for a, (lo, hi) in zip(m, bounds, strict=True)) for m in area]
    )
    assert 0 < (~kept).sum() < len(moves) / 4
    expected = moves[kept] / [64, 64, 4096]
    expected[:, :, 2] **= 0.5
    np.testing.assert_allclose(sprites.transitions, expected)


def test_discrete_version_takes_the_nearest_of_equal_bins(tmp_path, films):
    path = measured_file(tmp_path / "a.csv", films)
    exact, sprites = load(path).transitions, load(path, discrete=True)
    assert sprites.discrete
    assert np.issubdtype(sprites.transitions.dtype, np.integer)
    for k, size in enumerate((32, 32, 6)):
        measured = exact[:, :, k] ** (2 if k == 2 else 1)  # bins are equal in area, not scale
        values = sprites.values[k] ** (2 if k == 2 else 1)
        assert len(values) == size
        width = (measured.max() - measured.min()) / size
        np.testing.assert_allclose(values, measured.min() + width * (np.arange(size) + 0.5))
        nearest = np.abs(measured[..., None] - values).argmin(axis=-1)
        np.testing.assert_array_equal(sprites.transitions[:, :, k], nearest)
    first, _ = sprites.pairs(50, rng=0)
    value = [sprites.values[k][first[:, k]] for k in range(3)]
    np.testing.assert_array_equal(
        sprites.images(first), render(np.column_stack([*value, first[:, 3:]]))
    )


def test_no_value_is_taken_from_memory_as_it_was(tmp_path, films, monkeypatch):
    path = measured_file(tmp_path / "a.csv", films)
    expected = load(path, discrete=True)
    monkeypatch.setattr(np, "empty", lambda shape, dtype=float: np.full(shape, -1, dtype))
    found = load(path, discrete=True)  # without a warning of roots
    np.testing.assert_array_equal(found.transitions, expected.transitions)


@pytest.mark.parametrize("discrete", [False, True])
def test_pairs_are_measured_moves_with_orientation_and_shape_kept(tmp_path, films, discrete):
    sprites = load(measured_file(tmp_path / "a.csv", films), discrete=discrete)
    first, second = sprites.pairs(3000, rng=0)
    assert first.shape == second.shape == (3000, 5)
    np.testing.assert_array_equal(first[:, 3:], second[:, 3:])
    moves = {tuple(move.ravel()) for move in sprites.transitions}
    assert {tuple(move) for move in np.hstack([first[:, :3], second[:, :3]])} == moves
    assert set(first[:, 3]) == set(range(40))
    assert set(first[:, 4]) == set(range(4))
    again = sprites.pairs(3000, np.random.default_rng(0))
    np.testing.assert_array_equal(first, again[0])
    assert sprites.images(first[:3]).shape == (3, 64, 64)
    assert picture(sprites).shape == (6 * 66 + 2, 12 * 66 + 2)


def test_samplers(tmp_path, films):
    path = measured_file(tmp_path / "a.csv", films)
    sprites = load(path, discrete=True)
    assert [len(np.unique(c)) for c in sprites.sample(2000, rng=0).T] == list(SIZES)
    continuous = load(path)
    drawn = continuous.sample(500, rng=0)
    starts = {tuple(move) for move in continuous.transitions[:, 0]}
    assert {tuple(row) for row in drawn[:, :3]} <= starts
    for bad in ([[0, 0, 6, 0, 0]], [[0, 0, 0, 0, -1]], [[0.5, 0, 0, 0, 0]], [[0, 0]]):
        with pytest.raises(InputError, match="factors must"):
            sprites.images(bad)


def test_kitti_version_is_named_so_and_moves_as_the_masks_do(real):
    masks = kitti_masks.load(real("kitti_masks", "kitti_masks.npz"))
    sprites = from_kitti(masks)
    assert sprites.name == from_kitti(masks, discrete=True).name == "natural-sprites-kitti"
    starts = np.cumsum(masks.seq_lengths) - masks.seq_lengths
    y, x, area = masks.latents.T.astype(float)
    expected = []
    for start, length in zip(starts, masks.seq_lengths, strict=True):
        expected += [(i, i + 1) for i in range(start, start + length - 1)]
    i, j = np.array(expected).T
    assert len(i) == 82_506
    kept = np.ones(len(i), bool)
    for k in (i, j):
        low, high = np.percentile(area[k], [5, 95])
        kept &= (area[k] >= low) & (area[k] <= high)
    i, j = i[kept], j[kept]
    for k, frame in enumerate((i, j)):
        found = sprites.transitions[:, k]
        np.testing.assert_allclose(found * 64, np.stack([x, y, area**0.5], axis=1)[frame])


def test_bad_files(tmp_path, monkeypatch):
    path = tmp_path / "bad.csv"
    good = '"[(1.0, 2.0, 30)]"'
    for content, match in (
        ("", "must have the columns"),
        ("id,t_0,t_1\n", r"missing: \['cat_id'\]"),
        ("x,y,area\n1,2,3\n", r"missing: \['id', 'cat_id', 't_0', 't_1'\]"),
        ("id,cat_id,t_0,t_1\n", "at least 2 transitions, got 0"),
        (f"id,cat_id,t_0,t_1\n1,2,{good},{good}\n", "at least 2 transitions, got 1"),
        (f"id,cat_id,t_0,t_1\n1,2,{good}\n", "line 2"),
        (f"id,cat_id,t_0,t_1\n1,2,{good},{good}\n1,2,{good},open('x')\n", "line 3"),
        (f'id,cat_id,t_0,t_1\n1,2,{good},"[(1.0, 2.0)]"\n', "line 2"),
        (f'id,cat_id,t_0,t_1\n1,2,{good},"[(1.0, 99.0, 30)]"\n', "line 2"),
        (f'id,cat_id,t_0,t_1\n1,2,{good},"[(1.0, 2.0, 0)]"\n', "line 2"),
        (f"id,cat_id,t_0,t_1\n1,2,{good},7\n", "line 2"),
        (f"id,cat_id,t_0,t_1\n1,2,{good},'['123']'\n", "line 2"),
        (f"id,cat_id,t_0,t_1\n1,2,{good},\"['123']\"\n", "line 2"),
        (f"id,cat_id,t_0,t_1\n1,2,{good},\"[('1', '2', '3')]\"\n", "line 2"),
        (f'id,cat_id,t_0,t_1\n1,2,{good},"[(True, True, True)]"\n', "line 2"),
        (f"id,cat_id,t_0,t_1\n1,2,{good},{good}\n\n", "line 3"),
    ):
        path.write_text(content)
        with pytest.raises(InputError, match=match):
            load(path)
    path.write_bytes(b"\xff\xfe\x00binary\x00")
    with pytest.raises(InputError, match="not comma-separated text"):
        load(path)
    with pytest.raises(InputError, match=r"none\.csv does not exist"):
        load(tmp_path / "none.csv")
    monkeypatch.setenv("IDENTICA_DATA", str(tmp_path))
    with pytest.raises(InputError, match="download it from"):
        load()
    assert natural_sprites.MEASURED == "downscale_keepaspect.csv"


def test_files_of_other_systems_are_the_same(tmp_path, films):
    """A byte order mark and Windows line endings, as spreadsheets write them."""
    path = measured_file(tmp_path / "a.csv", films)
    plain = load(path).transitions
    other = tmp_path / "b.csv"
    other.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    np.testing.assert_array_equal(load(other).transitions, plain)


def test_absurd_sizes_and_other_kinds_are_refused(tmp_path, films):
    sprites = load(measured_file(tmp_path / "a.csv", films), discrete=True)
    for draw in (sprites.sample, sprites.pairs):
        with pytest.raises(InputError, match=r"n must be .* at most"):
            draw(10**15, rng=0)
    for kind in ("m8[s]", "M8[s]", bool, complex, object):
        with pytest.raises(InputError, match="factors must be whole numbers"):
            sprites.images(np.zeros((1, 5)).astype(kind))
