import numpy as np
import pytest
import tqdm.auto
from PIL import Image

from identica.cli import main
from identica.datasets.threedident import blender, render
from identica.datasets.threedident.pictures import first_images, psnr, traversals
from identica.datasets.threedident.storage import ImageSet


def run(*words):
    return main(["data", "3dident", *map(str, words)])


@pytest.mark.parametrize("packed", [True, False])
def test_build_check_show(tmp_path, capsys, packed):
    folder, picture = tmp_path / "set", tmp_path / "pictures" / "sheet.png"
    form = ["--packed"] if packed else []
    assert run("build", "--n", 9, "--size", 16, "--out", folder, "--seed", 3, *form) == 0
    told = capsys.readouterr()
    assert told.out == f"9 images of 16×16 in {folder}\n"
    assert "9/9" in told.err  # the progress bar

    data = ImageSet(folder)
    z = np.random.default_rng([3, 9]).uniform(-1, 1, (9, 10))
    np.testing.assert_array_equal(data.raw_latents, z)
    np.testing.assert_array_equal(data.images(range(9)), render(z, 16))

    assert run("check", folder) == 0
    assert "9 images of 16×16, all whole; 9 rendered again: PSNR 99.0 dB" in capsys.readouterr().out

    assert run("show", folder, "--out", picture) == 0
    with Image.open(picture) as image:
        np.testing.assert_array_equal(np.asarray(image), first_images(data))


def test_some_factors_vary_and_the_others_stay(tmp_path, capsys):
    words = ["build", "--n", 6, "--size", 8, "--out", tmp_path / "set"]
    assert run(*words, "--factors", "spot_hue, x") == 0
    varied = ImageSet(tmp_path / "set").raw_latents.std(axis=0) > 0
    assert varied.tolist() == [True] + [False] * 7 + [True, False]
    assert run(*words) == 2  # another build in the same folder
    capsys.readouterr()
    assert run(*words, "--factors", "x,colour") == 2
    assert "factors must be among x, y, z" in capsys.readouterr().err


def test_the_first_images_are_in_reading_order(tmp_path):
    run("build", "--n", 7, "--size", 8, "--out", tmp_path / "set", "--samples", 4)
    data = ImageSet(tmp_path / "set")
    sheet = first_images(data, side=3)
    assert sheet.shape == (2 * 10 + 2, 3 * 10 + 2, 3)
    np.testing.assert_array_equal(sheet[12:20, 2:10], data.images([3])[0])


def test_without_a_data_set_every_factor_is_shown(tmp_path):
    picture = tmp_path / "sheet.png"
    assert run("show", "--out", picture) == 0
    with Image.open(picture) as image:
        assert image.size == (9 * 98 + 2, 10 * 98 + 2)
    sheet = traversals(size=8, columns=3)
    middle = [sheet[10 * k + 2 : 10 * k + 10, 12:20] for k in range(10)]
    assert all((image == middle[0]).all() for image in middle)  # each passes through the same scene
    ends = [sheet[10 * k + 2 : 10 * k + 10, 22:30] for k in range(10)]
    assert all((image != middle[0]).any() for image in ends)


def test_a_build_goes_on_and_another_is_refused(tmp_path, capsys):
    words = ["build", "--n", 5, "--size", 8, "--out", tmp_path / "set"]
    assert run(*words) == 0
    (tmp_path / "set" / "images" / "000002.png").unlink()
    assert run("check", tmp_path / "set") == 2
    assert "the first is 000002.png" in capsys.readouterr().err
    assert run(*words) == 0
    assert run("check", tmp_path / "set") == 0
    capsys.readouterr()
    assert run(*words, "--samples", 16) == 2
    assert "the same build" in capsys.readouterr().err
    assert run(*words, "--seed", 1) == 2


@pytest.mark.parametrize("other", [["--n", 5], ["--n", 12, "--seed", 1]])
def test_a_set_to_test_on_shares_no_image_with_one_to_train_on(tmp_path, other):
    run("build", "--n", 12, "--size", 4, "--out", tmp_path / "train")
    run("build", *other, "--size", 4, "--out", tmp_path / "test")
    train, test = (ImageSet(tmp_path / part).raw_latents for part in ("train", "test"))
    assert not np.isin(test, train).any()


def test_help_says_how_to_get_sets_to_train_and_to_test_on(capsys):
    with pytest.raises(SystemExit):
        run("build", "--help")
    told = " ".join(capsys.readouterr().out.split())
    assert "different --seed or a different --n share no image" in told


