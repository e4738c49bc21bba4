"""The laws of change against their formulas, by chi-square over every outcome."""

import itertools

import numpy as np
import pytest
from scipy.stats import chisquare, laplace

from identica.datasets import dsprites
from identica.errors import InputError

SIZES = (2, 3, 4)
N = 60_000


def outcomes():
    return list(itertools.product(*map(range, SIZES)))


def assert_law(moved, law):
    """`law` gives the probability of each outcome; impossible ones must not happen."""
    places = np.ravel_multi_index(tuple(moved.T), SIZES)
    found = np.bincount(places, minlength=len(outcomes()))
    expected = np.array([law[outcome] for outcome in outcomes()])
    assert expected.sum() == pytest.approx(1)
    assert found[expected == 0].sum() == 0
    possible = expected > 0
    assert chisquare(found[possible], N * expected[possible]).pvalue > 1e-3


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(dsprites, "SIZES", SIZES)


@pytest.mark.parametrize("start", [(0, 0, 0), (1, 1, 2)])
def test_uni(start, small):
    law = dict.fromkeys(outcomes(), 0.0)
    for k in (1, 2):
        for chosen in itertools.combinations(range(3), k):
            values = [
                [v for v in range(SIZES[f]) if v != start[f]] if f in chosen else [start[f]]
                for f in range(3)
            ]
            ends = list(itertools.product(*values))
            for end in ends:
                law[end] += 1 / 2 / len(list(itertools.combinations(range(3), k))) / len(ends)
    assert_law(dsprites._uni(np.tile(start, (N, 1)), np.random.default_rng(0)), law)


def laplace_law(start):
    """Factor 0 stays; 1 and 2 follow the Laplace density; a second draw where nothing changed."""

    def move(f, stay=True):
        p = laplace.pdf(np.arange(SIZES[f]), loc=start[f], scale=np.log(SIZES[f]))
        if not stay:
            p[start[f]] = 0
        return p / p.sum()

    law = dict.fromkeys(outcomes(), 0.0)
    for b, c in itertools.product(range(3), range(4)):
        law[start[0], b, c] = move(1)[b] * move(2)[c]
    again = law[start]
    law[start] = 0.0
    for b in range(3):
        law[start[0], b, start[2]] += again / 2 * move(1, stay=False)[b]
    for c in range(4):
        law[start[0], start[1], c] += again / 2 * move(2, stay=False)[c]
    return law


@pytest.mark.parametrize("start", [(0, 0, 0), (1, 1, 2)])
def test_lap(start, small):
    moved = dsprites._lap(np.tile(start, (N, 1)), np.random.default_rng(1))
    assert_law(moved, laplace_law(start))


def test_uni_on_dsprites():
    a, b = dsprites.pairs_uni(N, rng=0)
    changed = (a != b).sum(axis=1)
    assert chisquare(np.bincount(changed, minlength=6)[1:5]).pvalue > 1e-3
    assert changed.min() == 1
    assert changed.max() == 4
    for k, size in enumerate(dsprites.SIZES):
        moves = (b - a)[:, k] % size
        assert chisquare(np.bincount(moves[moves > 0], minlength=size)[1:]).pvalue > 1e-3
        assert np.mean(moves > 0) == pytest.approx(0.5, abs=0.01)
        assert chisquare(np.bincount(a[:, k], minlength=size)).pvalue > 1e-3


def test_lap_on_dsprites():
    """Joint law of a factor and its distance moved, over uniform anchors."""
    a, b = dsprites.pairs_lap(N, rng=0)
    assert (a[:, 0] == b[:, 0]).all()
    assert (a != b).any(axis=1).all()
    tables = []
    for size in dsprites.SIZES[1:]:
        x = np.arange(size)
        p = laplace.pdf(x, loc=x[:, None], scale=np.log(size))
        tables.append(p / p.sum(axis=1, keepdims=True))
    stays = [np.diag(p) for p in tables]
    for k, p in enumerate(tables):
        size = len(p)
        others = np.prod([s.mean() for f, s in enumerate(stays) if f != k])
        again = p * (1 - np.eye(size))
        again /= again.sum(axis=1, keepdims=True)
        # Nothing changed: this factor is drawn again once in four, and otherwise stays.
        law = p + (stays[k] * others)[:, None] * (again - np.eye(size)) / 4
        distance = np.abs(np.arange(size) - np.arange(size)[:, None])
        expected = np.bincount(distance.ravel(), law.ravel() / size) * N
        found = np.bincount(np.abs(a - b)[:, k + 1], minlength=size)
        # Join the rare far moves, so that chi-square applies.
        often = expected > 10
        found = np.append(found[often], found[~often].sum())
        expected = np.append(expected[often], expected[~often].sum())
        assert chisquare(found[expected > 1], expected[expected > 1], sum_check=False).pvalue > 1e-3


def test_repeatable_and_checked():
    a, b = dsprites.pairs_lap(10, rng=3)
    c, d = dsprites.pairs_lap(10, np.random.default_rng(3))
    np.testing.assert_array_equal(a, c)
    np.testing.assert_array_equal(b, d)
    with pytest.raises(InputError, match="n must"):
        dsprites.pairs_uni(0, rng=0)
