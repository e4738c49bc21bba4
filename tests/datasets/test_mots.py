"""KITTI Masks from annotations: run-length codes, resizing, the rule that cuts tracks, and the builder."""

import numpy as np
import pytest
import torch
from PIL import Image

from identica.datasets import _mots
from identica.datasets.kitti_masks import build, load
from identica.errors import InputError

TEXTS = "kitti_masks/kitti_mots_instances_txt"


@pytest.fixture(scope="module")
def data(real):
    return load(real("kitti_masks", "kitti_masks.npz"))


def encode(mask):
    """COCO's run-length code, run by run and digit by digit."""
    flat = mask.T.ravel()
    runs, value, length = [], 0, 0
    for pixel in flat:
        if pixel != value:
            runs.append(length)
            value, length = pixel, 0
        length += 1
    runs.append(length)
    text = ""
    for k, run in enumerate(runs):
        number = run - runs[k - 2] if k > 2 else run
        while True:
            digit, number = number & 31, number >> 5
            done = number == (-1 if digit & 16 else 0)
            text += chr(48 + (digit if done else digit | 32))
            if done:
                break
    return text


@pytest.mark.parametrize("density", [0.0, 0.02, 0.5, 1.0])
def test_decode_inverts_a_direct_encoder(density):
    rng = np.random.default_rng(1)
    mask = rng.random((37, 91)) < density
    np.testing.assert_array_equal(_mots.decode(encode(mask), 37, 91), mask)
    mask[:] = False
    mask[3:30, 5:80] = True  # long runs, several digits, negative differences
    mask[10, 7:70] = False
    np.testing.assert_array_equal(_mots.decode(encode(mask), 37, 91), mask)


@pytest.mark.parametrize("rle", ["", "13", "1328", "13o", "\x07", "13é", "1" + "o" * 20 + "0"])
def test_decode_refuses_damaged_codes(rle):
    with pytest.raises(InputError, match="rle must"):
        _mots.decode(rle, 2, 3)