@pytest.fixture
def bars(monkeypatch):
    """The progress bars of a command, and by how much each was moved."""
    made = []

    class Bar(tqdm.tqdm):
        def __init__(self, *args, **options):
            super().__init__(*args, **options)
            self.moves = []
            made.append(self)

        def update(self, n=1):
            self.moves.append(n)
            return super().update(n)

    monkeypatch.setattr(tqdm.auto, "tqdm", Bar)
    return made


@pytest.mark.parametrize("packed", [True, False])
def test_the_pace_is_that_of_the_images_drawn_now(tmp_path, bars, packed):
    words = ["build", "--n", 1100, "--size", 1, "--samples", 4, "--out", tmp_path / "set"]
    words += ["--packed"] if packed else []
    assert run(*words) == 0
    assert run(*words) == 0
    (tmp_path / "set" / ("packed/001024.npy" if packed else "images/000007.png")).unlink()
    assert run(*words) == 0
    drawn = 1100 - 1024 if packed else 1
    assert [bar.initial for bar in bars] == [0, 1100, 1100 - drawn]
    assert [sum(bar.moves) for bar in bars] == [1100, 0, drawn]
    assert [bar.n for bar in bars] == [1100] * 3


@pytest.mark.parametrize("packed", [True, False])
def test_a_slow_engine_draws_few_images_at_once_and_loses_few(
    tmp_path, monkeypatch, capsys, packed
):
    groups = []

    def slow(z, size, samples):
        if len(groups) == 3:
            groups.append([])
            raise KeyboardInterrupt
        groups.append(z)
        return render(z, size, 4)

    monkeypatch.setattr(blender, "require", lambda: None)
    monkeypatch.setattr(blender, "render", slow)
    words = ["build", "--n", 30, "--size", 2, "--out", tmp_path / "set", "--engine", "blender"]
    words += ["--packed"] if packed else []
    assert run(*words) == 130
    assert "the same command resumes from here" in capsys.readouterr().err
    assert run(*words) == 0
    assert max(map(len, groups)) <= 4
    drawn = np.concatenate([z for z in groups if len(z)])
    np.testing.assert_array_equal(drawn, ImageSet(tmp_path / "set").raw_latents)


def test_images_that_do_not_show_their_latents_are_noticed(tmp_path, capsys):
    run("build", "--n", 6, "--size", 16, "--out", tmp_path / "set", "--packed")
    path = tmp_path / "set" / "raw_latents.npy"
    np.save(path, np.roll(np.load(path), 1, axis=0))
    capsys.readouterr()
    assert run("check", tmp_path / "set") == 2
    assert "must hold images of its latents" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--n", "0"], "n must be"),
        (["--n", "2", "--size", "0"], "size must be"),
        (["--n", "2", "--samples", "0"], "samples must be"),
        (["--n", "2", "--seed", "-1"], "seed must be"),
        (["--n", "2", "--engine", "povray"], "engine must be one of fast, blender"),
    ],
)
def test_bad_input_is_told_in_one_line(tmp_path, capsys, words, told):
    assert run("build", "--out", tmp_path / "set", *words) == 2
    lines = [line for line in capsys.readouterr().err.splitlines() if "identica:" in line]
    assert len(lines) == 1
    assert told in lines[0]
    assert not (tmp_path / "set").exists()


def test_what_is_not_there_is_told_in_one_line(tmp_path, capsys):
    assert run("check", tmp_path / "nowhere") == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert run("show", tmp_path / "nowhere", "--out", tmp_path / "sheet.png") == 2
    assert not (tmp_path / "sheet.png").exists()
    with pytest.raises(SystemExit) as stop:
        run("build", "--n", "many", "--out", tmp_path)
    assert stop.value.code == 2


def test_psnr_by_hand():
    a = np.zeros((2, 2, 2, 3), np.uint8)
    b = a.copy()
    b[1] = 51
    assert psnr(a, b).tolist() == pytest.approx([99.0, 20 * np.log10(5)])


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--n", 99999999999999999999),
        ("--n", 3_000_000_000),
        ("--size", 99999999999999999999),
        ("--size", 1_000_000),
        ("--samples", 99999999999999999999),
        ("--seed", 99999999999999999999),
    ],
)
def test_absurd_numbers_are_one_line_and_nothing_is_written(option, value, tmp_path, capsys):
    assert run("build", "--n", 2, "--out", tmp_path / "set", option, value) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"identica: {option} must be a whole number of at least")
    assert len(err.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_no_progress_of_a_build_that_is_refused(tmp_path, capsys):
    (tmp_path / "file").touch()
    assert run("build", "--n", 2, "--out", tmp_path / "file") == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
