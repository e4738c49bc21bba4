import multiprocessing
import shutil

import numpy as np
import pytest
from PIL import Image

from identica._check import InputError
from identica.datasets.threedident import render, storage
from identica.datasets.threedident.storage import ImageSet, build

SIZE = 6


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(storage, "BLOCK", 4)
    monkeypatch.setattr(storage, "STEP", 2)


@pytest.fixture
def z():
    return np.random.default_rng(0).uniform(-1, 1, (10, 10))


def paint(z, size):
    """An image that tells its latents: pixel k has the colour of latent k mod 10."""
    levels = ((z + 1) * 127.5).round().astype(np.uint8)
    columns = np.arange(size * size * 3) % 10
    return levels[:, columns].reshape(len(z), size, size, 3)


def files(folder):
    return {
        path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


@pytest.mark.parametrize("packed", [True, False])
def test_what_is_built_is_read_again(tmp_path, z, packed):
    data = build(tmp_path, z, paint, size=SIZE, packed=packed)
    assert len(data) == 10
    assert data.size == SIZE
    np.testing.assert_array_equal(data.raw_latents, z)
    rows = [9, 0, 3, 4, 3]
    np.testing.assert_array_equal(data.images(rows), paint(z[rows], SIZE))
    assert data.images([]).shape == (0, SIZE, SIZE, 3)
    with pytest.raises(InputError, match="between 0 and 9"):
        data.images([10])
    with pytest.raises(InputError, match="between 0 and 9"):
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


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("stop", [0, 2, 7, 9])
def test_a_build_that_was_interrupted_ends_in_the_same_files(tmp_path, z, packed, stop):
    drawn = []

    def fragile(z, size):
        if len(drawn) + len(z) > stop:
            raise KeyboardInterrupt
        drawn.extend(z)
        return paint(z, size)

    with pytest.raises(KeyboardInterrupt):
        build(tmp_path / "a", z, fragile, size=SIZE, packed=packed)
    with pytest.raises(InputError, match=r"missing.*goes on"):
        ImageSet(tmp_path / "a")
    again = []

    def counting(z, size):
        again.extend(z)
        return paint(z, size)

    build(tmp_path / "a", z, counting, size=SIZE, packed=packed)
    build(tmp_path / "b", z, paint, size=SIZE, packed=packed)
    assert files(tmp_path / "a").keys() == files(tmp_path / "b").keys()
    assert files(tmp_path / "a") == files(tmp_path / "b")
    kept = len(drawn) if not packed else len(drawn) // 4 * 4
    assert len(again) == 10 - kept
    build(tmp_path / "a", z, fragile, size=SIZE, packed=packed)  # nothing is left to draw


def test_progress_counts_what_was_there_before(tmp_path, z):
    told = []
    build(tmp_path, z, paint, size=SIZE, tick=lambda *now: told.append(now))
    assert told == [(n, 10) for n in (0, 2, 4, 6, 8, 10)]
    (tmp_path / "packed" / "000004.npy").unlink()
    told.clear()
    build(tmp_path, z, paint, size=SIZE, tick=lambda *now: told.append(now))
    assert told[-1] == (10, 10)
    assert len(told) == 3


def work(folder, z, log):
    storage.BLOCK, storage.STEP = 4, 2

    def slow(z, size):
        import time

        time.sleep(0.05)
        with log.open("ab") as file:
            file.write(z[:, 0].tobytes())
        return paint(z, size)

    build(folder, z, slow, size=SIZE)


def test_two_processes_share_a_build(tmp_path):
    z = np.random.default_rng(1).uniform(-1, 1, (32, 10))
    context = multiprocessing.get_context("fork")
    logs = [tmp_path / "one", tmp_path / "two"]
    both = [context.Process(target=work, args=(tmp_path / "a", z, log)) for log in logs]
    for process in both:
        process.start()
    for process in both:
        process.join()
    assert [process.exitcode for process in both] == [0, 0]
    shares = [np.fromfile(log) for log in logs]
    assert min(map(len, shares)) > 0
    np.testing.assert_array_equal(np.sort(np.concatenate(shares)), np.sort(z[:, 0]))
    np.testing.assert_array_equal(ImageSet(tmp_path / "a").images(range(32)), paint(z, SIZE))


def test_another_build_in_the_same_folder_is_refused(tmp_path, z):
    build(tmp_path, z, paint, size=SIZE, settings={"samples": 8})
    with pytest.raises(InputError, match="the same build"):
        build(tmp_path, z, paint, size=SIZE + 1, settings={"samples": 8})
    with pytest.raises(InputError, match="the same build"):
        build(tmp_path, z, paint, size=SIZE, settings={"samples": 9})
    with pytest.raises(InputError, match="other latents"):
        build(tmp_path, -z, paint, size=SIZE, settings={"samples": 8})
    (tmp_path / "build.json").unlink()
    with pytest.raises(InputError, match="another data set"):
        build(tmp_path, z, paint, size=SIZE)
    with pytest.raises(InputError, match="must be a folder"):
        build(tmp_path / "raw_latents.npy", z, paint, size=SIZE)


def test_bad_latents_and_sizes(tmp_path, z):
    with pytest.raises(InputError, match=r"\[-1, 1\]"):
        build(tmp_path, 2 * z, paint)
    with pytest.raises(InputError, match="10 columns"):
        build(tmp_path, z[:, :9], paint)
    with pytest.raises(InputError, match="size"):
        build(tmp_path, z, paint, size=0)
    with pytest.raises(InputError, match="n must be"):
        build(tmp_path, z[:0], paint)
    assert not list(tmp_path.iterdir())


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
    with pytest.raises(InputError, match=rf"{first} is not an .*cut short"):
        damaged(cut).images(range(10))
    with pytest.raises(InputError, match="the latents are of another data set"):
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
    with pytest.raises(InputError, match=r"000008.npy must hold uint8 1×6×6×3.*got uint8 2×6×6×3"):
        ImageSet(tmp_path)


def test_images_of_another_size_are_noticed(tmp_path, z):
    build(tmp_path, z, paint, size=SIZE, packed=False)
    Image.fromarray(paint(z, 5)[3]).save(tmp_path / "images" / "000003.png")
    with pytest.raises(InputError, match=r"000003.png must be 6×6 pixels"):
        ImageSet(tmp_path).images(range(10))


def test_pickles_are_not_opened(tmp_path, z):
    build(tmp_path, z, paint, size=SIZE)
    np.save(tmp_path / "raw_latents.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match=r"raw_latents.npy"):
        ImageSet(tmp_path)


def test_the_ray_caster_draws_the_same_in_blocks(tmp_path, z):
    data = build(tmp_path, z[:5], render, size=16)
    np.testing.assert_array_equal(data.images(range(5)), render(z[:5], 16))
