from datetime import date
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from helpers.fits import TINY
from helpers.frames import DataArray, PolarsFrame
from helpers.walks import noisy
from identica import ContrastiveICA, InputError
from identica.estimator.tables import from_frame, is_frame, numbers


def cell(number):
    return f"line {number + 2}"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("B", "column 'a' must hold numbers, but line 4 has 'B': encode the column as numbers"),
        ("", "column 'a' must hold finite numbers, but line 4 has an empty cell; missing="),
        ("n/a", "column 'a' must hold finite numbers, but line 4 has NaN; missing="),
        (None, "but line 4 has NaN"),
        (pd.NA, "but line 4 has NaN"),
        (np.nan, "but line 4 has NaN"),
        ("1,5", "but line 4 has '1,5', with a decimal comma: write a point"),
        ("1.234,5", "with a decimal comma"),
        ("2020-01-31", "but line 4 has the date '2020-01-31': make the column the index"),
        (date(2020, 1, 31), "has the date or duration 2020-01-31"),
        (np.datetime64("2020-01-31"), "has the date or duration 2020-01-31"),
        (np.timedelta64(3, "s"), "has the date or duration 3 seconds"),
        (1j, "but line 4 has "),
        (b"1", "leave the column out"),
        ([1], "but line 4 has a list: float() argument must be"),
    ],
)
def test_an_error_names_the_column_the_row_and_the_cell(value, message):
    cells = np.empty(4, object)
    cells[:] = ["1", 2, value, 4.0]
    with pytest.raises(InputError) as error:
        numbers("column 'a'", cells, cell)
    assert message in str(error.value)


def test_numbers_of_any_type_are_numbers():
    cells = np.array(["1", " -2e3 ", 3, True, Decimal("0.5"), np.float32(4)], object)
    assert numbers("a", cells, cell).tolist() == [1, -2000, 3, 1, 0.5, 4]
    assert numbers("a", np.array(["", "NA", None, "2"], object), cell, blank=True).tolist()[3] == 2
    whole = np.arange(3, dtype=np.int16)
    assert numbers("a", whole, cell) is whole


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("B", r"X: column 1 must hold numbers, but row 5 \(from 0\) has 'B': encode"),
        ("1,5", "decimal comma"),
        (np.datetime64("2020-01-31"), r"column 1 .* row 5 .* the date or duration 2020-01-31"),
        (None, r"X must be finite, but 1 rows .* row 5, column 1 \(from 0\); missing="),
        ("", r"X must be finite, but 1 rows .* row 5, column 1 \(from 0\); missing="),
        ({}, r"column 1 .* row 5 \(from 0\) has a dict: float\(\) argument must be"),
    ],
)
def test_cells_of_an_array_are_named_as_well(value, message):
    cells = noisy(60, columns=3)[1].astype(object)
    cells[5, 1] = value
    for x in (cells, cells.tolist()):
        with pytest.raises(InputError, match=message):
            ContrastiveICA(2, **TINY).fit(x)
    with pytest.raises(InputError, match=message.replace("X", r"X\[0\]", message.startswith("X:"))):
        ContrastiveICA(2, **TINY).fit([cells[:30], cells[30:]])


def test_text_is_numbers_where_it_can_be_read():
    x = noisy(60, columns=3)[1]
    ica = ContrastiveICA(2, **TINY)
    expected = ica.fit(x).transform(x)
    text = np.array([[repr(float(value)) for value in row] for row in x])
    assert np.array_equal(ica.fit(text).transform(text), expected)


def frame():
    rows = np.random.default_rng(0).normal(size=(60, 2)).cumsum(axis=0)
    return pd.DataFrame(rows, columns=["left", "right"])


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (
            pd.Categorical(["A", "B"] * 30),
            "X: column 'bad' must hold numbers, but it is categorical",
        ),
        (pd.Categorical([1, 2] * 30), "but it is categorical"),
        (["A", "B"] * 30, r"column 'bad' must hold numbers, but row 0 \(from 0\) has 'A'"),
        (pd.date_range("2020", periods=60), "column 'bad' .* the date or duration 2020-01-01"),
        (["1"] * 7 + ["1,5"] * 53, r"row 7 \(from 0\) has '1,5', with a decimal comma"),
        (
            [1.0] * 9 + [None] * 51,
            r"X must be finite, but 51 rows .* row 9, column 2 .*'bad'; miss",
        ),
        (pd.array([1] * 9 + [None] * 51, "Int64"), r"row 9, column 2 \(from 0\), 'bad'"),
    ],
)
def test_a_column_of_a_frame_that_is_not_numbers_is_named(column, message):
    with pytest.raises(InputError, match=message):
        ContrastiveICA(2, **TINY).fit(frame().assign(bad=column))


