import contextlib
import json
import os
import pickle
import sys
from pathlib import Path

import numpy as np
import pytest

from identica import InputError
from identica.datasets.reading import map_npy, npz_names, read_npz
from identica.estimator.files import fingerprint, read

sys.path.append(str(Path(__file__).parents[1]))  # validation stands beside the tests
from validation.bad_files import BAD, write


def test_npy_files_are_mapped_and_not_copied(tmp_path):
    x = np.random.default_rng(0).normal(size=(5, 3))
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "after.npy", x + 1)
    np.save(tmp_path / "day.npy", np.arange(5))
    found = read(
        tmp_path / "x.npy",
        positives=str(tmp_path / "after.npy"),
        groups=str(tmp_path / "day.npy"),
    )
    assert isinstance(found.x, np.memmap)
    assert np.array_equal(found.x, x)
    assert np.array_equal(found.positives, x + 1)
    assert found.groups.tolist() == [0, 1, 2, 3, 4]


def test_arrays_of_an_npz_are_found_by_name(tmp_path):
    path = tmp_path / "all.npz"
    np.savez(path, x=np.zeros((4, 2)), later=np.ones((4, 2)), day=np.array(list("aabb")))
    found = read(path, positives="later", groups="day")
    assert found.x.sum() == 0
    assert found.positives.sum() == 8
    assert found.groups.tolist() == list("aabb")
    assert read(path, array="later").x.sum() == 8
    with pytest.raises(InputError, match="array must be one of x, later, day"):
        read(path, array="y")
    with pytest.raises(
        InputError, match=r"groups must be a file, or a name in DATA.*x, later, day"
    ):
        read(path, groups="week")
    np.savez(path, a=np.zeros((4, 2)), b=np.zeros((4, 2)))
    with pytest.raises(InputError, match=r"array must be given.*a, b"):
        read(path)


@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_tables_with_and_without_names(tmp_path, mark):
    path = tmp_path / "table.csv"
    path.write_text(f"speed{mark}day{mark}heat\n1{mark}mo{mark}-2e3\n\n0.5{mark}tu{mark}4\n")
    found = read(path, groups="day")
    assert found.columns == ["speed", "heat"]
    assert found.x.tolist() == [[1, -2000], [0.5, 4]]
    assert found.groups.tolist() == ["mo", "tu"]
    path.write_text(f"1{mark}2\n3{mark}4\n")
    assert read(path).x.tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("a,b\n1,2\n1\n", "line 3 has 1 cells, the first 2"),
        ("a,b\n1,x\n", "column 'b' of .* must hold numbers, but line 2 has 'x': drop=\"b\" leaves"),
        ("a,b\n\n1,2\n1,\n", "column 'b' of .* but line 4 has an empty cell; missing="),
        ("a,b\n1,2\n1,nan\n", "column 'b' of .* finite numbers, but line 3 has NaN"),
        ("a;b\n1;2\n1,5;2\n", "column 'a' of .* line 3 has '1,5', with a decimal comma"),
        ("a,day\n1,2020-01-31\n", "column 'day' of .* the date '2020-01-31': index=\"day\" makes"),
        ("a,a\n1,2\n", "columns must have different names"),
    ],
)
def test_tables_that_cannot_be_used(tmp_path, text, message):
    (tmp_path / "table.csv").write_text(text)
    with pytest.raises(InputError, match=message):
        read(tmp_path / "table.csv")


def test_files_that_cannot_be_used(tmp_path):
    with pytest.raises(InputError, match=r"DATA must be a file of \.npy"):
        read(tmp_path / "x.txt")
    with pytest.raises(InputError, match=r"DATA: .*x\.npy does not exist"):
        read(tmp_path / "x.npy")
    os.mkfifo(tmp_path / "pipe.npz")
    with pytest.raises(InputError, match="not a folder, pipe or device"):
        read_npz(tmp_path / "pipe.npz", ["x"])


def test_the_fingerprint_is_of_all_bytes_and_not_of_the_name(tmp_path):
    path, middle = tmp_path / "x.npy", np.zeros(400_000)
    np.save(path, middle)
    first = fingerprint(path)
    assert first == fingerprint(path.rename(tmp_path / "y.npy"))
    middle[200_000] = 1.0  # 1.6 MB from either end
    np.save(path, middle)
    assert first != fingerprint(path)


