import math

import numpy as np
import pytest
import torch

from helpers.walks import noisy
from identica.estimator import prepare
from identica.estimator.networks import Columns, Pixels, Principal
from identica.estimator.pairs import ArrayPairs
from identica.estimator.prepare import hold_out, row_columns
from identica.estimator.sequences import sequences
from identica.estimator.windows import View


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def walk(x, lag=1, groups=None):
    return ArrayPairs(x, within=sequences(len(x), lag, groups))


def numbers(part):
    return part.numbers.at(np.arange(len(part)))


def drawn(size, *, generator):
    x = torch.randn(size, 3, generator=generator)
    return prepare.Batch(x, x + 0.1)


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


@pytest.mark.parametrize(
    ("pairs", "held"), [(119, None), (120, 30), (1999, 500), (2000, 250), (8000, 1000)]
)
def test_a_quarter_is_held_out_or_an_eighth_of_many(pairs, held):
    x = np.arange(float(pairs))[:, None]
    sample = ArrayPairs(x, x)
    kept, out = hold_out(sample)
    if held is None:
        assert kept is out is sample
    else:
        assert len(out) == pytest.approx(held, abs=1)
        assert len(kept) + len(out) == pairs
    _, blocks = hold_out(walk(np.arange(4001.0)[:, None]))
    assert (np.diff(np.sort(numbers(blocks))) > 1).sum() == 3  # four blocks of time


@pytest.mark.parametrize(
    ("rows", "columns", "directions"),
    [(801, 401, 20), (1601, 401, 40), (8001, 401, 200), (9001, 401, 200), (16, 401, 15)],
)
def test_a_direction_for_forty_rows_from_20_to_200(rows, columns, directions):
    found = row_columns(walk(np.zeros((rows, columns))), (columns,))
    assert found.directions.shape == (columns, directions)
    assert row_columns(drawn, (401,)).directions.shape == (401, 200)
    assert row_columns(drawn, (20, 20)).directions.numel() == 0
    assert row_columns(drawn, (3, 134)).directions.shape == (402, 200)


def test_how_many_rows_are_measured_and_held():
    """As many as were drawn, in this order."""
    asked = []

    def counted(size, *, generator):
        asked.append(size)
        return drawn(min(size, 100), generator=generator)

    found = prepare.prepare(counted, Columns(3), seed=0)
    assert asked == [8192, 16_384, 768]
    assert len(found.held.x) == 100
    asked.clear()
    prepare.prepare(counted, Principal(3, 2), seed=0, look=False)
    assert asked == [3000, 768]
