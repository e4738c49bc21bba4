import errno
import math
import multiprocessing
import os
import shutil
import signal
import time

import numpy as np
import pytest
from PIL import Image

from identica.datasets.threedident import render, storage
from identica.datasets.threedident.storage import ImageSet, build
from identica.errors import InputError

SIZE = 6


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(storage, "BLOCK", 4)


@pytest.fixture
def z():
    return np.random.default_rng(0).uniform(-1, 1, (10, 10))


def paint(z, size):
    """An image that tells its latents: pixel k has the colour of latent k mod 10."""
    levels = ((z + 1) * 127.5).round().astype(np.uint8)
    columns = np.arange(size * size * 3) % 10
    return levels[:, columns].reshape(len(z), size, size, 3)


def never(z, size):
    raise AssertionError("nothing is to be drawn")


def everything(folder):
    """All files with their content, and all folders."""
    return files(folder), {path for path in folder.rglob("*") if path.is_dir()}


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
    with pytest.raises(
        InputError, match=rf"\(000000.png … or 0+.png …\).*there is {n - 1:04d}.png"
    ):
        ImageSet(tmp_path)
    (tmp_path / "images" / f"{n - 1:04d}.png").unlink()
    missing = f"the first is {name}" if n > 1 else "the first is 000000.png"
    with pytest.raises(InputError, match=missing):
        ImageSet(tmp_path)


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
        build(tmp_path / "a", z, fragile, size=SIZE, packed=packed, step=2)
    with pytest.raises(InputError, match=r"missing.*resumes"):
        ImageSet(tmp_path / "a")
    again = []

    def counting(z, size):
        again.extend(z)
        return paint(z, size)

    build(tmp_path / "a", z, counting, size=SIZE, packed=packed)
    build(tmp_path / "b", z, paint, size=SIZE, packed=packed)
    assert files(tmp_path / "a").keys() == files(tmp_path / "b").keys()
    assert files(tmp_path / "a") == files(tmp_path / "b")
    assert len(again) == 10 - len(drawn)  # nothing that was drawn is lost
    build(tmp_path / "a", z, never, size=SIZE, packed=packed)


def test_packed_files_are_those_of_numpy(tmp_path, z):
    build(tmp_path, z, paint, size=SIZE, step=3)
    np.save(tmp_path / "expected.npy", paint(z[4:8], SIZE))
    found = (tmp_path / "packed" / "000004.npy").read_bytes()
    assert found == (tmp_path / "expected.npy").read_bytes()


@pytest.mark.parametrize("packed", [True, False])
def test_a_build_that_was_killed_loses_one_step_and_leaves_nothing_behind(tmp_path, z, packed):
    options = {"size": SIZE, "packed": packed, "step": 1}
    asleep = tmp_path / "asleep"

    def sleepy(some, size):
        if some[0, 0] == z[7, 0]:
            asleep.touch()
            time.sleep(60)
        return paint(some, size)

    process = multiprocessing.get_context("fork").Process(
        target=build, args=(tmp_path / "a", z, sleepy), kwargs=options
    )
    process.start()
    deadline = time.monotonic() + 30
    while not asleep.exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    torn = "packed/.000004.npy.part" if packed else "images/.000007.png.1.tmp"
    with (tmp_path / "a" / torn).open("ab") as file:  # as if it had been writing just then
        file.write(b"half an image")
    drawn = []

    def counting(z, size):
        drawn.extend(z[:, 0])
        return paint(z, size)

    build(tmp_path / "a", z, counting, **options)
    np.testing.assert_array_equal(drawn, z[7:, 0])
    build(tmp_path / "b", z, paint, **options)
    assert files(tmp_path / "a") == files(tmp_path / "b")


@pytest.mark.parametrize("stop", ["build.json", "raw_latents.npy"])
def test_a_start_that_was_killed_goes_on(tmp_path, z, monkeypatch, stop):
    def killed(source, target):
        if os.path.basename(target) == stop:
            raise KeyboardInterrupt
        rename(source, target)

    rename = os.replace
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", killed)
        with pytest.raises(KeyboardInterrupt):
            build(tmp_path, z, paint, size=SIZE)
    left = tmp_path / f".{stop}.1.tmp"
    left.write_bytes(b"of a process that was killed")
    data = build(tmp_path, z, paint, size=SIZE)
    np.testing.assert_array_equal(data.images(range(10)), paint(z, SIZE))
    assert not left.exists()