@pytest.mark.parametrize(
    ("height", "width"), [(375, 1242), (370, 1224), (374, 1238), (480, 640), (1080, 1920), (64, 99)]
)
def test_resize_is_nearest_as_torch_does_it(height, width):
    image = torch.arange(height * width, dtype=torch.float64).reshape(1, 1, height, width)
    new = int(width // (height / 64))
    expected = torch.nn.functional.interpolate(image, size=(64, new))[0, 0].numpy()
    found = image[0, 0].numpy()[_mots._nearest(height, width)]
    np.testing.assert_array_equal(found, expected)


def test_sequences_follow_the_rule_frame_by_frame():
    """Against the rule applied one frame at a time to random appearances."""
    rng = np.random.default_rng(2)
    ids = np.zeros((60, 64, 131), np.uint16)
    for k, track in enumerate([1001, 2001, 2002, 2003, 2004, 10000]):
        size = rng.choice([0, 3, 31, 40], p=[0.1, 0.1, 0.4, 0.4], size=60)
        for t in range(60):
            ids[t, 10 * k, 15 * k : 15 * k + size[t]] = track
    expected = []
    for window in range(6):
        view = ids[:, :, window * 13 : window * 13 + 64]
        for track in sorted(set(view.ravel().tolist()))[1:-1]:
            if track // 1000 == 1:
                continue
            seen = [t for t in range(60) if (view[t] == track).any()]
            piece = []
            for t in range(seen[0], seen[-1] + 1):
                if (view[t] == track).sum() >= 30:
                    piece.append(t)
                    continue
                if len(piece) > 2:
                    expected.append((window, track, piece))
                piece = []
            if len(piece) > 1:
                expected.append((window, track, piece))
    found = list(_mots.sequences(ids))
    assert {window for window, *_ in found} == set(range(6))
    assert [found_in[:2] for found_in in found] == [found_in[:2] for found_in in expected]
    for (_, _, masks), (window, track, piece) in zip(found, expected, strict=True):
        view = ids[piece, :, window * 13 : window * 13 + 64]
        np.testing.assert_array_equal(masks, view == track)
    assert any(len(masks) == 2 for _, _, masks in found)


def assert_like_real(built, data, videos):
    chosen = np.flatnonzero((data.source == "kitti") & np.isin(data.video, videos))
    frames = np.isin(np.repeat(np.arange(len(data.seq_lengths)), data.seq_lengths), chosen)
    for name in ("source", "video", "window", "track_id", "seq_lengths"):
        np.testing.assert_array_equal(getattr(built, name), getattr(data, name)[chosen])
        assert getattr(built, name).dtype == getattr(data, name).dtype
    np.testing.assert_array_equal(built.masks_packed, data.masks_packed[frames])
    np.testing.assert_array_equal(built.latents, data.latents[frames])


def test_builder_reproduces_the_real_sequences(real, data):
    """Bit for bit; the fourth video has no pedestrian that qualifies."""
    folder = real(TEXTS)
    built = build(kitti=folder)
    assert len(built.seq_lengths) == 100
    assert_like_real(built, data, [file.stem for file in folder.glob("*.txt")])


def test_builder_from_id_maps(real, data, tmp_path):
    """Id-map PNGs, written from the text, lead to the same sequences."""
    lines = [line.split() for line in (real(TEXTS) / "0000.txt").read_text().splitlines()]
    (tmp_path / "0000").mkdir()
    for frame in range(1 + max(int(line[0]) for line in lines)):
        ids = np.zeros((int(lines[0][3]), int(lines[0][4])), np.uint16)
        for _, track, _, height, width, rle in (line for line in lines if int(line[0]) == frame):
            ids[_mots.decode(rle, int(height), int(width))] = int(track)
        Image.fromarray(ids).save(tmp_path / "0000" / f"{frame:06d}.png", compress_level=1)
    assert_like_real(build(kitti=tmp_path), data, ["0000"])
    both = build(kitti=tmp_path, mots=tmp_path)
    assert both.source.tolist() == ["kitti"] * 3 + ["mots"] * 3


@pytest.mark.parametrize(
    ("content", "match"),
    [
        ("", "no annotations"),
        ("0 2001 2 375 1242", "line 1: expected"),
        ("zero 2001 2 375 1242 abc", "line 1: expected"),
        ("0 2001 2 375 1242 abc", "line 1: rle must"),
        ("0 2001 2 64 64 PP4\n1 2001 2 64 65 PP4", "line 2: expected"),
        ("0 99999 2 64 64 PP4", "line 1: expected"),
        ("0 2001 2 0 0 PP4", "line 1: images must have 64 to 4096 pixels"),
        ("0 2001 2 64 64 PP4", "no pedestrian"),
        ("0 2001 2 640 480 PP\\9", "as wide as high"),
    ],
)
def test_builder_refuses_bad_text(tmp_path, content, match):
    (tmp_path / "0000.txt").write_text(content)
    with pytest.raises(InputError, match=match):
        build(kitti=tmp_path)


def test_builder_refuses_bad_folders(tmp_path):
    with pytest.raises(InputError, match="got neither"):
        build()
    with pytest.raises(InputError, match="kitti must be a folder"):
        build(kitti=tmp_path / "none")
    with pytest.raises(InputError, match="mots must be a folder of text files or of subfolders"):
        build(mots=tmp_path)
    (tmp_path / "0000").mkdir()
    file = tmp_path / "0000" / "000000.png"
    file.write_bytes(b"no image")
    with pytest.raises(InputError, match="not an image in PNG format"):
        build(mots=tmp_path)
    for labels in (np.full((70, 70), 2, np.uint8), np.zeros((70, 70), bool)):
        Image.fromarray(labels).save(file)
        with pytest.raises(InputError, match="grey 16-bit"):
            build(mots=tmp_path)
    Image.fromarray(np.zeros((70, 70, 3), np.uint8)).save(file)
    with pytest.raises(InputError, match="grey 16-bit"):
        build(mots=tmp_path)
    whole = tmp_path / "whole.png"
    Image.fromarray(np.random.default_rng(0).integers(0, 9, (99, 99), np.uint16)).save(whole)
    file.write_bytes(whole.read_bytes()[:3000])
    with pytest.raises(InputError, match="damaged"):
        build(mots=tmp_path)


def test_frames_without_annotations_cut_a_track_once(tmp_path):
    """A gap of any length, at any time of the video, leads to the same sequences."""
    mask = np.zeros((64, 64), bool)
    mask[5:15, 5:15] = True
    late = np.roll(mask, 20, axis=1)

    def built(*frames):
        lines = [f"{frame} 2001 2 64 64 {encode(mask)}" for frame in frames]
        lines += [f"{frame} 10000 10 64 64 {encode(late)}" for frame in frames]
        (tmp_path / "0000.txt").write_text("\n".join(lines))
        return build(kitti=tmp_path)

    expected = built(0, 1, 2, 4, 5)
    assert expected.seq_lengths.tolist() == [3, 2] * 6
    for frames in ((0, 1, 2, 65_000, 65_001), (7, 8, 9, 1000, 1001), (5, 4, 1, 0, 2)):
        found = built(*frames)
        np.testing.assert_array_equal(found.seq_lengths, expected.seq_lengths)
        np.testing.assert_array_equal(found.masks_packed, expected.masks_packed)


def test_texts_do_not_depend_on_the_locale(tmp_path, monkeypatch):
    """What is not ASCII is damage, in whatever encoding the system has."""
    (tmp_path / "0000.txt").write_bytes("٠ 2001 2 64 64 PP4".encode())
    with pytest.raises(InputError, match="line 1: expected"):
        build(kitti=tmp_path)
