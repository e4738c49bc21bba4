import numpy as np
import pytest
import torch

from helpers.walks import interleaved, noisy, slow
from identica import InputError
from identica.estimator import windows
from identica.estimator.labels import as_labels
from identica.estimator.pairs import ArrayPairs, Batch
from identica.estimator.sequences import sequences
from identica.estimator.windows import View, choose_view, shortest, widest


def walk(x, lag=1, groups=None):
    return ArrayPairs(x, within=sequences(len(x), lag, groups))


def drawn(size, *, generator):
    x = torch.randn(size, 3, generator=generator)
    return Batch(x, x + 0.1)


def test_a_view_sets_windows_apart():
    sample = View((1, 3), 5, False).of(walk(np.zeros((50, 1)), lag=(1, 3)))
    assert (sample.within.low, sample.within.high, sample.window) == (5, 7, 5)
    assert View(1).of(drawn) is drawn
    with pytest.raises(InputError, match="window needs rows in order of time"):
        View(None, 3).of(ArrayPairs(np.zeros((9, 1)), np.zeros((9, 1))))
    with pytest.raises(InputError, match=r"window must leave at least 2 pairs .* up to 20 rows"):
        View(1, 30).of(walk(np.zeros((40, 1)), groups=np.repeat([0, 1], 20)))


@pytest.mark.parametrize("window", [0, 2.5, "wide", -1])
def test_windows_that_cannot_be(window):
    with pytest.raises(InputError, match="window must be a whole number of at least 1"):
        choose_view(walk(np.zeros((50, 1))), (1,), 1, window, seed=0)
    with pytest.raises(InputError, match="window needs rows in order of time"):
        choose_view(drawn, (1,), None, 2, seed=0)


def test_noise_makes_wide_windows_and_change_narrow_ones():
    for x, wide in ((noisy()[1], True), (slow(0.5, (3000, 8), np.random.default_rng(0)), False)):
        sample, view, choices = choose_view(walk(x), (8,), 1, "auto", seed=0)
        assert view.window >= 11 if wide else view.window == 1
        assert choices.keys() == {"window"}
        assert sample.window == view.window
        assert sample.within.low == view.window
        assert view.window == widest(choices["window"])


def test_nothing_is_chosen_for_few_rows_and_given_pairs():
    x = noisy(1000)[1]
    for sample in (walk(x), ArrayPairs(x, x)):
        _, view, choices = choose_view(sample, (8,), 1, "auto", seed=0)
        assert (view, choices) == (View(1, 1, False), {})
    _, view, choices = choose_view(walk(x), (8,), "auto", "auto", seed=0)
    assert (view, choices) == (View(1, 1, False), {})


def test_the_lag_is_that_of_rows_which_say_something_of_each_other():
    x = interleaved()
    sample, view, choices = choose_view(walk(x), (4,), "auto", 1, seed=0)
    assert view.lag == sample.within.low == sample.within.high == 2
    assert choices["lag"][2] > 1.5 * choices["lag"][1]
    assert shortest(choices["lag"]) == 2
    steady, view, _ = choose_view(walk(x[::2]), (4,), "auto", 1, seed=0)
    assert view.lag == steady.within.low == 1


@pytest.mark.parametrize(
    ("values", "counts"),
    [
        (np.random.default_rng(0).poisson(3.0, (60, 2)), True),
        (np.random.default_rng(0).poisson(3.0, (60, 2)).astype(float), True),
        (np.random.default_rng(0).poisson(3.0, (60, 2)) - 1, False),
        (np.random.default_rng(0).normal(size=(60, 2)), False),
    ],
)
def test_counts_are_noticed(values, counts):
    sample, view, _ = choose_view(walk(values), (2,), 1, 1, seed=0)
    assert sample.counts == view.counts == counts


def test_one_negative_number_is_enough_for_no_counts(monkeypatch):
    """Wherever it is: in a row that is not looked at, or in a positive."""
    monkeypatch.setattr("identica.estimator.pairs.LOOKED_AT", 10)
    x = np.random.default_rng(0).poisson(3.0, (95, 2))
    assert choose_view(ArrayPairs(x, x), (2,), None, 1, seed=0)[1].counts
    other = x.copy()
    other[91, 1] = -1
    for sample in (ArrayPairs(x, other), ArrayPairs(other, x), walk(other)):
        assert not choose_view(sample, (2,), None, 1, seed=0)[1].counts


