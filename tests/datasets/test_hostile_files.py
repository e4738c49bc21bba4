"""Files made to exhaust memory, and damaged ones, for every reader of data sets.

They are read by a process of its own that may take little more memory than it has at the start: one
clear error has to come of each, and not because memory ran out.
"""

import io
import json
import os
import pickle
import random
import struct
import subprocess
import sys
import warnings
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from identica.datasets import _unpickle, dsprites, kitti_masks, natural_sprites, recordings
from identica.datasets.threedident.storage import ImageSet
from identica.errors import InputError

MORE = 300 * 2**20  # bytes on top of what is there at the start
DAMAGED = 30  # damaged files for each reader


# --- what reads a file with the given content ---------------------------------------------------------


def written(name, content):
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def unpickle(content):
    return _unpickle.load(written("a.pickle", content))


def original(content):
    return kitti_masks.load(written("kitti_peds_v2.pickle", content))


def archive(content):
    return kitti_masks.load(written("a.npz", content))


def annotations(content):
    return kitti_masks.build(kitti=written("texts/0000.txt", content).parent)


def id_maps(content):
    written("maps/0000/000001.png", png(70, 80, 16, 0))
    return kitti_masks.build(kitti=written("maps/0000/000000.png", content).parent.parent)


def motion(content):
    return natural_sprites.load(written("a.csv", content))


def sprites(content):
    return dsprites.load(written("sprites.npz", content))


def recording(content):
    return recordings.load("head-direction", written("mouse.npz", content))


def latents(content):
    written("set/images/000000.png", png(6, 6, 8, 2))
    return ImageSet(written("set/raw_latents.npy", content).parent)


def image(content):
    written("one/raw_latents.npy", npy((1, 10), "<f8", bytes(80)))
    return ImageSet(written("one/images/000000.png", content).parent.parent)


def packed(content):
    written("packed/raw_latents.npy", npy((3, 10), "<f8", bytes(240)))
    return ImageSet(written("packed/packed/000000.npy", content).parent.parent).images(range(3))


# --- content ------------------------------------------------------------------------------------------


def npy(shape, kind, data=b""):
    file = io.BytesIO()
    header = {"descr": kind, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)
    return file.getvalue() + data


def zipped(claimed=None, **members):
    """An npz archive, whose members may claim another size than they have."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as made:
        for name, content in members.items():
            made.writestr(f"{name}.npy", content)
        for member in made.infolist():
            member.file_size = claimed or member.file_size
    return file.getvalue()


def png(height, width, bits, colour, data=None):
    """A PNG of zeros; without `data` of the right length, it is written in full."""
    channels = 3 if colour == 2 else 1
    rows = bytes(height * (1 + width * channels * bits // 8)) if data is None else data
    head = struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, 0)
    chunks = [(b"IHDR", head), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )


def code(number):
    """A run of COCO's run-length code."""
    text = ""
    while True:
        digit, number = number & 31, number >> 5
        done = number == 0 and not digit & 16
        text += chr(48 + (digit if done else digit | 32))
        if done:
            return text


def shared(levels):
    """Two references to the same list, level by level: small to write, 2^levels when copied."""
    lists = []
    for _ in range(levels):
        lists = [lists, lists]
    return lists


TUPLES = b"\x80\x02)" + b"".join(bytes([ord("q"), k, ord("h"), k, 0x86]) for k in range(60))
ARRAY = pickle.dumps(np.zeros(2**19, np.uint8), 2)[:-1]
HEADING = b"id,cat_id,t_0,t_1\n"

