"""Folders of images as they are read: their layouts, rows, and damage."""

import math
import shutil

import numpy as np
import pytest
from PIL import Image

from helpers.paintings import SIZE, everything, never, paint
from identica.datasets.threedident import render, storage
from identica.datasets.threedident.storage import ImageSet, build
from identica.errors import InputError


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(storage, "BLOCK", 4)


@pytest.fixture
def z():
    return np.random.default_rng(0).uniform(-1, 1, (10, 10))


@pytest.mark.parametrize("packed", [True, False])
def test_what_is_built_is_read_again(tmp_path, z, packed):
    data = build(tmp_path, z, paint, size=SIZE, packed=packed)
    assert len(data) == 10
    assert data.size == SIZE
    np.testing.assert_array_equal(data.raw_latents, z)
    rows = [9, 0, 3, 4, 3]
    np.testing.assert_array_equal(data.images(rows), paint(z[rows], SIZE))
    assert data.images([]).shape == (0, SIZE, SIZE, 3)
    with pytest.raises(InputError, match="at least 0 and below 10"):
        data.images([10])
    with pytest.raises(InputError, match="at least 0 and below 10"):
        data.images([-1])


def test_the_published_layout(tmp_path, z):
    build(tmp_path, z, paint, size=SIZE, packed=False)
    names = sorted(path.name for path in (tmp_path / "images").iterdir())
    assert names == [f"{i:06d}.png" for i in range(10)]
    with Image.open(tmp_path / "images" / "000007.png") as image:
        np.testing.assert_array_equal(np.asarray(image), paint(z[7:8], SIZE)[0])
    np.testing.assert_array_equal(np.load(tmp_path / "raw_latents.npy"), z)


def test_the_original_download_is_read_with_all_it_holds(tmp_path, z):
    """Other files beside, an alpha channel in the images, latents in single precision."""
    (tmp_path / "images").mkdir()
    np.save(tmp_path / "raw_latents.npy", z.astype(np.float32))
    np.save(tmp_path / "latents.npy", 100 * z)
    for i, image in enumerate(paint(z, SIZE)):
        opaque = np.concatenate([image, np.full((SIZE, SIZE, 1), 255, np.uint8)], axis=2)
        Image.fromarray(opaque).save(tmp_path / "images" / f"{i:06d}.png")
    data = ImageSet(tmp_path)
    np.testing.assert_allclose(data.raw_latents, z, atol=1e-7)
    np.testing.assert_array_equal(data.images(range(10)), paint(z, SIZE))


@pytest.mark.parametrize("n", [1, 7, 10, 11])
def test_the_published_names_are_as_short_as_their_number_allows(tmp_path, n):
    """The authors pad to ⌈log10 n⌉ digits: their 25,000 test images are 00000.png to 24999.png."""
    z = np.random.default_rng(0).uniform(-1, 1, (n, 10))
    (tmp_path / "images").mkdir()
    np.save(tmp_path / "raw_latents.npy", z)
    for i, image in enumerate(paint(z, SIZE)):
        name = f"{str(i).zfill(math.ceil(math.log10(n)))}.png"
        Image.fromarray(image).save(tmp_path / "images" / name)
    data = ImageSet(tmp_path)
    np.testing.assert_array_equal(data.images(range(n)), paint(z, SIZE))
    before = everything(tmp_path)
    with pytest.raises(InputError, match="another data set"):
        build(tmp_path, z, never, size=SIZE, packed=False)
    assert everything(tmp_path) == before

    (tmp_path / "images" / name).rename(tmp_path / "images" / f"{n - 1:04d}.png")
    with pytest.raises(InputError, match=rf"there is {n - 1:04d}.png"):
        ImageSet(tmp_path)
    (tmp_path / "images" / f"{n - 1:04d}.png").unlink()
    with pytest.raises(InputError, match=f"the first is {name}"):
        ImageSet(tmp_path)


def test_a_missing_first_image_is_named_as_the_others_are(tmp_path, z):
    build(tmp_path, z, paint, size=SIZE, packed=False)
    (tmp_path / "images" / "000000.png").unlink()
    with pytest.raises(InputError, match=r"1 are missing, the first is 000000.png"):
        ImageSet(tmp_path)


def test_packed_files_are_those_of_numpy(tmp_path, z):
    build(tmp_path, z, paint, size=SIZE, step=3)
    np.save(tmp_path / "expected.npy", paint(z[4:8], SIZE))
    found = (tmp_path / "packed" / "000004.npy").read_bytes()
    assert found == (tmp_path / "expected.npy").read_bytes()


