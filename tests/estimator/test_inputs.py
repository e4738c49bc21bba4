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


def test_square_arrays_are_images(walk):
    images = np.random.default_rng(0).random((40, 6, 6))
    ica = ContrastiveICA(2, **TINY).fit(images)
    assert ica.transform(images).shape == (40, 2)
    assert joined(ica, images, None, reset=True)[2] is None
    assert joined(ica, walk, None, reset=True)[2] is None


def test_windows_do_not_reach_into_another_session(walk):
    """Codes of a session are the same whatever stands before and after it."""
    ica = ContrastiveICA(2, window=7, **TINY).fit([walk[:120], walk[120:]])
    one, other = (ica.transform([walk[:50], walk[100:150], end])[1] for end in (walk[:9], -walk))
    assert np.array_equal(one, other)
    together = ica.transform(np.r_[walk[:50], walk[100:150]])[50:]
    assert not np.allclose(one[:3], together[:3])
    assert np.allclose(one[3:-3], together[3:-3], atol=1e-6)


@pytest.mark.parametrize(
    ("data", "more", "message"),
    [
        (
            [np.ones((9, 3)), np.ones((9, 4))],
            {},
            r"sequences of \[3, 4\] columns, which nothing aligns",
        ),
        ([np.ones((9, 3)), np.ones((9, 3))], {"groups": [0] * 18}, "groups must not be given"),
        (np.ones((4, 9, 3)), {"groups": [0] * 36}, "X holds sequences by itself"),
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
    images = np.ones((20, 6, 6))
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
    assert max(ica.choices_["n_components"]) <= 2
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
        with pytest.raises(InputError, match="X draws pairs by itself"):
            ica.fit(draw, **more)
    with pytest.raises(InputError, match="window needs rows in order of time"):
        ContrastiveICA(2, window=3, **TINY).fit(draw)
