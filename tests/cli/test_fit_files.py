"""`identica fit` on files of every kind."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.dates import ConciseDateFormatter
from PIL import Image

from identica import ContrastiveICA
from identica.cli import codes as codes_module
from identica.cli import main
from identica.cli.codes import draw_codes

OPTIONS = ["--components", "2", "--steps", "3", "--seed", "4"]
QUICK = ["--components", "2", "--steps", "2", "--no-diagnosis"]


def test_columns_groups_index_and_missing_rows_of_a_table(tmp_path, capsys):
    x = np.random.default_rng(0).normal(size=(60, 2)).cumsum(axis=0)
    frame = pd.DataFrame(x, columns=["left", "right"])
    frame["animal"], frame["note"] = np.repeat(["a", "b"], 30), "free text"
    frame.index = pd.date_range("2020", periods=60, freq="h")
    frame.iloc[7, 0] = np.nan
    kept = np.r_[:20, 25:60]
    path, out = tmp_path / "walk.csv", tmp_path / "out"
    frame.iloc[kept].to_csv(path)
    command = ["fit", str(path), "--out", str(out), *QUICK, "--window", "2", "--plot", "--quiet"]
    assert main([*command, "--groups", "animal", "--drop", "note", "--missing", "drop"]) == 0
    printed, err = capsys.readouterr()
    notes = err.splitlines()
    assert len(notes) == 2
    assert notes[0].endswith("walk.csv is the index, not one of the observations")
    gap = "DATA (by 'index') has a gap in time, the first between row 19 (from 0), 2020-01-01 19:00"
    assert gap in notes[1]
    groups = np.repeat([0, 1, 2], [20, 5, 30])
    ica = ContrastiveICA(2, steps=2, window=2, missing="drop")
    data = frame[["left", "right"]].to_numpy()[kept]
    expected = ica.fit(data, groups=groups).transform(data, groups=groups)
    codes = np.load(out / "codes.npy")
    assert np.array_equal(codes, expected, equal_nan=True)
    assert np.isnan(codes[7]).all()
    assert np.isnan(codes).sum() == 2
    assert f"picture: {out / 'codes.png'}" in printed
    assert (out / "codes.png").read_bytes().startswith(b"\x89PNG")


def test_trials_of_an_array_have_a_table_with_their_numbers(tmp_path):
    trials = np.random.default_rng(0).normal(size=(5, 12, 3)).cumsum(axis=1)
    np.save(tmp_path / "x.npy", trials)
    out = tmp_path / "out"
    assert main(["fit", str(tmp_path / "x.npy"), "--out", str(out), *QUICK, "--plot"]) == 0
    codes = np.load(out / "codes.npy")
    assert codes.shape == (5, 12, 2)
    table = pd.read_csv(out / "codes.csv")
    assert list(table) == ["trial", "time", "code1", "code2"]
    assert np.allclose(table.set_index(["trial", "time"]).loc[(3, 7)], codes[3, 7], atol=1e-6)
    (out / "codes.csv").unlink()
    assert main(["fit", str(tmp_path / "x.npy"), "--out", str(out), *QUICK]) == 0
    assert pd.read_csv(out / "codes.csv").equals(table)


@pytest.mark.parametrize("file", ["x.h5", "x.zarr", "x.parquet"])
def test_files_of_other_libraries(tmp_path, file):
    x = np.random.default_rng(0).normal(size=(60, 2)).cumsum(axis=0)
    path, library = tmp_path / file, {"x.h5": "h5py", "x.zarr": "zarr"}.get(file, "pyarrow")
    module = pytest.importorskip(library, reason="part of identica[files]")
    if library == "h5py":
        with module.File(path, "w") as made:
            made["x"] = x
    elif library == "zarr":
        module.save_array(str(path), x)
    else:
        pd.DataFrame(x, columns=["a", "b"]).to_parquet(path)
    out = tmp_path / "out"
    assert main(["fit", str(path), "--out", str(out), *QUICK]) == 0
    expected = ContrastiveICA(2, steps=2).fit(x).transform(x)
    assert np.array_equal(np.load(out / "codes.npy"), expected)
    assert main(["fit", str(path), "--out", str(out), *QUICK]) == 0  # and is known again


def test_a_picture_of_one_code_and_of_many(tmp_path):
    for n in (1, 2, 20):
        codes = np.random.default_rng(0).normal(size=(30, n))
        codes[3] = np.nan
        draw_codes(tmp_path / f"{n}.png", codes, np.repeat([0, 1, 0], 10))
        assert (tmp_path / f"{n}.png").read_bytes().startswith(b"\x89PNG")


def test_a_folder_of_images(tmp_path, capsys):
    frames = np.random.default_rng(0).integers(0, 256, (30, 16, 20), np.uint8)
    folder = tmp_path / "frames.v2"
    folder.mkdir()
    for number, frame in enumerate(frames):
        Image.fromarray(frame).save(folder / f"{number}.png")
    out = tmp_path / "out"
    command = ["fit", str(folder), "--out", str(out), *OPTIONS]
    assert main([*command, "--no-diagnosis"]) == 0
    expected = ContrastiveICA(2, steps=3, random_state=4).fit(frames).transform(frames)
    assert np.array_equal(np.load(out / "codes.npy"), expected)
    capsys.readouterr()
    command[3] = str(tmp_path / "other")
    assert main([*command, "--columns", "a"]) == 2
    assert "is a folder: leave it out" in capsys.readouterr().err
    (folder / "notes.txt").write_text("")
    assert main(command) == 2
    assert capsys.readouterr().err.count("\n") == 1


def dated(tmp_path, rows=60):
    """A table with dates as text, a gap, and a name and cells that must be quoted."""
    x = np.random.default_rng(0).normal(size=(rows, 2)).cumsum(axis=0)
    index = pd.date_range("2024-02-28", periods=rows, freq="h").strftime("%Y-%m-%d %H:%M")
    frame = pd.DataFrame({'day, "hour"': index, "left": x[:, 0], "right": x[:, 1]})
    frame = frame.drop(index=range(20, 25)).reset_index(drop=True)
    frame.to_csv(tmp_path / "walk.csv", index=False)
    return frame, tmp_path / "walk.csv"


def test_codes_keep_their_dates(tmp_path, monkeypatch):
    frame, path = dated(tmp_path)
    drawn = []
    figure = codes_module._figure
    monkeypatch.setattr(codes_module, "_figure", lambda *a: drawn.append(figure(*a)) or drawn[-1])
    out, name = tmp_path / "out", 'day, "hour"'
    command = ["fit", str(path), "--index", name, "--out", str(out), *QUICK, "--plot", "--quiet"]
    assert main(command) == 0
    table = pd.read_csv(out / "codes.csv")
    assert list(table) == [name, "code1", "code2"]
    assert table[name].equals(frame[name])
    assert np.allclose(table[["code1", "code2"]], np.load(out / "codes.npy"), atol=1e-6)
    [ax] = [ax for ax in drawn[0].axes if ax.get_xlabel() == name]
    drawn[0].canvas.draw()
    assert isinstance(ax.xaxis.get_major_formatter(), ConciseDateFormatter)
    [line] = ax.get_lines()
    assert (line.get_xdata() == frame[name].to_numpy("datetime64[us]")).all()
    bar = drawn[0].axes[-1]
    assert bar.get_ylabel() == name
    assert "2024" in bar.yaxis.get_major_formatter().get_offset()
    (out / "codes.csv").unlink()
    assert main(command) == 0
    assert pd.read_csv(out / "codes.csv").equals(table)


def test_an_index_of_numbers_is_the_axis_too(tmp_path):
    frame, path = dated(tmp_path)
    frame = frame.assign(t=np.arange(len(frame)) / 4)[["t", "left", "right"]]
    frame.to_csv(path, index=False)
    out = tmp_path / "out"
    assert main(["fit", str(path), "--index", "t", "--out", str(out), *QUICK, "--plot"]) == 0
    assert pd.read_csv(out / "codes.csv")["t"].equals(frame["t"])


@pytest.mark.parametrize(
    "date", ["28.02.2024 00:00", "2/28/2024", "2024/02/28 00:00", "Feb 28, 2024"]
)
def test_dates_in_another_format_are_named_with_what_is_expected(tmp_path, capsys, date):
    frame, path = dated(tmp_path)
    frame.iloc[3, 0] = date
    frame.rename(columns={'day, "hour"': "time"}).to_csv(path, index=False)
    assert main(["fit", str(path), "--index", "time", "--out", str(tmp_path / "out"), *QUICK]) == 2
    err = capsys.readouterr().err
    assert f"'time' of {path} must hold numbers, or dates such as 2024-02-29 12:00" in err
    assert f"line 5 has {date!r}" in err


def test_columns_that_are_not_numbers_are_named_with_the_options_for_them(tmp_path, capsys):
    frame, path = dated(tmp_path)
    frame.assign(the_weather="fog").rename(columns={'day, "hour"': "time"}).to_csv(
        path, index=False
    )
    command = ["fit", str(path), "--out", str(tmp_path / "out"), *QUICK]
    assert main(command) == 2
    err = capsys.readouterr().err
    assert "line 2 has the date '2024-02-28 00:00': --index time makes it the index" in err
    assert main([*command, "--index", "time"]) == 2
    assert (
        "--drop the_weather leaves it out, --groups the_weather separates"
        in capsys.readouterr().err
    )
    frame.iloc[5, 1] = np.nan
    frame.rename(columns={'day, "hour"': "time"}).to_csv(path, index=False)
    assert main([*command, "--index", "time"]) == 2
    assert "has an empty cell; --missing drop leaves such rows out" in capsys.readouterr().err