@pytest.mark.parametrize("name", BAD)
def test_bad_files_give_one_error(tmp_path, name):
    path = write(tmp_path, name)
    with pytest.raises(InputError) as caught:
        read(path)
    message = str(caught.value)
    assert len(message.splitlines()) == 1
    assert len(message) < 500
    assert BAD[name].says in message
    np.save(tmp_path / "good.npy", np.ones((6, 2)))
    with pytest.raises(InputError):
        read(tmp_path / "good.npy", positives=str(path))


def test_any_flipped_or_missing_byte_is_read_or_refused(tmp_path):
    """Whatever NumPy or zipfile makes of it, nothing but an `InputError` comes out."""
    rng = np.random.default_rng(0)
    np.savez_compressed(tmp_path / "a.npz", x=np.arange(12.0).reshape(4, 3))
    np.save(tmp_path / "a.npy", np.arange(12.0).reshape(4, 3))
    for source in (tmp_path / "a.npz", tmp_path / "a.npy"):
        content = source.read_bytes()
        bad = tmp_path / f"bad{source.suffix}"
        for trial in range(400):
            changed = bytearray(content)
            if trial % 4:
                for place in rng.integers(len(content), size=trial % 4):
                    changed[place] = rng.integers(256)
            else:
                del changed[rng.integers(len(content)) :]
            bad.write_bytes(changed)
            with contextlib.suppress(InputError):
                read(bad)


def test_objects_are_never_unpickled(tmp_path):
    class Trap:
        def __reduce__(self):
            return (open, (str(tmp_path / "sprung"), "w"))

    trap = np.array([Trap()], dtype=object)
    np.save(tmp_path / "trap.npy", trap, allow_pickle=True)
    np.savez(tmp_path / "trap.npz", x=trap)
    (tmp_path / "raw.npy").write_bytes(pickle.dumps(Trap()))
    for name in ("trap.npy", "trap.npz", "raw.npy"):
        with pytest.raises(InputError):
            read(tmp_path / name)
    with pytest.raises(InputError, match="never unpickled"):
        read_npz(tmp_path / "trap.npz", ["x"])
    assert not (tmp_path / "sprung").exists()


def test_only_what_is_asked_for_is_read(tmp_path, monkeypatch):
    path = tmp_path / "two.npz"
    np.savez(path, small=np.ones((4, 2)), large=np.ones((4, 2)), day=np.arange(4))
    taken, load = [], np.lib.format.read_array
    monkeypatch.setattr(
        np.lib.format, "read_array", lambda file, **k: taken.append(file.name) or load(file, **k)
    )
    read(path, array="small", groups="day")
    assert taken == ["small.npy", "day.npy"]


def test_a_damaged_neighbour_is_no_obstacle(tmp_path):
    path = tmp_path / "two.npz"
    np.savez(path, small=np.ones((4, 2)), large=np.full((4, 2), 7.0))
    assert npz_names(path) == ["small", "large"]
    content = path.read_bytes()
    place = content.index(np.float64(7).tobytes())
    path.write_bytes(content[:place] + b"\xff" + content[place + 1 :])
    assert read(path, array="small").x.sum() == 8
    with pytest.raises(InputError, match="CRC"):
        read(path, array="large")


def test_an_array_is_named_in_an_npz_alone(tmp_path):
    np.save(tmp_path / "x.npy", np.ones((4, 2)))
    (tmp_path / "x.csv").write_text("1,2\n3,4\n")
    for name in ("x.npy", "x.csv"):
        with pytest.raises(InputError, match="array selects one of several arrays in a file"):
            read(tmp_path / name, array="x")


def test_positives_must_have_the_shape_of_the_observations(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.ones((4, 2)), y=np.ones(4), narrow=np.ones((4, 1)))
    np.save(tmp_path / "short.npy", np.ones((3, 2)))
    for positives, message in [
        ("y", "positives must have shape N×d"),
        ("narrow", r"shape of the observations, \(4, 2\), got \(4, 1\)"),
        (str(tmp_path / "short.npy"), r"got \(3, 2\)"),
    ]:
        with pytest.raises(InputError, match=message):
            read(tmp_path / "a.npz", array="x", positives=positives)


