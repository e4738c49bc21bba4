from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch

from helpers.fits import TINY
from helpers.walks import noisy
from identica import ContrastiveICA, InputError
from identica.estimator.inputs import checked, joined


@pytest.fixture(scope="module")
def walk():
    return noisy(240, columns=4)[1]


# --- several sequences ------------------------------------------------------------------------------


@pytest.mark.parametrize("window", [1, 5])
def test_a_list_of_sessions_is_groups(walk, window):
    ends = [100, 130, 240]
    sessions = np.split(walk, ends[:-1])
    groups = np.repeat(["first", "second", "third"], [100, 30, 110])
    ica = ContrastiveICA(2, window=window, **TINY)
    expected = ica.fit(walk, lag=2, groups=groups).transform(walk, groups=groups)
    score = ica.score(walk, groups=groups)
    for parts in (
        sessions,
        tuple(map(torch.from_numpy, sessions)),
        list(map(pd.DataFrame, sessions)),
    ):
        codes = ica.fit(parts, lag=2).transform(parts)
        assert isinstance(codes, list)
        assert [len(part) for part in codes] == [100, 30, 110]
        assert np.array_equal(np.concatenate(codes), expected)
        assert ica.score(parts) == score
    [alone] = ica.transform([walk[100:130]])
    assert np.allclose(alone, codes[1], atol=1e-6)


@pytest.mark.parametrize("window", [1, 4])
def test_trials_are_sequences(walk, window):
    trials = walk.reshape(8, 30, 4)
    ica = ContrastiveICA(2, window=window, **TINY).fit(trials)
    codes = ica.transform(trials)
    assert codes.shape == (8, 30, 2)
    other = ContrastiveICA(2, window=window, **TINY).fit(list(trials))
    assert np.array_equal(codes, np.stack(other.transform(list(trials))))
    assert ica.score(trials) == other.score(list(trials))
    assert np.array_equal(ica.transform(torch.from_numpy(trials)), codes)
    # once it is known that they are trials, their length may be the number of channels
    assert ica.transform(trials[:, :4]).shape == (8, 4, 2)
    assert ica.transform(trials[0]).shape == (30, 2)


@pytest.mark.parametrize("kind", [np.float32, np.int64, np.uint16])
def test_square_trials_are_trials(kind):
    trials = np.random.default_rng(0).integers(0, 50, (40, 6, 6)).astype(kind)
    ica = ContrastiveICA(2, **TINY).fit(trials)
    assert ica.transform(trials).shape == (40, 6, 2)
    assert ica.n_features_in_ == 6


@pytest.mark.parametrize(
    "images",
    [
        np.random.default_rng(0).integers(0, 256, (40, 6, 6)).astype(np.uint8),
        np.random.default_rng(0).random((40, 7, 6)) > 0.5,
        torch.randint(0, 256, (40, 7, 6), generator=torch.Generator(), dtype=torch.uint8),
        np.random.default_rng(0).random((40, 6, 6, 1)),
    ],
)
def test_bytes_booleans_and_four_dimensions_are_images(images):
    ica = ContrastiveICA(2, **TINY).fit(images)
    assert ica.transform(images).shape == (40, 2)
    assert ica.fit(images, images).transform(images).shape == (40, 2)


def test_a_network_of_its_own_takes_observations_of_any_shape():
    data = np.random.default_rng(0).random((40, 6, 6), np.float32)
    network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(36, 2))
    assert ContrastiveICA(2, network=network, **TINY).fit_transform(data).shape == (40, 2)


def test_mapped_trials_stay_on_disk(walk, tmp_path):
    np.save(tmp_path / "trials.npy", walk.reshape(8, 30, 4))
    trials = np.load(tmp_path / "trials.npy", mmap_mode="r")
    ica = ContrastiveICA(2, **TINY).fit(trials)
    rows = joined(ica, trials, None, reset=True)[0]
    assert isinstance(rows, np.memmap)
    assert np.shares_memory(rows, trials)
    assert np.array_equal(ica.transform(trials), ica.transform(walk.reshape(8, 30, 4)))


def test_pairs_of_trials_and_of_lists_are_pairs_of_their_rows(walk):
    later = walk + 0.1
    ica = ContrastiveICA(2, **TINY)
    expected = ica.fit(walk, later).transform(walk)
    codes = ica.fit(walk.reshape(8, 30, 4), later.reshape(8, 30, 4)).transform(walk)
    assert np.array_equal(codes, expected)
    codes = ica.fit([walk[:100], walk[100:]], [later[:100], later[100:]]).transform(walk)
    assert np.array_equal(codes, expected)