def test_choices_by_evidence():
    assert widest({1: 2.0, 3: 3.0, 5: 2.5, 7: 1.0}) == 5
    assert shortest({1: 2.0, 2: 2.95, 4: 3.0, 8: 1.0}) == 2
    assert shortest({2: -0.1, 4: -0.2}) == 1
    assert shortest({}) == 1


@pytest.mark.parametrize(
    ("evidence", "window"),
    [
        ({1: 10.0, 3: 8.01, 5: 7.99}, 3),
        ({1: 7.9, 3: 10.0}, 3),
        ({1: 10.0}, 1),
        ({1: 10.0, 31: 8.0}, 31),
    ],
)
def test_the_widest_window_with_four_fifths_of_the_evidence(evidence, window):
    assert widest(evidence) == window


@pytest.mark.parametrize(
    ("evidence", "lag"),
    [({1: 9.69, 2: 9.71, 4: 10.0}, 2), ({1: 9.71, 2: 10.0}, 1), ({}, 1), ({4: 10.0, 8: 9.9}, 4)],
)
def test_the_shortest_lag_with_97_percent_of_the_evidence(evidence, lag):
    assert shortest(evidence) == lag


def test_windows_are_tried_until_evidence_is_lost(monkeypatch):
    """Below .7 of the best, or where fewer than 1000 pairs or 20 for each row of a window are left."""
    bits = {1: 1.0, 3: 3.0, 5: 2.11, 7: 2.09, 11: 9.0}
    monkeypatch.setattr(windows, "_look", lambda pairs, shape, seed: (None, pairs.window))
    monkeypatch.setattr(windows, "_bits", lambda enter, found, pairs, seed: bits[found])
    assert list(windows.choose_window(walk(np.zeros((3000, 1))), View(1), (1,), seed=0)) == [
        1,
        3,
        5,
        7,
    ]
    bits |= dict.fromkeys(bits, 3.0) | {15: 3.0, 21: 3.0, 31: 3.0}
    for rows, last in ((1031, 31), (1030, 21), (1007, 7), (1006, 5)):
        found = windows.choose_window(walk(np.zeros((rows, 1))), View(1), (1,), seed=0)
        assert max(found) == last


def test_lags_are_tried_where_2000_pairs_are_left(monkeypatch):
    monkeypatch.setattr(windows, "_look", lambda pairs, shape, seed: (None, pairs.within.low))
    monkeypatch.setattr(
        windows, "_bits", lambda enter, found, pairs, seed: 100.0 * found + pairs.within.low
    )
    for rows, tried in ((2004, [1, 2, 4]), (2003, [1, 2]), (2032, [1, 2, 4, 8, 16, 32])):
        found = windows.choose_lag(walk(np.zeros((rows, 1))), (1,), seed=0)
        assert found == {lag: 100.0 * lag + np.mean(tried) for lag in tried}
    assert windows.choose_lag(walk(np.zeros((2001, 1))), (1,), seed=0) == {}


@pytest.mark.parametrize(("pairs", "chosen"), [(2000, True), (1999, False)])
def test_windows_are_chosen_of_2000_pairs_or_more(monkeypatch, pairs, chosen):
    monkeypatch.setattr(windows, "choose_window", lambda *args, **more: {1: 1.0, 3: 1.0})
    _, view, choices = choose_view(walk(np.zeros((pairs + 1, 1))), (1,), 1, "auto", seed=0)
    assert ("window" in choices) == chosen
    assert view.window == (3 if chosen else 1)


def test_labels_are_set_apart_by_the_window():
    labels = as_labels(np.arange(50) % 2, 50)
    sample = ArrayPairs(np.zeros((50, 1)), within=sequences(50), labels=labels)
    assert View(1, 4).of(sample).labels.apart == 4
    two = walk(np.zeros((8, 1)))
    assert len(View(1, 6).of(two)) == 2
    with pytest.raises(InputError, match="at least 2 pairs"):
        View(1, 7).of(two)