@pytest.mark.parametrize(
    "values",
    [
        np.array([["2020-01-01"], ["2020-01-02"]], "M8[D]"),
        np.array([[1], [2]], "m8[s]"),
        np.array([[1j], [2]]),
        np.array([["1"], ["2"]]),
    ],
)
def test_dates_and_complex_numbers_are_not_numbers(tmp_path, values):
    np.save(tmp_path / "x.npy", values)
    with pytest.raises(InputError, match="DATA must hold real numbers, got"):
        read(tmp_path / "x.npy")
    np.savez(tmp_path / "x.npz", x=np.ones((2, 1)), after=values)
    with pytest.raises(InputError, match="positives must hold real numbers, got"):
        read(tmp_path / "x.npz", array="x", positives="after")


def test_observations_that_are_not_finite(tmp_path):
    x = np.ones((10_000, 2))
    x[9_000, 1] = np.nan
    np.save(tmp_path / "x.npy", x)
    np.savez(tmp_path / "x.npz", x=x)
    (tmp_path / "x.csv").write_text("1,2\n3,inf\n")
    for name in ("x.npy", "x.npz", "x.csv"):
        with pytest.raises(InputError, match="DATA must be finite"):
            read(tmp_path / name)
    for name in ("x.npy", "x.npz"):
        assert np.isnan(read(tmp_path / name, missing="drop").x).sum() == 1


def test_labels_of_a_csv_may_be_long_text_and_must_not_be_blank(tmp_path):
    labels = ["a" * 100_000, "b", "b"]
    (tmp_path / "x.csv").write_text("x,day\n" + "".join(f"{k},{v}\n" for k, v in enumerate(labels)))
    assert read(tmp_path / "x.csv", groups="day").groups.tolist() == labels
    (tmp_path / "x.csv").write_text("x,day\n1,a\n2,\n3,NaN\n")
    assert read(tmp_path / "x.csv", groups="day").groups.tolist() == ["a", None, None]
    (tmp_path / "x.csv").write_text("1\n2\n3\n")
    (tmp_path / "day.csv").write_text("day\nmo\nmo\ntu\n")
    found = read(tmp_path / "x.csv", groups=str(tmp_path / "day.csv"))
    assert found.groups.tolist() == ["mo", "mo", "tu"]
    assert set(found.files) == {"data", "groups"}


@pytest.mark.parametrize("shape", [(4,), (4, 1), (4, 2), ()])
def test_labels_of_a_file_of_their_own_are_a_vector_or_a_column(tmp_path, shape):
    np.save(tmp_path / "x.npy", np.arange(8.0).reshape(4, 2))
    labels = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    np.save(tmp_path / "day.npy", labels)
    found = read(tmp_path / "x.npy", groups=str(tmp_path / "day.npy")).groups
    if shape in ((4,), (4, 1)):
        assert found.tolist() == [0, 1, 2, 3]
    else:  # are refused with their shape, where they are used
        assert np.array_equal(found, labels)
        assert found.shape == shape


def test_a_header_cannot_claim_more_than_the_file_holds(tmp_path):
    for path in (write(tmp_path, "huge.npy"), write(tmp_path, "huge.npz")):
        assert path.stat().st_size < 1000
        with pytest.raises(InputError, match="claims"):
            read(path)
    with pytest.raises(InputError, match="claims"):
        map_npy(tmp_path / "huge.npy")
    json.dumps(fingerprint(tmp_path / "huge.npy"))


# --- columns, and the index -------------------------------------------------------------------------

TABLE = "a,b,c,day\n1,2,3,mo\n4,5,6,mo\n7,8,9,tu\n"


@pytest.mark.parametrize(
    ("options", "columns"),
    [
        ({"drop": "day"}, ["a", "b", "c"]),
        ({"drop": "b, day"}, ["a", "c"]),
        ({"columns": "c,a"}, ["c", "a"]),
        ({"columns": "a,b,c", "drop": "b"}, ["a", "c"]),
        ({"columns": "a"}, ["a"]),
        ({"groups": "day"}, ["a", "b", "c"]),
        ({"groups": "day", "index": "a"}, ["b", "c"]),
    ],
)
def test_columns_are_chosen_and_dropped(tmp_path, options, columns):
    (tmp_path / "x.csv").write_text(TABLE)
    found = read(tmp_path / "x.csv", **options)
    assert found.columns == columns
    whole = {"a": [1, 4, 7], "b": [2, 5, 8], "c": [3, 6, 9]}
    assert found.x.T.tolist() == [whole[name] for name in columns]
    same = read(tmp_path / "x.csv", positives=str(tmp_path / "x.csv"), **options)
    assert np.array_equal(same.positives, same.x)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"columns": "a, b,a"}, "columns must name each column once, got 'a, b,a'"),
        ({"drop": "e"}, r"drop must name columns of .*x.csv, which has a, b, c, day, got 'e'"),
        ({"columns": "a,,b"}, "columns must name columns of .* got ''"),
        ({"columns": "a", "drop": "a"}, "no columns for them"),
        ({"index": "e", "drop": "day"}, "index must be a name in DATA, which has a, b, c, day"),
        ({"index": "day"}, r"index 'day' of .* must hold numbers, or dates .* line 2 has 'mo'"),
        ({"drop": "day", "missing": "fill"}, "missing must be one of raise, drop"),
    ],
)
def test_columns_that_are_not_there(tmp_path, options, message):
    (tmp_path / "x.csv").write_text(TABLE)
    with pytest.raises(InputError, match=message):
        read(tmp_path / "x.csv", **options)