def test_frames_of_a_list_have_the_same_columns(walk):
    frames = [pd.DataFrame(walk, columns=list(names)) for names in ("abcd", "bacd")]
    with pytest.raises(InputError, match=r"same columns, got a, b, c, d and b, a, c, d"):
        ContrastiveICA(2, **TINY).fit(frames)


def test_windows_do_not_reach_into_another_session(walk):
    """Codes of a session are the same whatever stands before and after it.

    A window reaches 3 rows far, and the mean of codes 6 more.
    """
    ica = ContrastiveICA(2, window=7, **TINY).fit([walk[:120], walk[120:]])
    one, other = (ica.transform([walk[:50], walk[100:150], end])[1] for end in (walk[:9], -walk))
    assert np.array_equal(one, other)
    together = ica.transform(np.r_[walk[:50], walk[100:150]])[50:]
    assert not np.allclose(one[:9], together[:9])
    assert np.allclose(one[9:-9], together[9:-9], atol=1e-6)


@pytest.mark.parametrize(
    ("data", "more", "message"),
    [
        (
            [np.ones((9, 3)), np.ones((9, 4))],
            {},
            r"sequences of \[3, 4\] columns, which cannot be aligned",
        ),
        ([np.ones((9, 3)), np.ones((9, 3))], {"groups": [0] * 18}, "groups must not be given"),
        (
            np.ones((4, 9, 3)),
            {"groups": [0] * 36},
            "X holds separate sequences already: .* images of float64, write N×H×W×1",
        ),
        ([np.ones((1, 3)), np.ones((1, 3))], {}, "at least 2 pairs"),
        ([np.ones((9, 3)), np.ones(9)], {}, "X"),
        ([], {}, "X"),
        (np.ones((0, 9, 3)), {}, "X"),
    ],
)
def test_sessions_that_cannot_be(data, more, message):
    with pytest.raises(InputError, match=message):
        ContrastiveICA(2, **TINY).fit(data, **more)


def test_sessions_of_other_columns_are_refused_later(walk):
    ica = ContrastiveICA(2, **TINY).fit([walk[:100], walk[100:]])
    with pytest.raises(InputError, match="3 features"):
        ica.transform([walk[:, :3]])
    with pytest.raises(InputError, match="3 features"):
        ica.transform(walk.reshape(8, 30, 4)[..., :3])


# --- what is wrong with data ------------------------------------------------------------------------


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_an_error_says_where_numbers_are_missing(walk, value, tmp_path):
    bad = walk.copy()
    bad[[57, 58, 200], 3] = value
    said = r"X must be finite, but 3 rows hold NaN or infinity, such as row 57, column 3 \(from 0\)"
    with pytest.raises(InputError, match=rf"{said}, 'heat'"):
        ContrastiveICA(2, **TINY).fit(pd.DataFrame(bad, columns=["a", "b", "c", "heat"]))
    ica = ContrastiveICA(2, **TINY)
    for data in (bad, torch.from_numpy(bad), pd.DataFrame(bad), [bad[:100], bad[100:]]):
        with pytest.raises(InputError, match=said):
            ica.fit(data)
    with pytest.raises(InputError, match=said.replace("X", "X_pos", 1)):
        ica.fit(walk, bad)
    with pytest.raises(InputError, match=said):
        ica.fit(walk).transform(bad)
    np.save(tmp_path / "bad.npy", bad)
    with pytest.raises(
        InputError, match=r"X must be finite, but .* such as row (57|58|200), column 3"
    ):
        ica.fit(np.load(tmp_path / "bad.npy", mmap_mode="r"))
    images = np.ones((20, 6, 6, 1))
    images[7, 1, 2] = value
    with pytest.raises(InputError, match=r"X must be finite, but 1 rows .* such as row 7 "):
        ica.fit(images)


def test_large_numbers_are_not_infinite(walk):
    """Even where their sum is."""
    assert ContrastiveICA(2, **TINY).fit(np.abs(walk) * 1e307).transform(walk).shape == (240, 2)


def test_constant_and_repeated_columns_change_little(walk):
    ica = ContrastiveICA(2, **TINY)
    wide = np.c_[walk, walk[:, :2], np.full(240, 7.0), np.zeros(240)]
    codes = ica.fit(wide).transform(wide)
    assert np.isfinite(codes).all()
    assert np.isfinite(ica.score(wide))
    changed = wide.copy()
    changed[:, 6:] += 3  # what was constant says nothing
    assert np.array_equal(ica.transform(changed), codes)


