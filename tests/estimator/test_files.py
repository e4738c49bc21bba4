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
    with pytest.raises(InputError, match=r"array must be said.*a, b"):
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
        ("a,b\n1,x\n", "column 'b' of .* must hold numbers"),
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


def test_parquet_without_its_library(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    (tmp_path / "x.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputError, match="parquet files need pandas and pyarrow"):
        read(tmp_path / "x.parquet")


def test_parquet(tmp_path):
    pytest.importorskip("pyarrow", reason="parquet needs pyarrow")
    import pandas as pd

    pd.DataFrame({"a": [1, 2], "day": ["x", "y"]}).to_parquet(tmp_path / "x.parquet")
    found = read(tmp_path / "x.parquet", groups="day")
    assert found.x.tolist() == [[1], [2]]
    assert found.groups.tolist() == ["x", "y"]


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
        with pytest.raises(InputError, match="array names an array of an npz"):
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


def test_dates_of_a_table_are_not_numbers(tmp_path, monkeypatch):
    import pandas as pd

    frame = pd.DataFrame({"a": [1.0, 2.0], "day": pd.to_datetime(["2020-01-01", "2020-01-02"])})
    monkeypatch.setattr(pd, "read_parquet", lambda path: frame)
    (tmp_path / "x.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputError, match=r"column 'day' of .* must hold numbers"):
        read(tmp_path / "x.parquet")
    assert len(read(tmp_path / "x.parquet", groups="day").groups) == 2


def test_observations_that_are_not_finite(tmp_path):
    x = np.ones((10_000, 2))
    x[9_000, 1] = np.nan
    np.save(tmp_path / "x.npy", x)
    np.savez(tmp_path / "x.npz", x=x)
    (tmp_path / "x.csv").write_text("1,2\n3,inf\n")
    for name in ("x.npy", "x.npz", "x.csv"):
        with pytest.raises(InputError, match="DATA must be finite"):
            read(tmp_path / name)


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


def test_a_header_cannot_claim_more_than_the_file_holds(tmp_path):
    for path in (write(tmp_path, "huge.npy"), write(tmp_path, "huge.npz")):
        assert path.stat().st_size < 1000
        with pytest.raises(InputError, match="claims"):
            read(path)
    with pytest.raises(InputError, match="claims"):
        map_npy(tmp_path / "huge.npy")
    json.dumps(fingerprint(tmp_path / "huge.npy"))
