"""identica data dsprites | natural-sprites, on small data sets where files are needed."""

import io
import zipfile

import numpy as np
import pytest
from PIL import Image

from identica.cli import main
from identica.datasets import dsprites, kitti_masks, natural_sprites
from identica.report import plots

TOTAL = 96


def run(*words):
    return main(["data", *map(str, words)])


def pixels(path):
    with Image.open(path) as image:
        return np.asarray(image)


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A data root without any data, from where commands are given too."""
    monkeypatch.setenv("IDENTICA_DATA", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "data"


@pytest.fixture
def small(root, monkeypatch):
    """dSprites of 96 images."""
    monkeypatch.setattr(dsprites, "SIZES", (3, 2, 2, 2, 4))
    monkeypatch.setattr(dsprites, "TOTAL", TOTAL)
    monkeypatch.setattr(dsprites, "_CHUNK", 40)
    return root


def archive(path, images):
    """An archive like the original."""
    path.parent.mkdir(parents=True, exist_ok=True)
    classes = np.c_[np.zeros(TOTAL, int), dsprites.classes_of(np.arange(TOTAL))]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, array in {"imgs": images, "latents_classes": classes}.items():
            content = io.BytesIO()
            np.save(content, array)
            file.writestr(f"{name}.npy", content.getvalue())
    return path


def test_show_draws_and_names_what_it_draws(root, capsys):
    assert run("dsprites", "show", "--out", "new/sheet.png") == 0
    assert capsys.readouterr().out == "new/sheet.png: dSprites, re-rendered\n"
    named = plots.pixels(
        plots.sheet(dsprites.picture(), dsprites.FACTORS, title="dSprites, re-rendered")
    )
    np.testing.assert_array_equal(pixels("new/sheet.png"), named)
    bare = plots.pixels(plots.sheet(dsprites.picture(), [""] * 5))
    assert named.shape != bare.shape or (named != bare).any()  # the names are to be seen
    assert run("dsprites", "show") == 0
    np.testing.assert_array_equal(pixels("dsprites.png"), named)
    assert not root.exists()  # nothing was needed or made


def test_show_and_check_an_original_archive(small, capsys):
    images = dsprites.render(dsprites.classes_of(np.arange(TOTAL)))
    path = archive(small.parent / "mine.npz", images)
    assert run("dsprites", "check", path) == 0
    assert capsys.readouterr().out == (
        "96 images, in the order of dSprites and all whole; 0 differ from re-rendered ones, in 0 "
        "pixels\n"
    )
    other = images.copy()
    other[7, 3, 5:8] ^= 1
    other[90, 10, 10] ^= 1
    archive(small / "dsprites" / dsprites.ORIGINAL, other)
    assert run("dsprites", "check") == 0  # the one under the data root
    assert "2 differ from re-rendered ones, in 4 pixels" in capsys.readouterr().out

    inverted = archive(small.parent / "inverted.npz", 1 - images)
    assert run("dsprites", "show", inverted, "--out", "original.png") == 0
    assert capsys.readouterr().out == "original.png: dSprites\n"
    sheet = 255 - dsprites.picture().astype(int)
    found = dsprites.picture(packed=dsprites.load(inverted))
    lines = found == 128
    np.testing.assert_array_equal(found[~lines], sheet[~lines])
    assert run("dsprites", "show", "--out", "found.png") == 0
    assert capsys.readouterr().out == "found.png: dSprites\n"


def test_natural_sprites_are_named_by_what_drives_them(root, capsys):
    assert run("natural-sprites", "show") == 2
    assert "identica data kitti-masks build" in capsys.readouterr().err
    ball = np.zeros((12, 64, 64), np.uint8)
    for t, mask in enumerate(ball):
        mask[10 : 20 + t, 20 + t : 30 + 2 * t] = 1
    masks = kitti_masks._assemble([np.packbits(ball.reshape(12, -1), axis=1)])
    masks.save(root / "kitti_masks" / "kitti_masks.npz")
    assert run("natural-sprites", "show") == 0
    assert capsys.readouterr().out == "natural-sprites.png: natural-sprites-kitti\n"
    driven = natural_sprites.picture(natural_sprites.from_kitti(masks))
    np.testing.assert_array_equal(pixels("natural-sprites.png"), driven)

    line = "1,26" + ',"[(31.2, 40.5, 210)]"' * 2 + ',"[(31.0, 41.1, 210)]"' * 2
    measured = root / "natural_sprites" / natural_sprites.MEASURED
    measured.parent.mkdir()
    measured.write_text(f"id,cat_id,t_0,t_1,t_2,t_3\n{line}\n")
    for words in ([], [measured]):
        assert run("natural-sprites", "show", *words, "--out", "b.png") == 0
        assert capsys.readouterr().out == "b.png: natural-sprites\n"
    assert (pixels("b.png") != driven).any()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["dsprites", "check"], "download it from"),
        (["dsprites", "check", "nowhere.npz"], "nowhere.npz does not exist"),
        (["dsprites", "check", "torn.npz"], "damaged"),
        (["dsprites", "show", "torn.npz", "--out", "x.png"], "damaged"),
        (["dsprites", "show", "--out", "torn.npz/x.png"], "out must be a folder"),
        (["dsprites", "show", "--out", "folder"], "out: cannot write folder"),
        (["natural-sprites", "show", "nowhere.csv", "--out", "x.png"], "does not exist"),
        (["natural-sprites", "show", "torn.npz", "--out", "x.png"], "must have the columns"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(root, capsys, words, said):
    (root.parent / "folder").mkdir()
    (root.parent / "torn.npz").write_bytes(b"PK torn")
    assert run(*words) == 2
    err = capsys.readouterr().err
    assert said in err
    assert len(err.splitlines()) == 1
    assert not list(root.parent.glob("x.*")) + list(root.parent.glob(".*.tmp"))


@pytest.mark.parametrize("words", [[], ["build"], ["show", "--ot", "x"]])
def test_bad_options_are_one_line_and_exit_2(words, capsys):
    for name in ("dsprites", "natural-sprites"):
        with pytest.raises(SystemExit) as stop:
            run(name, *words)
        assert stop.value.code == 2
        assert len(capsys.readouterr().err.splitlines()) == 1
