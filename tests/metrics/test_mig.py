from math import log

import numpy as np
import pytest
import torch
from sklearn.metrics import mutual_info_score

from identica.errors import InputError
from identica.metrics import mig


def grid(*cards, copies=1):
    """Every combination of factor values equally often: exactly independent factors."""
    table = np.stack(np.meshgrid(*map(np.arange, cards), indexing="ij"), axis=-1)
    return np.repeat(table.reshape(-1, len(cards)), copies, axis=0)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_the_factors_themselves_are_perfect():
    z = grid(3, 4, 5)
    assert mig(z, z) == pytest.approx(1)
    assert mig(z, -3 * z[:, [2, 0, 1]] + 7) == pytest.approx(1)


def test_more_values_than_bins_cannot_reach_one():
    z = grid(40, 2)
    assert mig(z, z) == pytest.approx((log(20) / log(40) + 1) / 2)
    assert mig(z, z, bins=40) == pytest.approx(1)


def test_a_duplicated_code_leaves_no_gap():
    z = grid(3, 4)
    assert mig(z, np.c_[z, -z]) == pytest.approx(0)
    assert mig(z, np.c_[z, z[:, 0]]) == pytest.approx(1 / 2)


def test_merged_codes_are_not_punished():
    z = grid(3, 4, 5)
    assert mig(z, np.c_[z[:, 0] * 4 + z[:, 1], z[:, 2]]) == pytest.approx(1)


def test_by_hand_from_joint_counts():
    """Codes a and a + b of two fair bits: the sum knows half a bit of either."""
    z = grid(2, 2)
    assert mig(z, np.c_[z[:, 0], z.sum(axis=1)]) == pytest.approx((1 - 1 / 2 + 1 / 2 - 0) / 2)
    # Counts 3, 1; 0, 4 of a factor (rows) and a code: I = Σ p log(p / p p').
    z = np.repeat([0, 0, 1], [3, 1, 4])[:, None]
    h = np.repeat([0, 1, 1], [3, 1, 4])[:, None]
    expected = 3 / 8 * log(2) + 1 / 8 * log(1 / 8 / (4 / 8 * 5 / 8)) + 4 / 8 * log(8 / 5)
    assert mig(z, h) == pytest.approx(expected / log(2))


def test_scikit_learn_and_numpy_agree(rng):
    z = np.column_stack([rng.integers(0, k, 2000) for k in (3, 6, 30)])
    h = np.tanh(z @ rng.normal(size=(3, 5)) / 10) + 0.1 * rng.normal(size=(2000, 5))
    cut = [np.digitize(c, np.histogram(c, 20)[1][:-1]) for c in h.T]
    table = np.array([[mutual_info_score(a, b) for b in cut] for a in z.T])
    table = np.sort(table, axis=1) / [[mutual_info_score(a, a)] for a in z.T]
    assert mig(z, h) == pytest.approx((table[:, -1] - table[:, -2]).mean())


def test_independent_codes_have_no_gap(rng):
    z = np.column_stack([rng.integers(0, k, 5000) for k in (3, 6, 30)])
    assert mig(z, rng.normal(size=(5000, 10))) < 0.01
    assert mig(z, rng.permutation(z)) < 0.01


def test_a_rotation_by_45_degrees_leaves_no_gap(rng):
    z = rng.normal(size=(20000, 2))
    assert mig(z, z) > 0.95
    assert mig(z, z @ [[1, 1], [-1, 1]]) < 0.02


def test_noise_codes_are_not_rewarded(rng):
    z = rng.integers(0, 5, size=(2000, 3))
    h = z + 0.5 * rng.normal(size=z.shape)
    assert mig(z, np.c_[h, rng.normal(size=(2000, 7))]) <= mig(z, h)


def test_order_scale_and_sign_do_not_matter(rng):
    z = rng.integers(0, 5, size=(500, 3))
    h = z @ rng.normal(size=(3, 4)) + rng.normal(size=(500, 4))
    for other in (h[:, ::-1], -h, h * [1e-6, 1, 1e6, 3], h + 100):
        assert mig(z, other) == pytest.approx(mig(z, h))


def test_few_and_constant_codes_are_fine():
    z = grid(4, 4)
    assert mig(z, z[:, :1]) == pytest.approx(1 / 2)
    assert mig(z, np.c_[z, np.ones(16)]) == pytest.approx(1)
    assert mig(z, np.ones(16)) == 0


def test_torch_labels_are_labels(rng):
    z = rng.integers(0, 200, size=(1000, 2))
    h = z + rng.normal(size=z.shape)
    assert mig(torch.tensor(z, dtype=torch.uint8), torch.tensor(h)) == mig(z, h)


def test_bad_input_is_named():
    z = grid(3, 1)
    with pytest.raises(InputError, match="column 1 has a single value"):
        mig(z, z)