@pytest.mark.parametrize("packed", [True, False])
def test_progress_counts_what_was_there_before(tmp_path, z, packed):
    told = []
    options = {"size": SIZE, "packed": packed, "tick": lambda *now: told.append(now)}
    build(tmp_path, z, paint, step=2, **options)
    assert told == [(n, 10) for n in (0, 2, 4, 6, 8, 10)]
    for lost in ["packed/000004.npy"] if packed else [f"images/{i:06d}.png" for i in range(4, 8)]:
        (tmp_path / lost).unlink()
    told.clear()
    build(tmp_path, z, paint, step=1, **options)
    assert told[-1] == (10, 10)
    assert len(told) == 5
    assert told[:-1] == sorted(told[:-1])


def work(folder, z, log):
    storage.BLOCK = 4

    def slow(z, size):
        time.sleep(0.05)
        with log.open("ab") as file:
            file.write(z[:, 0].tobytes())
        return paint(z, size)

    build(folder, z, slow, size=SIZE, step=2)


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


@pytest.mark.parametrize("packed", [True, False])
def test_a_build_that_is_refused_leaves_the_folder_as_it_was(tmp_path, z, packed):
    build(tmp_path, z, paint, size=SIZE, packed=packed)
    before = everything(tmp_path)
    for other, form, side in ((z, not packed, SIZE), (z, packed, 5), (-z, packed, SIZE)):
        with pytest.raises(InputError, match="out must be a new folder"):
            build(tmp_path, other, never, size=side, packed=form)
        assert everything(tmp_path) == before
    np.testing.assert_array_equal(ImageSet(tmp_path).images(range(10)), paint(z, SIZE))


@pytest.mark.parametrize("content", ["", '{"n": 10, "si', "[]", "\x00\xff"])
def test_damaged_settings_are_told_in_one_sentence(tmp_path, z, content):
    build(tmp_path, z, paint, size=SIZE)
    (tmp_path / "build.json").write_text(content, encoding="latin-1")
    before = everything(tmp_path)
    with pytest.raises(InputError, match=r"build.json cannot be read|holds \[\]") as told:
        build(tmp_path, z, never, size=SIZE)
    assert "\n" not in str(told.value)
    assert everything(tmp_path) == before


def test_what_is_drawn_has_to_be_images(tmp_path, z):
    with pytest.raises(InputError, match=r"draw must return uint8 4×6×6×3, got float64 4×6×6×3"):
        build(tmp_path, z, lambda z, size: paint(z, size) / 255, size=SIZE)
    with pytest.raises(InputError, match=r"draw must return uint8 4×6×6×3, got uint8 4×5×5×3"):
        build(tmp_path, z, lambda z, size: paint(z, 5), size=SIZE)
    with pytest.raises(InputError, match=r"step must be a whole number of at least 1"):
        build(tmp_path, z, paint, size=SIZE, step=0)


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


@pytest.mark.parametrize("packed", [True, False])
def test_what_cannot_be_written_is_told_by_its_name(tmp_path, z, packed):
    """A folder where a file has to go stands for a disk that is full or read-only."""
    home, name = ("packed", ".000000.npy.part") if packed else ("images", "000000.png")
    for at in (".lock", "raw_latents.npy", f"{home}/{name}"):
        folder = tmp_path / at.replace("/", "-")
        (folder / at / "in the way").mkdir(parents=True)
        with pytest.raises(InputError, match=r"raw_latents|\.lock|0000") as told:
            build(folder, z, paint, size=SIZE, packed=packed)
        assert len(str(told.value).splitlines()) == 1
        assert not list(folder.rglob(".*.tmp"))
        shutil.rmtree(folder / at)
        data = build(folder, z, paint, size=SIZE, packed=packed)
        np.testing.assert_array_equal(data.images(range(10)), paint(z, SIZE))


def test_a_full_disk_is_told_and_the_build_goes_on(tmp_path, z, monkeypatch):
    def full(path, image):
        if path.name == "000003.png":
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        write(path, image)

    write = storage._write_png
    with monkeypatch.context() as patch:
        patch.setattr(storage, "_write_png", full)
        with pytest.raises(InputError, match=r"out: cannot write .*000003.png: No space left"):
            build(tmp_path, z, paint, size=SIZE, packed=False)
    data = build(tmp_path, z, paint, size=SIZE, packed=False)
    np.testing.assert_array_equal(data.images(range(10)), paint(z, SIZE))


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


def test_sizes_beyond_all_measure(tmp_path, z):
    for size in (10**9, 4097):
        with pytest.raises(InputError, match=r"size must be .* at most 4096"):
            build(tmp_path / "set", z, never, size=size)
    assert not (tmp_path / "set").exists()


def test_latents_beyond_all_measure_are_told_without_a_warning(tmp_path, z):
    build(tmp_path, z, paint, size=SIZE)
    np.save(tmp_path / "raw_latents.npy", np.full((10, 10), 1e306))
    with pytest.raises(InputError, match=r"10 of 10 rows"):
        ImageSet(tmp_path)
