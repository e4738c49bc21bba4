import numpy as np
import pytest
from PIL import Image

from identica import InputError
from identica.datasets import images


def bytes_of(*shape, seed=0):
    return np.random.default_rng(seed).integers(0, 256, shape, np.uint8)


def save(folder, frames, name="frame{}.png"):
    for number, frame in enumerate(frames):
        Image.fromarray(frame).save(folder / name.format(number))
    return folder


@pytest.mark.parametrize("shape", [(12, 9, 7), (12, 9, 7, 3)], ids=["grey", "colour"])
def test_frames_come_in_the_order_of_their_numbers(tmp_path, shape):
    frames = bytes_of(*shape)
    found = images.load(save(tmp_path, frames))  # frame10 after frame9, not after frame1
    assert found.dtype == np.uint8
    assert np.array_equal(found, frames)


def test_grey_among_coloured_images(tmp_path):
    grey, colour = bytes_of(2, 9, 7), bytes_of(9, 7, 3, seed=1)
    Image.fromarray(grey[0]).save(tmp_path / "a.png")
    Image.fromarray(colour).save(tmp_path / "b.png")
    Image.fromarray(grey[1]).save(tmp_path / "c.png")
    found = images.load(str(tmp_path))
    assert np.array_equal(found[1], colour)
    for k, one in zip((0, 2), grey, strict=True):
        assert np.array_equal(found[k], np.stack([one] * 3, axis=-1))


def test_masks_transparency_palettes_and_jpeg(tmp_path):
    picture = Image.fromarray(np.full((16, 16, 3), 200, np.uint8))
    picture.convert("RGBA").save(tmp_path / "a.png")
    picture.quantize().save(tmp_path / "b.png")
    picture.save(tmp_path / "c.JPG")
    (tmp_path / ".hidden").write_text("not an image")
    found = images.load(tmp_path)
    assert found.shape == (3, 16, 16, 3)
    assert abs(found.astype(int) - 200).max() <= 3
    masks = tmp_path / "masks"
    masks.mkdir()
    Image.fromarray(np.eye(8) > 0).save(masks / "a.png")
    assert np.array_equal(images.load(masks)[0], 255 * np.eye(8))


def test_sixteen_bits_become_numbers_from_0_to_1(tmp_path):
    deep = np.array([[0, 1000], [30_000, 65_535]], np.uint16)
    Image.fromarray(deep).save(tmp_path / "a.png")
    found = images.load(tmp_path)
    assert (found.shape, found.dtype) == ((1, 2, 2, 1), np.float32)
    assert np.allclose(found[0, ..., 0], deep / 65_535)
    Image.fromarray(bytes_of(2, 2)).save(tmp_path / "b.png")
    with pytest.raises(InputError, match=r"one depth, but a.png has uint16 and b.png uint8"):
        images.load(tmp_path)


def test_other_sizes_and_foreign_files_are_named(tmp_path):
    save(tmp_path, bytes_of(3, 9, 7))
    Image.fromarray(bytes_of(9, 8)).save(tmp_path / "frame3.png")
    with pytest.raises(InputError, match=r"one size, but frame0.png has 9×7 .* frame3.png 9×8"):
        images.load(tmp_path)
    (tmp_path / "notes.txt").write_text("")
    with pytest.raises(InputError, match=r"PNG and JPEG images alone, got notes.txt"):
        images.load(tmp_path)


@pytest.mark.parametrize("content", [b"", b"GIF89a", b"\x89PNG\r\n\x1a\n"], ids=str)
def test_damaged_images_are_named(tmp_path, content):
    (tmp_path / "a.png").write_bytes(content)
    with pytest.raises(InputError, match=r"a.png is damaged or not an image"):
        images.load(tmp_path)


def test_no_images(tmp_path):
    with pytest.raises(InputError, match="alone, got none"):
        images.load(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="must be a folder of images: Not a directory"):
        images.load(tmp_path / "file")
    with pytest.raises(InputError, match="must be a folder of images: No such file"):
        images.load(tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"must be a folder of images: .*null"):
        images.load("a\0b")


def test_no_image_is_larger_than_what_is_decoded(tmp_path, monkeypatch):
    monkeypatch.setattr(images, "PIXELS", 50)
    with pytest.raises(InputError, match="must have at most 50 pixels, got 9×7"):
        images.load(save(tmp_path, bytes_of(1, 9, 7)))