def test_two_hundred_redundant_columns_are_few_directions():
    rng = np.random.default_rng(0)
    z, _ = noisy(1500, rho=0.9)
    x = z @ rng.normal(size=(2, 200)) + 0.1 * rng.normal(size=(1500, 200))
    ica = ContrastiveICA(**TINY).fit(x)
    assert max(ica.evidence_["n_components"]) <= 2
    assert ica.transform(x).shape[1] <= 2
    assert ica.model_.encoder.network.linear.in_features == 2


def test_a_lag_longer_than_a_group_leaves_it_out(walk):
    groups = np.repeat([0, 1], [230, 10])
    ica = ContrastiveICA(2, window=1, **TINY)
    short = ica.fit(walk, lag=15, groups=groups).transform(walk)
    assert short.shape == (240, 2)
    alone = ica.fit(walk[:230], lag=15)
    assert ica.score(walk[:230], lag=15) == alone.score(walk, lag=15, groups=groups)
    with pytest.raises(
        InputError, match="at least 2 pairs of rows 230 apart within a sequence, got 0"
    ):
        ica.fit(walk, lag=230, groups=groups)
    with pytest.raises(InputError, match="lag must be smaller than the number of rows, 240"):
        ica.fit(walk, lag=240)


def test_the_lag_of_fit_is_that_of_auto_later(walk):
    ica = ContrastiveICA(2, **TINY).fit(walk, lag=5)
    assert ica.score(walk, lag="auto") == ica.score(walk) == ica.score(walk, lag=5)


# --- samplers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        (torch.zeros(3, 2), "pair"),
        ((torch.zeros(3, 2), torch.zeros(3, 1)), "same shape"),
        ((torch.zeros(3), torch.zeros(3)), "same shape"),
    ],
)
def test_samplers_that_return_something_else(batch, message):
    with pytest.raises(InputError, match=message):
        checked(lambda size, generator: batch)(3, generator=torch.Generator())


def test_samplers_of_arrays_and_of_objects():
    class Pairs:
        x, x_pos = np.zeros((3, 2)), np.ones((3, 2))

    for batch in (Pairs(), (Pairs.x, Pairs.x_pos), [torch.zeros(3, 2), torch.ones(3, 2)]):
        found = checked(lambda size, generator, batch=batch: batch)(3, generator=torch.Generator())
        assert torch.equal(found.x_pos, torch.ones_like(found.x))


def test_what_pairs_that_draw_themselves_exclude():
    def draw(size, *, generator):
        x = torch.randn(size, 3, generator=generator)
        return x, x + 0.1

    ica = ContrastiveICA(2, **TINY).fit(draw)
    assert ica.n_features_in_ == 3
    assert ica.lag_ is None
    for more in ({"lag": 1}, {"groups": [0]}, {"X_pos": np.zeros((2, 3))}):
        with pytest.raises(InputError, match="X draws its own pairs"):
            ica.fit(draw, **more)
    with pytest.raises(InputError, match="window needs rows in order of time"):
        ContrastiveICA(2, window=3, **TINY).fit(draw)


# --- rows that are left out -------------------------------------------------------------------------


@pytest.fixture
def holes(walk):
    """A walk in two groups, with NaN in some rows; which ones are whole; and the pieces in between."""
    data, groups = walk.copy(), np.repeat([0, 1], 120)
    data[[0, 30, 31, 119, 200], [0, 1, 2, 3, 0]] = np.nan
    pieces = [(1, 30), (32, 119), (120, 200), (201, 240)]
    return data, groups, pieces


@pytest.mark.parametrize("window", [1, 4])
def test_rows_with_nan_are_left_out_and_never_spanned(walk, holes, window, tmp_path):
    data, groups, pieces = holes
    sessions = [data[first:end] for first, end in pieces]
    ica = ContrastiveICA(2, window=window, missing="drop", **TINY)
    expected = np.concatenate(ica.fit(sessions, lag=2).transform(sessions))
    score = ica.score(sessions)
    np.save(tmp_path / "x.npy", data)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    whole = ~np.isnan(data).any(axis=1)
    for x in (data, mapped, pd.DataFrame(data), torch.from_numpy(data)):
        codes = ica.fit(x, lag=2, groups=groups).transform(x, groups=groups)
        assert np.isnan(codes[~whole]).all()
        assert np.allclose(codes[whole], expected, atol=1e-9)
        assert ica.score(x, groups=groups) == pytest.approx(score, abs=1e-9)
    with pytest.raises(InputError, match=r'missing="drop" leaves such rows out'):
        ContrastiveICA(2, **TINY).fit(data)


