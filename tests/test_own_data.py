import sys

import numpy as np
import pytest

from identica import InputError
from identica.own_data import fingerprint, read


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
    with pytest.raises(InputError, match="is none"):
        read(tmp_path / "x.npy")
    for kind in (".npy", ".npz"):
        (tmp_path / f"bad{kind}").write_bytes(b"no such thing")
        with pytest.raises(InputError, match="cannot be read"):
            read(tmp_path / f"bad{kind}")
    np.save(tmp_path / "object.npy", np.array([{}]), allow_pickle=True)
    with pytest.raises(InputError, match="cannot be read"):
        read(tmp_path / "object.npy")


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


def test_the_fingerprint_tells_files_apart(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, np.zeros(400_000))
    first = fingerprint(path)
    assert first == fingerprint(path)
    np.save(path, np.r_[np.zeros(399_999), 1.0])
    assert first != fingerprint(path)
