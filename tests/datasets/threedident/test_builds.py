"""Building a folder of images: interrupted, shared, refused, and on a full disk."""

import errno
import multiprocessing
import os
import shutil
import signal
import time

import numpy as np
import pytest

from helpers.paintings import SIZE, everything, files, never, paint
from identica.datasets.threedident import storage
from identica.datasets.threedident.storage import ImageSet, build
from identica.errors import InputError


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(storage, "BLOCK", 4)


@pytest.fixture
def z():
    return np.random.default_rng(0).uniform(-1, 1, (10, 10))


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
    with pytest.raises(
        InputError, match=r"draw returns must be uint8 of shape 4×6×6×3, got float64"
    ):
        build(tmp_path, z, lambda z, size: paint(z, size) / 255, size=SIZE)
    with pytest.raises(
        InputError, match=r"draw returns must be uint8 of shape 4×6×6×3, got uint8 of shape 4×5×5×3"
    ):
        build(tmp_path, z, lambda z, size: paint(z, 5), size=SIZE)
    with pytest.raises(InputError, match=r"step must be a whole number of at least 1"):
        build(tmp_path, z, paint, size=SIZE, step=0)


def test_bad_latents_and_sizes(tmp_path, z):
    with pytest.raises(InputError, match=r"\[-1, 1\]"):
        build(tmp_path, 2 * z, paint)
    with pytest.raises(InputError, match="N×10"):
        build(tmp_path, z[:, :9], paint)
    with pytest.raises(InputError, match="size"):
        build(tmp_path, z, paint, size=0)
    with pytest.raises(InputError, match="n must be"):
        build(tmp_path, z[:0], paint)
    assert not list(tmp_path.iterdir())


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
    def full(image, path):
        if path.name == "000003.png":
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        write(image, path)

    write = storage.save
    with monkeypatch.context() as patch:
        patch.setattr(storage, "save", full)
        with pytest.raises(InputError, match=r"out: cannot write .*000003.png: No space left"):
            build(tmp_path, z, paint, size=SIZE, packed=False)
    data = build(tmp_path, z, paint, size=SIZE, packed=False)
    np.testing.assert_array_equal(data.images(range(10)), paint(z, SIZE))


def test_sizes_beyond_all_measure(tmp_path, z):
    for size in (10**9, 4097):
        with pytest.raises(InputError, match=r"size must be .* at most 4096"):
            build(tmp_path / "set", z, never, size=size)
    assert not (tmp_path / "set").exists()
