import io
import os
import zipfile

import numpy as np
import pytest
from matplotlib.path import Path as Polygon

from identica.cli import main
from identica.datasets import dsprites
from identica.datasets._polygons import fill
from identica.datasets.dsprites import (
    classes_of,
    index_of,
    load,
    picture,
    render,
    sample,
    unpack,
)
from identica.errors import InputError


def test_real_frames_come_out_bit_for_bit(real):
    with np.load(real("dsprites", "real_frames.npz")) as frames:
        images, classes = unpack(frames["images_packed"]), frames["latents_classes"]
    found = render(classes)
    assert found.dtype == np.uint8
    assert found.max() == 1
    np.testing.assert_array_equal(found, images)


def test_pixels_are_those_whose_middle_lies_inside():
    """Against matplotlib's point-in-polygon test, pixel by pixel."""
    classes = sample(60, rng=0)
    images = render(classes)
    x, y = (axis.ravel() + 0.5 for axis in np.meshgrid(np.arange(64), np.arange(64)))
    for image, (shape, scale, orientation, *position) in zip(images, classes, strict=True):
        angle = -2 * np.pi * orientation / 39
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        outline = dsprites._outlines()[shape] * (0.5 + 0.1 * scale) @ turn.T
        outline = outline + 16 + 32 * np.array(position) / 31
        inside = Polygon(outline).contains_points(np.stack([x, y], axis=1))
        np.testing.assert_array_equal(image, inside.reshape(64, 64))


def test_fill_clips_at_the_border_and_counts_samples():
    """A 20×20 square hanging over each side in turn, with 5×5 points to a pixel."""
    square = 10.0 * np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
    centre = np.array([[0, 32], [64, 32], [32, 0], [32, 64], [-30, 32], [0.4, 0.4]])
    n = len(centre)
    images = fill([square], np.zeros(n, int), centre, np.ones(n), np.zeros(n), samples=5, white=25)
    np.testing.assert_array_equal(images.sum(axis=(1, 2)), [5000, 5000, 5000, 5000, 0, 52**2])
    assert images[0, 22:42, :10].min() == 25
    np.testing.assert_array_equal(images[5, :11, 10], [10] * 10 + [4])


def test_fill_turned_corners_out():
    """The direction of the outline does not matter, and holes of concave shapes stay black."""
    arrow = np.array([[0, -20], [15, 20], [0, 5], [-15, 20.0]])
    one = np.ones(2)
    centre = np.full((2, 2), 32.0)
    a, b = fill([arrow, arrow[::-1]], np.array([0, 1]), centre, one, 0 * one)
    np.testing.assert_array_equal(a, b)
    assert a[42, 32] == 0
    assert a[42, 23] == 1
    assert a[20, 32] == 1


def test_index_and_classes_run_through_the_data_set():
    index = np.array([0, 1, 31, 32, 1023, 1024, 737_279, 123_456])
    np.testing.assert_array_equal(index_of(classes_of(index)), index)
    np.testing.assert_array_equal(
        classes_of([1024 * 40 * 6, 1024 * 40, 1024, 32]),
        [[1, 0, 0, 0, 0], [0, 1, 0, 0, 0], [0, 0, 1, 0, 0], [0, 0, 0, 1, 0]],
    )


@pytest.mark.parametrize(
    ("classes", "match"),
    [
        ([[3, 0, 0, 0, 0]], r"below \(3, 6, 40, 32, 32\), got 3"),
        ([[0, 0, -1, 0, 0]], "at least 0 and below .*, got -1"),
        ([[0, 0, 0, 0, 32]], "below .*, got 32"),
        ([[0.0, 0, 0, 0, 0]], "whole numbers"),
        ([[0, 0, 0, 0]], "N×5"),
        ([0, 0, 0, 0, 0], "N×5"),
    ],
)
def test_factors_out_of_range(classes, match):
    with pytest.raises(InputError, match=match):
        render(classes)
    with pytest.raises(InputError, match=match):
        index_of(classes)


def test_places_out_of_range():
    for index in ([737_280], [-1], [0.5], [[1]], [[1], [2, 3]]):
        with pytest.raises(InputError, match="index must"):
            classes_of(index)
    for packed in (np.zeros((2, 511), np.uint8), [[1], [2, 3]]):
        with pytest.raises(InputError, match="packed must"):
            unpack(packed)


def test_picture_runs_through_each_factor():
    sheet = picture()
    assert sheet.shape == (5 * 66 + 2, 12 * 66 + 2)
    scale_row = sheet[68:132]
    areas = [(scale_row[:, 2 + 66 * k : 66 + 66 * k] == 255).sum() for k in range(12)]
    assert areas == sorted(areas)
    assert areas[0] < areas[-1]


@pytest.fixture
def small(monkeypatch, tmp_path):
    """A data set of 96 images, to try files on."""
    monkeypatch.setenv("IDENTICA_DATA", str(tmp_path))
    monkeypatch.setattr(dsprites, "SIZES", (3, 2, 2, 2, 4))
    monkeypatch.setattr(dsprites, "TOTAL", 96)
    monkeypatch.setattr(dsprites, "_CHUNK", 40)
    return tmp_path


def archive(path, images, classes, version=(1, 0)):
    """Like the original: compressed, and with a pickled member that must not be touched."""
    members = {"imgs": images, "latents_classes": classes, "metadata": np.array({"a": 1}, object)}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, array in members.items():
            content = io.BytesIO()
            if name == "metadata":
                np.lib.format.write_array(content, array, allow_pickle=True)
            else:
                np.lib.format.write_array(content, array, version=version)
            file.writestr(f"{name}.npy", content.getvalue())
    return path