def test_frames_keep_their_types_and_names():
    whole = pd.DataFrame({"a": [1, 2], "b": [3, 4]})
    assert from_frame("X", whole).dtype == np.int64
    assert from_frame("X", whole.astype(np.float32)).dtype == np.float32
    assert from_frame("X", whole.assign(b=[True, False])).tolist() == [[1, 1], [2, 0]]
    assert from_frame("X", whole.astype("Int64")).tolist() == [[1, 3], [2, 4]]
    twice = pd.DataFrame(np.arange(4.0).reshape(2, 2), columns=["a", "a"])
    assert from_frame("X", twice).tolist() == [[0, 1], [2, 3]]
    for empty in (pd.DataFrame(index=range(3)), pd.DataFrame(columns=["a", "b"])):
        with pytest.raises(InputError, match="shape N×d"):
            from_frame("X", empty)
    ica = ContrastiveICA(2, **TINY).fit(frame())
    assert ica.feature_names_in_.tolist() == ["left", "right"]
    with pytest.raises(InputError, match="feature names"):
        ica.transform(frame().rename(columns={"left": "top"}))


def test_frames_of_polars_are_read_column_by_column():
    x = noisy(120, columns=3)[1]
    fake = PolarsFrame({name: x[:, k] for k, name in enumerate("abc")})
    assert is_frame(fake)
    ica = ContrastiveICA(2, **TINY)
    assert np.array_equal(ica.fit(fake).transform(fake), ica.fit(x).transform(x))
    fake = PolarsFrame({"a": x[:, 0], "kind": np.array(["A", "B"] * 60)}, kind="Categorical")
    with pytest.raises(InputError, match="column 'kind' must hold numbers, but it is categorical"):
        ica.fit(fake)


def test_real_frames_of_polars():
    polars = pytest.importorskip("polars", reason="which may be handed in, but is not needed")
    x = noisy(120, columns=3)[1]
    table = polars.DataFrame({name: x[:, k] for k, name in enumerate("abc")})
    ica = ContrastiveICA(2, **TINY)
    assert np.array_equal(ica.fit(table).transform(table), ica.fit(x).transform(x))
    with pytest.raises(InputError, match="column 'd' must hold numbers, but it is categorical"):
        ica.fit(table.with_columns(d=polars.Series(["A", "B"] * 60, dtype=polars.Categorical)))
    with pytest.raises(InputError, match="column 'd' must hold numbers, but row 0"):
        ica.fit(table.with_columns(d=polars.lit(date(2020, 1, 31))))


@pytest.mark.parametrize("shape", [(240, 4), (8, 30, 4), (15, 4, 4, 4)])
def test_arrays_of_xarray(shape):
    x = noisy(240, columns=4)[1].reshape(shape)
    ica = ContrastiveICA(2, **TINY)
    expected = ica.fit(x).transform(x)
    assert np.array_equal(ica.fit(DataArray(x)).transform(DataArray(x)), expected)
    if len(shape) == 2:
        index = pd.date_range("2020", periods=240, freq="s")[::-1]
        with pytest.raises(InputError, match="X must be in order of time, but row 1"):
            ica.fit(DataArray(x, index))


def test_real_arrays_of_xarray():
    xarray = pytest.importorskip("xarray", reason="which may be handed in, but is not needed")
    x = noisy(240, columns=4)[1]
    index = pd.date_range("2020", periods=240, freq="s")
    ica = ContrastiveICA(2, **TINY)
    made = xarray.DataArray(x, dims=("time", "channel"), coords={"time": index})
    assert np.array_equal(ica.fit(made).transform(made), ica.fit(x).transform(x))
    with pytest.raises(InputError, match="X must be in order of time, but row 1"):
        ica.fit(made.isel(time=slice(None, None, -1)))
