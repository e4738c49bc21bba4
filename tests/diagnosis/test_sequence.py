"""What rows of a sequence are worth, beside what is known of the process that made them."""

import numpy as np
import pytest
from scipy.signal import lfilter

from identica import InputError
from identica.diagnosis.sequence import Order, order_of

ROWS = 4000


def autoregressive(memory, noise=0.0, n=2, rows=ROWS, seed=0):
    """Sequences of unit variance, neighbours correlated by `memory`, with noise of single rows."""
    rng = np.random.default_rng(seed)
    z = lfilter(
        [1], [1, -memory], np.sqrt(1 - memory**2) * rng.normal(size=(rows + 500, n)), axis=0
    )
    return z[500:] + noise * rng.normal(size=(rows, n))


def pairs(z, lag=1):
    first = np.arange(len(z) - lag)
    return first, first + lag


@pytest.mark.parametrize("memory", [0.8, 0.95])
@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_independent_rows_of_an_autoregressive_sequence(memory, noise):
    z = autoregressive(memory, noise)
    i, j = pairs(z)
    expected = ROWS * (1 - memory) / (1 + memory)  # of the signal, whatever noise is added
    for order in (np.arange(len(i)), np.random.default_rng(0).permutation(len(i))):
        rows, _ = order_of(z[i][order], z[j][order], (i[order], j[order]))
        assert expected / 2 < rows.independent < 1.5 * expected
        assert 1 / (1 - memory) < rows.apart < 6 / (1 - memory)


@pytest.mark.parametrize("lag", [1, 3])
@pytest.mark.parametrize("noise", [0.0, 0.3, 1.0])
def test_noise_of_single_rows_is_told_from_change(noise, lag):
    z = autoregressive(0.95, noise, n=1)
    i, j = pairs(z, lag)
    rows, _ = order_of(z[i], z[j], (i, j))
    share = noise**2 / (1 + noise**2)
    assert rows.noise == pytest.approx([share], abs=0.05)
    change = (1 - share) * (1 - 0.95**lag)
    assert rows.noise_in_pairs == pytest.approx([share / (share + change)], abs=0.15)
    assert rows.noisy == (noise > 0)


@pytest.mark.parametrize(("apart", "length"), [(10, 20), (49, 98), (50, 99), (200, 99)])
def test_halves_are_blocks_of_twice_the_memory_and_at_least_eight(apart, length):
    order = Order(np.arange(800) + 7, apart)
    ends = set()
    for seed in range(5):
        first, second = order.halves(seed)
        assert sorted([*first, *second]) == list(range(800))
        assert abs(len(first) - len(second)) <= 2 * length
        half = np.isin(np.arange(800), first)
        ends |= set((np.flatnonzero(half[1:] != half[:-1]) + 1).tolist())
    assert len(ends) > 5
    assert all(end % length == 0 for end in ends)


def test_pairs_that_are_no_sequence_are_independent():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(500, 2))
    rows, order = order_of(z, z + 0.1 * rng.normal(size=z.shape))
    assert rows.independent == 500
    assert rows.apart == order.apart == 0
    assert not rows.few
    assert not rows.noisy


def test_the_order_is_found_in_the_codes():
    z = autoregressive(0.95)
    i, j = pairs(z, 2)
    known, _ = order_of(z[i], z[j], (i, j))
    in_order, _ = order_of(z[i], z[j])
    assert in_order.independent == pytest.approx(known.independent)
    assert in_order.noise == pytest.approx(known.noise)
    i, j = pairs(z)
    known, _ = order_of(z[i], z[j], (i, j))
    shuffled = np.random.default_rng(0).permutation(len(i))
    strung, _ = order_of(z[i][shuffled], z[j][shuffled])
    assert strung.independent == pytest.approx(known.independent, rel=0.1)
    assert strung.noise == pytest.approx(known.noise)


def test_constant_codes_have_no_order():
    rows, _ = order_of(np.ones((100, 2)), np.ones((100, 2)))
    assert np.isfinite(rows.independent)
    assert rows.noise.tolist() == [0, 0]


def test_halves_share_no_time():
    order = Order(np.random.default_rng(0).permutation(1000), 20)
    one, other = order.halves(0)
    assert sorted([*one, *other]) == list(range(1000))
    assert 300 < len(one) < 700
    near = order.near(one, other)
    assert near.mean() < 0.05  # at the ends of blocks alone
    assert near.sum() < Order(order.times, 20).near(one, one).sum() / 4


def test_times_that_do_not_fit():
    z = np.zeros((10, 2))
    with pytest.raises(InputError, match=r"times must be two of 10 steps in time"):
        order_of(z, z, (np.arange(9), np.arange(9)))


def test_codes_that_recur_are_no_chain():
    rng = np.random.default_rng(0)
    z = rng.integers(4, size=(500, 2)).astype(float)
    rows, _ = order_of(z, (z + rng.integers(2, size=z.shape)) % 4)
    assert rows.apart == 0


def test_a_single_moment_is_no_sequence():
    z = np.random.default_rng(0).normal(size=(100, 2))
    rows, order = order_of(z, z, (np.zeros(100), np.ones(100)))
    assert rows.apart == order.apart == 0
