import numpy as np
import pandas as pd
import pytest

from helpers.fits import TINY
from helpers.walks import noisy
from identica import ContrastiveICA, InputError
from identica.estimator.times import Times, pieces, times_in, times_of


@pytest.fixture(scope="module")
def walk():
    return noisy(240, columns=4)[1]


def hourly(walk, **options):
    index = pd.DatetimeIndex(pd.date_range("2020-01-01", periods=len(walk), freq="h", **options))
    return pd.DataFrame(walk, index=index)


def test_rows_out_of_order_are_refused_and_named(walk):
    frame = hourly(walk)
    order = np.arange(len(walk))
    order[[20, 21]] = [21, 20]
    ica = ContrastiveICA(2, **TINY)
    said = (
        r"X must be in order of time, but row 21 \(from 0\), 2020-01-01 20:00:00, comes after row 20, "
        r"2020-01-01 21:00:00: sort it"
    )
    with pytest.raises(InputError, match=said):
        ica.fit(frame.iloc[order])
    with pytest.raises(InputError, match=said.replace("X", r"X\[1\]")):
        ica.fit([frame, frame.iloc[order]])
    ica.fit(frame)
    with pytest.raises(InputError, match=said):
        ica.score(frame.iloc[order])
    # without a window, or with pairs that are given, the order does not matter
    assert np.array_equal(ica.transform(frame.iloc[order]), ica.transform(frame)[order])
    ica.fit(frame.iloc[order], frame.iloc[order])
    with pytest.raises(InputError, match=said):
        ica.set_params(window=3).fit(frame).transform(frame.iloc[order])


@pytest.mark.parametrize("window", [1, 4])
@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_no_pair_and_no_window_spans_a_gap(walk, window, zone):
    kept = np.r_[0:100, 120:150, 151:240]
    frame = hourly(walk, tz=zone).iloc[kept]
    groups = np.repeat([0, 1, 2], [100, 30, 89])
    ica = ContrastiveICA(2, window=window, **TINY)
    expected = ica.fit(walk[kept], groups=groups).transform(walk[kept], groups=groups)
    said = (
        r"X has 2 gaps in time, the first between row 99 \(from 0\), 2020-01-05 03:00:00.*, and row "
        r"100, 2020-01-06 00:00:00.*; pairs never span one"
    )
    with pytest.warns(UserWarning, match=said):
        ica.fit(frame)
    assert np.array_equal(ica.transform(frame), expected)  # without another warning


def test_each_frame_of_a_list_has_gaps_of_its_own(walk):
    frame, kept = hourly(walk[:100]), np.r_[0:40, 60:100]
    ica = ContrastiveICA(2, **TINY)
    sessions = [walk[:100], walk[:40], walk[60:100], walk[100:]]
    expected = ica.fit(sessions).transform(walk)
    with pytest.warns(UserWarning, match=r"X\[1\] has a gap in time"):
        ica.fit([frame, frame.iloc[kept], pd.DataFrame(walk[100:])])
    assert np.array_equal(ica.transform(walk), expected)


def test_time_is_compared_within_groups():
    times = Times(np.array([0, 5, 1, 6, 2, 9]), str)
    assert pieces("X", times, list("abababab"[:6])).groups.tolist() == [0, 1, 0, 1, 0, 2]
    with pytest.raises(InputError, match="but row 2"):
        pieces("X", times)


@pytest.mark.parametrize(
    ("index", "regular"),
    [
        (pd.date_range("2020", periods=20, freq="B"), True),  # business days
        (pd.period_range("2020", periods=20, freq="M"), True),  # months are not equally long
        (pd.to_timedelta(np.arange(20), unit="s"), True),
        (pd.to_timedelta(np.r_[:10, 20:30], unit="s"), False),
        (pd.to_datetime(np.repeat(np.arange(10), 2), unit="s"), True),  # twice each
    ],
)
def test_which_steps_are_gaps(index, regular):
    times = times_of(pd.DataFrame({"a": np.arange(20.0)}, index=index))
    assert (pieces("X", times).gaps is None) == regular


@pytest.mark.parametrize("index", [range(20), list("abcdefghijklmnopqrst"), np.arange(20)[::-1]])
def test_other_indices_say_nothing_of_time(index):
    assert times_of(pd.DataFrame({"a": np.arange(20.0)}, index=index)) is None


def test_a_row_without_a_date_is_named():
    index = pd.DatetimeIndex(["2020-01-01", None, "2020-01-03"])
    with pytest.raises(InputError, match=r"index without NaT, but row 1 \(from 0\) has none"):
        times_of(pd.DataFrame({"a": [1.0, 2, 3]}, index=index))


@pytest.mark.parametrize(
    "cells",
    [
        np.array(["2020-01-01", "2020-01-02T12:00", "2020-01-02 13:00:00.5"], object),
        np.array(["2020-01-01 01:00+01:00", "2020-01-02T12:00Z", "2020-01-02T13:00:00.5Z"], object),
        np.array(["2020-01-01", "2020-01-02T12:00", "2020-01-02T13:00:00.5"], "M8[ns]"),
        np.array(
            pd.to_datetime(
                ["2020-01-01", "2020-01-02 12:00", "2020-01-02 13:00:00.5"], format="ISO8601"
            ).astype(object)
        ),
    ],
)
def test_dates_in_cells(cells):
    found = times_in("index", cells, str).values
    assert np.diff(found).tolist() == [36 * 3600, 3600.5]


@pytest.mark.parametrize("cell", ["soon", "", None, np.datetime64("NaT"), "nan", "31.1.2020"])
def test_cells_that_are_no_times(cell):
    cells = np.array(["1", "2.5", None], object)
    cells[2] = cell
    with pytest.raises(InputError, match=r"index must hold numbers, or dates .*, but row 2 has"):
        times_in("index", cells, lambda row: f"row {row}")


def test_without_rows():
    assert pieces("X", Times(np.empty(0), str)).groups.tolist() == []


def test_an_index_of_text_is_one_of_dates(walk):
    dated = pd.DataFrame(walk[:6], index=pd.date_range("2024-02-28", periods=6, freq="D"))
    text = dated.set_axis(dated.index.strftime("%Y-%m-%d"))
    text = text.drop(index="2024-03-01")
    cut = pieces("X", times_of(text))
    assert cut.groups.tolist() == [0, 0, 1, 1, 1]
    assert "row 1 (from 0), 2024-02-29" in cut.gaps
    for named in ("a", "7", "20240229", "monday"):
        assert times_of(text.set_axis([named] * 5)) is None


@pytest.mark.parametrize("date", ["28.02.2024", "2/28/2024 12:00", "2024/02/28"])
def test_an_index_of_dates_in_another_format_is_an_error(walk, date):
    frame = pd.DataFrame(walk[:3], index=[date] * 3)
    with pytest.raises(InputError, match="dates such as 2024-02-29 12:00, but row 0"):
        times_of(frame)
    mixed = pd.DataFrame(walk[:3], index=["2024-02-28", "2024-02-29", date])
    with pytest.raises(InputError, match=r"index of X must hold .* but row 2 \(from 0\)"):
        times_of(mixed)
