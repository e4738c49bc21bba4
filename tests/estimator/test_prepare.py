import math

import numpy as np
import pytest
import torch

from helpers.walks import interleaved, noisy, slow
from identica import InputError
from identica.estimator import prepare
from identica.estimator.networks import Columns, Pixels, Principal
from identica.estimator.pairs import ArrayPairs
from identica.estimator.prepare import View, choose_view, hold_out, row_columns, shortest, widest
from identica.estimator.sequences import sequences


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def walk(x, lag=1, groups=None):
    return ArrayPairs(x, within=sequences(len(x), lag, groups))


def numbers(part):
    return part.numbers.at(np.arange(len(part)))


def drawn(size, *, generator):
    x = torch.randn(size, 3, generator=generator)
    return prepare.Batch(x, x + 0.1)


# --- what is held out -------------------------------------------------------------------------------


@pytest.mark.parametrize(("pairs", "part"), [(100, 0), (500, 4), (4000, 8)])
def test_a_part_is_held_out_unless_there_are_too_few(pairs, part):
    kept, held = hold_out(walk(np.arange(pairs + 1.0)[:, None]))
    if part:
        assert len(held) == pytest.approx(pairs / part, rel=0.02)
        assert not set(numbers(kept)) & set(numbers(held))
    else:
        assert kept is held
    assert hold_out(drawn) == (drawn, drawn)


def test_what_is_measured_and_seen_of_held_out_rows_is_nothing():
    """Scales and directions are the same whatever held-out rows hold."""
    x = noisy(1000)[1]
    other = x.copy()
    kept, _ = hold_out(walk(x))
    used = np.union1d(numbers(kept), numbers(kept) + 1)
    other[np.setdiff1d(np.arange(1000), used)] *= 100
    found, again = (prepare.prepare(walk(data), Columns(8), seed=0) for data in (x, other))
    assert torch.equal(found.enter.scale, again.enter.scale)
    assert torch.equal(found.look.matrix, again.look.matrix)
    assert not torch.equal(found.held.x, again.held.x)


@pytest.mark.parametrize("groups", [None, np.arange(900) % 3])
def test_pairs_in_memory_are_those_prepared_as_they_are_drawn(monkeypatch, groups):
    x = np.random.default_rng(0).poisson(5.0, size=(900, 3))
    sample = View(1, 3, True).of(walk(x, groups=groups))
    found = prepare.prepare(sample, Columns(3), seed=0)
    monkeypatch.setattr(prepare, "IN_MEMORY", 0)
    other = prepare.prepare(sample, Columns(3), seed=0)
    assert isinstance(found.sample, ArrayPairs) > isinstance(other.sample, ArrayPairs)
    assert found.pairs == other.pairs
    for a, b in zip(found.held, other.held, strict=True):
        assert torch.equal(a, b)
    for a, b in zip(*(p.sample(50, generator=generator(1)) for p in (found, other)), strict=True):
        assert torch.equal(a, b)


def test_given_pairs_and_drawn_ones_are_prepared():
    x = np.random.default_rng(0).normal(size=(300, 3)) * 5 + 2
    found = prepare.prepare(ArrayPairs(x, x + 1), Columns(3), seed=0)
    rows = np.r_[found.sample.x, found.sample.x_pos]
    assert np.allclose(found.sample.x, found.enter(torch.from_numpy(x)))
    assert np.abs(rows).max() < 10
    assert prepare.prepare(drawn, Columns(3), seed=0).pairs == math.inf
    images = torch.rand(50, 8, 8, generator=generator()).numpy()
    assert prepare.prepare(walk(images), Pixels(), seed=0, look=False).look is None


def test_very_wide_rows_are_projected():
    for columns, rows, directions in ((400, 500, 0), (401, 500, 20), (500, 9000, 200), (500, 5, 4)):
        found = row_columns(walk(np.zeros((rows, columns))), (columns,))
        assert isinstance(found, Principal) == (directions > 0)
        assert found.directions.numel() == columns * directions
    # and there are always rows enough to measure them
    for rows in (6, 25, 130, 300):
        x = np.random.default_rng(0).normal(size=(rows, 450))
        found = prepare.prepare(walk(x), row_columns(walk(x), (450,)), seed=0)
        assert found.held.x.isfinite().all()


# --- how pairs are seen -----------------------------------------------------------------------------


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