def test_columns_are_those_of_a_table(tmp_path):
    np.save(tmp_path / "x.npy", np.ones((4, 2)))
    for option in ("columns", "drop"):
        with pytest.raises(InputError, match=f"{option} names columns of a table, but .* is .npy"):
            read(tmp_path / "x.npy", **{option: "a"})


def test_names_may_have_commas(tmp_path):
    (tmp_path / "x.csv").write_text('"a, left",b\n1,2\n3,4\n')
    assert read(tmp_path / "x.csv", columns="a, left").x.tolist() == [[1], [3]]


@pytest.mark.parametrize(
    "text",
    [
        ",a,b\n0,5,6\n1,7,8\n2,9,10\n",  # DataFrame.to_csv
        "Unnamed: 0,a,b\n0,5,6\n1,7,8\n2,9,10\n",  # and read and written again
        "0,5,6\n1,7,8\n2,9,10\n",  # without a header
        ",a,b\n2020-01-01,5,6\n2020-01-02,7,8\n2020-01-03,9,10\n",
    ],
)
def test_an_index_is_no_observation(tmp_path, text):
    (tmp_path / "x.csv").write_text(text)
    found = read(tmp_path / "x.csv")
    assert found.x.tolist() == [[5, 6], [7, 8], [9, 10]]
    assert found.groups is None
    [note] = found.notes
    assert "is the index, not one of the observations" in note


@pytest.mark.parametrize(
    "text", ["a,b\n0,5\n1,7\n2,9\n", "0,5\n1,7\n3,9\n", "0\n1\n2\n", "0.0,1\n1.0,2\n"]
)
def test_other_columns_are_observations(tmp_path, text):
    (tmp_path / "x.csv").write_text(text)
    found = read(tmp_path / "x.csv")
    assert found.x.shape[1] == text.splitlines()[0].count(",") + 1
    assert found.notes == []


def test_gaps_of_an_index_end_a_sequence(tmp_path):
    hours = [0, 1, 2, 9, 10, 11]
    lines = [f"2020-01-01 {hour:02}:00,{hour},{hour**2}" for hour in hours]
    (tmp_path / "x.csv").write_text("\n".join(["when,a,b", *lines]) + "\n")
    found = read(tmp_path / "x.csv", index="when")
    assert found.columns == ["a", "b"]
    assert found.groups.tolist() == [0, 0, 0, 1, 1, 1]
    [note] = found.notes
    assert "a gap in time, the first between row 2 (from 0), 2020-01-01 02:00, and row 3" in note
    (tmp_path / "x.csv").write_text("\n".join(["when,a,b", *lines[::-1]]) + "\n")
    with pytest.raises(
        InputError, match=r"DATA \(by .*\) must be in order of time, but row 1 \(from 0\)"
    ):
        read(tmp_path / "x.csv", index="when")


def test_empty_cells_become_nan_where_rows_may_be_left_out(tmp_path):
    (tmp_path / "x.csv").write_text("a,b\n1,2\n,4\n5,NA\n")
    found = read(tmp_path / "x.csv", missing="drop").x
    assert np.array_equal(found, [[1, 2], [np.nan, 4], [5, np.nan]], equal_nan=True)


def test_a_misspelt_index_is_named_before_the_cells_of_the_column(tmp_path):
    path = tmp_path / "dated.csv"
    path.write_text("time,a\n2020-01-01,1\n2020-01-02,2\n")
    with pytest.raises(InputError, match=r"index must be a name in DATA.*got 'tme'"):
        read(path, index="tme")