@pytest.mark.parametrize("packed", [True, False])
def test_damage_is_told_in_one_sentence(tmp_path, z, packed):
    whole = tmp_path / "whole"
    build(whole, z, paint, size=SIZE, packed=packed)
    home, first = ("packed", "000004.npy") if packed else ("images", "000004.png")

    def damaged(change):
        shutil.rmtree(tmp_path / "copy", ignore_errors=True)
        shutil.copytree(whole, tmp_path / "copy")
        change(tmp_path / "copy")
        return ImageSet(tmp_path / "copy")

    def cut(folder):
        content = (folder / home / first).read_bytes()
        (folder / home / first).write_bytes(content[: len(content) // 2])

    def latents(array):
        return lambda folder: np.save(folder / "raw_latents.npy", array)

    with pytest.raises(InputError, match=r"raw_latents.npy does not exist"):
        damaged(lambda folder: (folder / "raw_latents.npy").unlink())
    with pytest.raises(InputError, match=rf"1 are missing, the first is {first}"):
        damaged(lambda folder: (folder / home / first).unlink())
    with pytest.raises(InputError, match="a folder images or packed"):
        damaged(lambda folder: shutil.rmtree(folder / home))
    with pytest.raises(InputError, match=rf"{first} is damaged.*: delete it and run build"):
        damaged(cut).images(range(10))
    (tmp_path / "copy" / home / first).unlink()  # as told
    mended = build(tmp_path / "copy", z, paint, size=SIZE, packed=packed)
    np.testing.assert_array_equal(mended.images(range(10)), paint(z, SIZE))
    with pytest.raises(InputError, match="the latents belong to another data set"):
        damaged(latents(z[:4]))
    with pytest.raises(InputError, match="missing"):
        damaged(latents(np.concatenate([z, z])))
    with pytest.raises(InputError, match=r"raw_latents.npy: .*\[-1, 1\].*row 3"):
        damaged(latents(z + 2 * (np.arange(10) == 3)[:, None]))
    with pytest.raises(InputError, match="it is empty"):
        damaged(latents(z[:0]))
    with pytest.raises(InputError, match=r"raw_latents.npy"):
        damaged(lambda folder: (folder / "raw_latents.npy").write_bytes(b"no array"))


def test_a_latents_file_that_is_a_little_longer_is_noticed(tmp_path, z):
    build(tmp_path, z, paint, size=SIZE)
    np.save(tmp_path / "raw_latents.npy", z[:9])
    with pytest.raises(
        InputError, match=r"000008.npy must be uint8 of shape 1×6×6×3, got uint8 of shape 2×6×6×3"
    ):
        ImageSet(tmp_path)


def test_images_of_another_size_are_noticed(tmp_path, z):
    build(tmp_path, z, paint, size=SIZE, packed=False)
    Image.fromarray(paint(z, 5)[3]).save(tmp_path / "images" / "000003.png")
    with pytest.raises(InputError, match=r"000003.png must be .* 6×6×3"):
        ImageSet(tmp_path).images(range(10))


def test_pickles_are_not_opened(tmp_path, z):
    build(tmp_path, z, paint, size=SIZE)
    np.save(tmp_path / "raw_latents.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match=r"raw_latents.npy"):
        ImageSet(tmp_path)


def test_the_ray_caster_draws_the_same_in_blocks(tmp_path, z):
    data = build(tmp_path, z[:5], render, size=16)
    np.testing.assert_array_equal(data.images(range(5)), render(z[:5], 16))


@pytest.mark.parametrize("kind", [np.uint8, bool, complex, "m8[s]", "M8[s]", "U3"])
def test_latents_that_are_not_floats_are_refused(tmp_path, z, kind):
    """Labels of 0 and 1 lie in [-1, 1], too."""
    build(tmp_path, z, paint, size=SIZE)
    np.save(tmp_path / "raw_latents.npy", np.zeros((10, 10)).astype(kind))
    with pytest.raises(InputError, match=r"raw_latents.npy must hold floats"):
        ImageSet(tmp_path)


@pytest.mark.parametrize("packed", [True, False])
def test_rows_have_to_be_whole_numbers(tmp_path, z, packed):
    data = build(tmp_path, z, paint, size=SIZE, packed=packed)
    for rows in ([0.5], [True] * 10, ["3"], np.zeros(1, "m8[s]"), 3, [[1]]):
        with pytest.raises(InputError, match="rows must be whole numbers"):
            data.images(rows)
    np.testing.assert_array_equal(data.images(np.array([9], np.uint8)), paint(z[9:], SIZE))


def test_latents_beyond_all_measure_are_told_without_a_warning(tmp_path, z):
    build(tmp_path, z, paint, size=SIZE)
    np.save(tmp_path / "raw_latents.npy", np.full((10, 10), 1e306))
    with pytest.raises(InputError, match=r"10 of 10 rows"):
        ImageSet(tmp_path)