BOMBS = {
    "lists of lists": (unpickle, pickle.dumps(shared(40))),
    "lists of lists of masks": (original, pickle.dumps({"pedestrians": shared(25)})),
    "a far place in the memo": (original, b"]r\0\0\0\x10."),
    "a tuple of tuples as a key": (unpickle, b"\x80\x02}" + TUPLES[2:] + b"Ns."),
    "a tuple of tuples as a name": (unpickle, b"\x80\x04" + TUPLES[2:] + b"Vx\n\x93."),
    "a text of 4 GB": (unpickle, b"\x80\x04\x8d" + struct.pack("<Q", 2**32) + b"abc."),
    "a bytearray of 4 GB": (unpickle, b"\x80\x05\x96" + struct.pack("<Q", 2**32) + b"abc."),
    "a frame of 4 GB": (unpickle, b"\x80\x04\x95" + struct.pack("<Q", 2**32) + b"abc."),
    "an array many times": (
        unpickle,
        b"\x80\x02](" + ARRAY[2:] + b"q\xff" + b"h\xff" * 9999 + b"e.",
    ),
    "an array without elements": (
        original,
        pickle.dumps({"pedestrians": np.zeros((10**12, 0), np.uint8)}, 4),
    ),
    "a long text among short ones": (
        original,
        pickle.dumps({"pedestrians": [["x" * 200_000, *map(str, range(20_000))]]}),
    ),
    "an archive of zeros": (
        archive,
        zipped(2**40, **dict.fromkeys(kitti_masks._FIELDS, npy((2**31, 512), "|u1"))),
    ),
    "a huge mask": (
        annotations,
        f"0 2001 2 66000 66000 {3 * code(66000**2 // 9) + 6 * code(0)}".encode(),
    ),
    "a wide mask": (annotations, f"0 2001 2 64 99999999 {code(640)}".encode()),
    "a video of 65,536 frames": (
        annotations,
        b"".join(b"%d 2001 2 64 4096 " % k + code(2**18).encode() + b"\n" for k in range(600)),
    ),
    "one late frame": (annotations, f"65535 2001 2 64 4096 {code(2**18)}".encode()),
    "a huge map": (id_maps, png(30_000, 30_000, 16, 0, b"")),
    "a map beyond Pillow's limit": (id_maps, png(2**30, 2**30, 16, 0, b"")),
    "a small map": (id_maps, png(10, 10, 16, 0)),
    "a map of 8 bits": (id_maps, png(70, 80, 8, 0)),
    "a huge image": (image, png(30_000, 30_000, 8, 2, b"")),
    "an image beyond Pillow's limit": (image, png(2**30, 2**30, 8, 2, b"")),
    "a number of 400 digits": (motion, HEADING + b'1,2,"[(%s,1,1)]","[(1,1,1)]"\n' % (b"9" * 400)),
    "a deep list": (motion, HEADING + b"1,2," + b"[" * 9000 + b"," + b"]" * 9000 + b"\n"),
    "empty lines": (motion, HEADING + b"\n" * 10_000_000),
    "a heading of 100,000 frames": (
        motion,
        b"id,cat_id," + b",".join(b"t_%d" % k for k in range(100_000)) + b"\n",
    ),
    "a long header": (
        sprites,
        zipped(imgs=b"", latents_classes=b"\x93NUMPY\2\0\xff\xff\xff\x3f" + b" " * 2**28),
    ),
    "more labels than are there": (
        sprites,
        zipped(latents_classes=npy((10**11, 6), "<i8"), imgs=b""),
    ),
    "more spikes than are there": (
        recording,
        zipped(2**40, counts=npy((2**36, 16), "|u1"), angle=npy((2**36,), "<f4")),
    ),
    "more latents than are there": (latents, npy((10**10, 10), "<f8", bytes(80))),
    "latents that are nothing": (latents, npy((2**62, 0), "<f8")),
    "a header of brackets": (latents, b"\x93NUMPY\1\0\x00\x27" + b"(" * 9984),
    "more images than are there": (packed, npy((3, 2**20, 2**20, 3), "|u1", bytes(300))),
    "a single number": (packed, npy((), "|u1", b"\0")),
    "an archive for an array": (packed, zipped(a=npy((3,), "|u1", bytes(3)))),
}


def good_files():
    masks = [np.random.default_rng(0).random((n, 64, 64)) < 0.5 for n in (3, 2)]
    content = {"pedestrians": masks, "more": [1, 2.5, None, "text", (1, b"bytes", np.float64(0.5))]}
    classes = np.hstack([np.zeros((96, 1), int), dsprites.classes_of(np.arange(96))])
    images = dsprites.render(dsprites.classes_of(np.arange(96)))
    pictures = io.BytesIO()
    Image.fromarray(np.arange(6 * 6 * 3, dtype=np.uint8).reshape(6, 6, 3)).save(pictures, "png")
    moves = b'1,26,"[(31.2, 40.5, 210), None]","[(31.0, 41.1, 214), (30.9, 9.3, 80)]"\n'
    whole = f"2001 2 64 64 {code(0)}{code(4096)}"
    return {
        **{f"protocol {p}": (original, pickle.dumps(content, p)) for p in range(6)},
        "annotations": (annotations, "".join(f"{k} {whole}\n" for k in range(3)).encode()),
        "id maps": (id_maps, png(70, 80, 16, 0)),
        "motion": (motion, HEADING + 3 * moves),
        "sprites": (
            sprites,
            zipped(
                imgs=npy(images.shape, "|u1", images.tobytes()),
                latents_classes=npy(classes.shape, "<i8", classes.tobytes()),
            ),
        ),
        "recording": (
            recording,
            zipped(counts=npy((50, 4), "|u1", bytes(200)), angle=npy((50,), "<f4", bytes(200))),
        ),
        "latents": (latents, npy((1, 10), "<f8", bytes(80))),
        "image": (image, pictures.getvalue()),
        "packed": (packed, npy((3, 6, 6, 3), "|u1", bytes(324))),
    }