def test_original_archive(small):
    classes = classes_of(np.arange(96))
    colour = np.zeros((96, 1), int)
    images = render(classes)[::-1].copy()  # so that it cannot be the re-rendered one
    path = small / "dsprites" / dsprites.ORIGINAL
    path.parent.mkdir()
    for version in ((1, 0), (2, 0)):
        archive(path, images, np.hstack([colour, classes]), version)
        packed = load()
        assert isinstance(packed, np.memmap)
        np.testing.assert_array_equal(unpack(packed), images)
    np.testing.assert_array_equal(load(path), packed)
    other = archive(small / "other.npz", images[::-1].copy(), np.hstack([colour, classes]))
    np.testing.assert_array_equal(unpack(load(other)), images[::-1])


def test_damaged_and_foreign_archives(small):
    classes = np.hstack([np.zeros((96, 1), int), classes_of(np.arange(96))])
    noise = np.random.default_rng(0).integers(0, 2, (96, 64, 64), np.uint8)
    bad = small / "bad.npz"
    for images, labels, match in (
        (noise[:95], classes, "imgs must be uint8 of shape 96×64×64"),
        (noise.astype(float), classes, "imgs must be uint8"),
        (noise * np.uint8(2), classes, "imgs must be 0 or 1"),
        (noise, classes[::-1], "latents_classes must be"),
        (noise, classes[:, 1:], "latents_classes must be"),
    ):
        with pytest.raises(InputError, match=rf"bad\.npz .*: {match}"):
            load(archive(bad, images, labels))
    whole = archive(bad, noise, classes).read_bytes()
    damaged = bytearray(whole)
    damaged[20_000] ^= 255
    with zipfile.ZipFile(bad) as file:
        checksum = file.getinfo("imgs.npy").CRC.to_bytes(4, "little")
    other = whole.replace(checksum, b"\x00\x11\x22\x33")
    for content in (whole[:30_000], whole[:-5], bytes(damaged), other, b"", b"hello"):
        bad.write_bytes(content)
        with pytest.raises(InputError, match=r"bad\.npz is damaged"):
            load(bad)
    np.savez(bad, something=np.zeros(3))
    with pytest.raises(InputError, match="must hold the arrays latents_classes"):
        load(bad)
    assert not list((small / "dsprites").iterdir())  # nothing half done is left
    with pytest.raises(InputError, match="does not exist"):
        load(small / "none.npz")
    with pytest.raises(InputError, match="download it from"):
        load()


def test_an_archive_damaged_after_it_was_read_is_noticed(small, capsys):
    """Its directory, checksums included, stays as it was, and so does the copy of the good one."""
    classes = np.hstack([np.zeros((96, 1), int), classes_of(np.arange(96))])
    path = archive(small / "a.npz", render(classes[:, 1:]), classes)
    load(path)
    whole = path.read_bytes()
    before = path.stat()
    damaged = bytearray(whole)
    damaged[300] ^= 255
    path.write_bytes(damaged)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(InputError, match=r"a\.npz is damaged"):
        load(path)
    assert main(["data", "dsprites", "check", str(path)]) == 2
    assert "a.npz is damaged" in capsys.readouterr().err
    path.write_bytes(whole)
    assert main(["data", "dsprites", "check", str(path)]) == 0


def test_bytes_after_the_images_do_not_hide_a_wrong_checksum(small):
    classes = np.hstack([np.zeros((96, 1), int), classes_of(np.arange(96))])
    path = archive(small / "a.npz", render(classes[:, 1:]), classes)
    with zipfile.ZipFile(path) as file:
        members = {name: file.read(name) for name in file.namelist()}
    members["imgs.npy"] += b"more"
    with zipfile.ZipFile(path, "w") as file:
        for name, content in members.items():
            file.writestr(name, content)
    with pytest.raises(InputError, match=r"a\.npz is damaged.*after its end"):
        load(path)


DATES = np.zeros((1, 5), "m8[s]")


@pytest.mark.parametrize(
    "classes", [DATES, DATES.astype("M8[s]"), DATES.astype(bool), np.zeros((1, 5), complex)]
)
@pytest.mark.parametrize("kind", [None, object])
def test_classes_of_other_kinds_are_refused(classes, kind):
    """Durations count as whole numbers to NumPy."""
    classes = classes.astype(kind or classes.dtype)
    with pytest.raises(InputError, match="latents_classes must be whole numbers"):
        render(classes)
    with pytest.raises(InputError, match="index must be whole numbers"):
        classes_of(classes[0])


@pytest.mark.parametrize("kind", [np.uint8, np.int8, np.uint64, np.int32])
def test_classes_of_any_whole_type_mean_the_same(kind):
    classes = sample(20, rng=0)
    np.testing.assert_array_equal(render(classes.astype(kind)), render(classes))


def test_nothing_gives_no_images():
    assert render(np.empty((0, 5), int)).shape == (0, 64, 64)
    assert render(np.empty((0, 5))).shape == (0, 64, 64)
    assert classes_of([]).shape == (0, 5)
    for nothing in ([], [[]]):
        with pytest.raises(InputError, match="N×5"):
            render(nothing)
    with pytest.raises(InputError, match="N×5"):
        render([[0, 0], [0]])


def test_absurd_sizes_are_refused():
    for draw in (sample, dsprites.pairs_uni, dsprites.pairs_lap):
        for n in (10**15, 10**30, -1, 1.5):
            with pytest.raises(InputError, match="n must be"):
                draw(n, rng=0)
    with pytest.raises(InputError, match="packed must be uint8"):
        dsprites.compare(np.zeros((3, 512), np.uint8))
    with pytest.raises(InputError, match=r"index must be .* below 737280"):
        classes_of(np.array([2**63], np.uint64))
