import numpy as np
import pytest
from PIL import Image

from identica.cli import main
from identica.datasets import kitti_masks


def run(*words):
    return main(["data", "kitti-masks", *map(str, words)])


def lines(found):
    return {line.split()[0]: line.split()[1:] for line in found.splitlines()[1:]}


def annotate(folder, frames=5):
    """Id-map PNGs of one video: a pedestrian that walks one pixel a frame, and what is ignored."""
    (folder / "0007").mkdir(parents=True)
    for t in range(frames):
        ids = np.zeros((64, 100), np.uint16)
        ids[10:30, 20 + t : 30 + t] = 2003
        ids[60:] = 10000
        Image.fromarray(ids).save(folder / "0007" / f"{t:06d}.png")
    return folder


def test_build_check_show(tmp_path, capsys):
    source, out = annotate(tmp_path / "instances"), tmp_path / "made" / "masks.npz"
    assert run("build", "--mots", source, "--out", out) == 0
    data = kitti_masks.load(out)
    assert capsys.readouterr().out == (
        f"{len(data.seq_lengths)} sequences, {len(data)} frames in {out}\n"
    )
    # every window that sees the whole pedestrian has its five frames, 200 pixels each
    assert set(data.source) == {"mots"}
    assert set(data.seq_lengths.tolist()) == {5}
    assert np.unpackbits(data.masks_packed[0]).sum() == 200

    assert run("check", out) == 0
    found = lines(capsys.readouterr().out)
    assert found["frames"] == [str(len(data)), "84626"]
    assert found["pairs"] == [str(len(data) - len(data.seq_lengths)), "82506"]

    assert run("show", out, "--out", tmp_path / "new" / "sheet.png") == 0
    with Image.open(tmp_path / "new" / "sheet.png") as image:
        np.testing.assert_array_equal(np.asarray(image), kitti_masks.picture(data))


def test_without_a_file_it_is_the_one_under_the_data_root(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("IDENTICA_DATA", str(tmp_path))
    assert run("check") == 2
    assert "identica data kitti-masks build" in capsys.readouterr().err
    assert run("build", "--kitti", annotate(tmp_path / "instances")) == 0
    assert (tmp_path / "kitti_masks" / "kitti_masks.npz").exists()
    assert run("check") == 0


def test_check_on_the_real_data_gives_the_published_figures(real, capsys):
    assert run("check", real("kitti_masks", "kitti_masks.npz")) == 0
    found = lines(capsys.readouterr().out)
    assert len(found) == 6
    assert all(ours == published for ours, published in found.values())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["build", "--out", "x.npz"], "--kitti or --mots must be a folder"),
        (["build", "--kitti", "nowhere", "--out", "x.npz"], "kitti must be a folder"),
        (["check", "nowhere.npz"], "nowhere.npz does not exist"),
        (["check", "torn.npz"], "damaged"),
        (["show", "nowhere.npz", "--out", "x.png"], "nowhere.npz does not exist"),
        (["show", "good.npz", "--out", "torn.npz/x.png"], "out must be a folder"),
        (["show", "good.npz", "--out", "folder"], "out: cannot write folder"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(tmp_path, monkeypatch, capsys, words, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "torn.npz").write_bytes(b"PK torn")
    kitti_masks._assemble([np.zeros((3, 512), np.uint8)]).save("good.npz")
    assert run(*words) == 2
    err = capsys.readouterr().err
    assert said in err
    assert len(err.splitlines()) == 1
    assert not list(tmp_path.glob("x.*")) + list(tmp_path.glob(".*.tmp"))


@pytest.mark.parametrize("words", [[], ["draw"], ["show"], ["build", "--kiti", "x"]])
def test_bad_options_are_one_line_and_exit_2(words, capsys):
    with pytest.raises(SystemExit) as stop:
        run(*words)
    assert stop.value.code == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