def damaged(content, rng):
    """Cut short, with other bytes at the end or at the start, or with some bytes changed."""
    cut = rng.randrange(len(content))
    yield content[:cut]
    yield content[:cut] + rng.randbytes(20)
    yield rng.randbytes(rng.randrange(40)) + content[cut:]
    for _ in range(DAMAGED - 3):
        changed = bytearray(content)
        for _ in range(rng.choice([1, 2, 8])):
            where = rng.randrange(rng.choice([min(150, len(content)), len(content)]))
            changed[where] = rng.choice([rng.randrange(256), changed[where] ^ 1, 0, 57, 255])
        yield bytes(changed)


# --- the process that reads them ----------------------------------------------------------------------


def outcome(read, content):
    try:
        read(content)
    except InputError as error:
        return f"refused: {error}"
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    return "read"


def read_all():
    import resource

    warnings.simplefilter("error")
    dsprites.SIZES, dsprites.TOTAL, dsprites._CHUNK = (3, 2, 2, 2, 4), 96, 40
    files = good_files()
    told = {"whole": {name: outcome(*file) for name, file in files.items()}}
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MORE
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    told["bombs"] = {name: outcome(*file) for name, file in BOMBS.items()}
    told["damaged"] = {}
    for name, (read, content) in files.items():
        rng = random.Random(name)
        told["damaged"][name] = [outcome(read, some) for some in damaged(content, rng)]
    print(json.dumps(told))


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    if not Path("/proc/self/statm").exists():
        pytest.skip("needs /proc to tell the memory of a process")
    folder = tmp_path_factory.mktemp("hostile")
    ran = subprocess.run(
        [sys.executable, __file__],
        cwd=folder,
        env={**os.environ, "IDENTICA_DATA": str(folder / "data")},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def assert_refused(text):
    assert text.startswith("refused: "), text
    assert len(text) < 600, text
    assert len(text.splitlines()) == 1, text
    assert text == text.strip()  # the reason is told; running out of memory has none
    assert "MemoryError" not in text, text
    assert "allocate" not in text, text


@pytest.mark.parametrize("name", BOMBS)
def test_small_files_do_not_exhaust_memory(told, name):
    assert_refused(told["bombs"][name])


def test_damaged_files_give_one_clear_error(told):
    for name, outcomes in told["damaged"].items():
        for text in outcomes:
            if text != "read":
                assert_refused(text)
        assert sum(text != "read" for text in outcomes) > DAMAGED / 10, name


def test_whole_files_are_read(told):
    without = ("id maps", "annotations")  # which need pedestrians of several sizes
    for name, text in told["whole"].items():
        assert text == "read" or (name in without and "no pedestrian" in text), text


def test_special_files_are_refused(tmp_path):
    """Rather than waited for, or read without end."""
    pipe = tmp_path / "pipe.npy"
    if not hasattr(os, "mkfifo"):
        pytest.skip("no pipes here")
    os.mkfifo(pipe)
    folder = tmp_path / "set"
    (folder / "images").mkdir(parents=True)
    os.mkfifo(folder / "raw_latents.npy")
    for read in (_unpickle.load, kitti_masks.load, natural_sprites.load, dsprites.load):
        for path in (pipe, tmp_path, "/dev/zero"):
            with pytest.raises(InputError, match="must be a file, not a folder"):
                read(path)
    with pytest.raises(InputError, match="must be a file, not a folder"):
        ImageSet(folder)


if __name__ == "__main__":
    read_all()