def test_pairs_with_nan_on_either_side_are_left_out(walk):
    x, x_pos = walk[:-1].copy(), walk[1:].copy()
    x[3, 1], x_pos[7, 0] = np.nan, np.nan
    whole = np.isin(np.arange(len(x)), [3, 7], invert=True)
    ica = ContrastiveICA(2, missing="drop", **TINY)
    expected = ica.fit(x[whole], x_pos[whole]).transform(walk)
    assert np.array_equal(ica.fit(x, x_pos).transform(walk), expected)


def test_labels_and_factors_of_rows_that_are_left_out_do_not_count(walk, holes):
    data, groups, _ = holes
    labels = (walk[:, 0] > 0).astype(int)
    ica = ContrastiveICA(2, missing="drop", **TINY).fit(data, groups=groups, labels=labels)
    whole = ~np.isnan(data).any(axis=1)
    assert np.isfinite(ica.transform(data)[whole]).all()
    assert np.isfinite(ica.score(data, groups=groups, labels=labels))
    found = ica.diagnose(data, groups=groups, Z=walk[:, :2])
    assert found.truth is not None


def test_counts_with_nan_are_counts(walk):
    counts = np.random.default_rng(0).poisson(4, (200, 3)).astype(float)
    counts[5, 1] = np.nan
    assert ContrastiveICA(2, missing="drop", **TINY).fit(counts).counts_


def test_infinity_is_not_missing(walk):
    data = walk.copy()
    data[3, 2], data[5, 1] = np.inf, np.nan
    with pytest.raises(InputError, match=r"such as row 3, column 2 \(from 0\)$"):
        ContrastiveICA(2, missing="drop", **TINY).fit(data)
    with pytest.raises(InputError, match="at least 2 pairs"):
        ContrastiveICA(2, missing="drop", **TINY).fit(np.full((50, 2), np.nan))
    with pytest.raises(InputError, match="missing must be one of raise, drop"):
        ContrastiveICA(2, missing="fill", **TINY).fit(walk)


@pytest.mark.parametrize("timed", [True, False])
def test_sequences_of_a_fitted_estimator_have_the_same_columns(timed):
    fitted = SimpleNamespace(_sessions=None, network=None, _shape=(2,), missing="raise")
    parts = [np.zeros((4, 2)), np.ones((3, 2))]
    whole, groups, lengths = joined(fitted, parts, None, reset=False, timed=timed)
    assert whole.tolist() == [[0, 0]] * 4 + [[1, 1]] * 3
    assert groups.tolist() == [0] * 4 + [1] * 3
    assert lengths == [4, 3]
    with pytest.raises(InputError, match=r"sequences of the same columns, got \[2, 3\]"):
        joined(fitted, [*parts, np.zeros((5, 3))], None, reset=False, timed=timed)
    x = np.arange(24.0).reshape(2, 4, 3)
    rows, groups, lengths = joined(SimpleNamespace(network=None), x, None, reset=True, timed=timed)
    assert rows.tolist() == x.reshape(8, 3).tolist()
    assert (groups.tolist(), lengths) == ([0] * 4 + [1] * 4, [4, 4])


def test_sessions_are_scaled_one_by_one():
    rng = np.random.default_rng(0)
    parts = [rng.poisson(3.0, (6, 2)), rng.poisson(9.0, (5, 3))]
    parts[1][:, 1] = 4
    ica = SimpleNamespace(network=None, missing="raise")
    whole, groups, _ = joined(ica, parts, None, labels=[], reset=True)
    expected = np.zeros((11, 5))
    for rows, columns, part in (
        (slice(6), slice(2), parts[0]),
        (slice(6, 11), slice(2, 5), parts[1]),
    ):
        roots = np.sqrt(part)
        spread = roots.std(0)
        expected[rows, columns] = (roots - roots.mean(0)) / np.where(spread > 0, spread, 1)
    assert np.allclose(whole, expected)
    assert groups.tolist() == [0] * 6 + [1] * 5
    with pytest.raises(InputError, match=r"sessions of \[2, 3\] columns, as in fit, got \[3, 2\]"):
        joined(ica, parts[::-1], None, reset=False)
    with pytest.raises(InputError, match="some entries are negative"):
        joined(ica, [parts[0] - 9, parts[1]], None, reset=False)
