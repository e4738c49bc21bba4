import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import ortho_group

from identica.errors import InputError
from identica.metrics import agreement, linear_r2, mcc, procrustes

KINDS = ["affine", "orthogonal", "permutation"]


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def h(rng):
    x = rng.normal(size=(1000, 3))
    return np.linalg.qr(x - x.mean(axis=0))[0]


def test_each_kind_forgives_its_own_maps_and_no_more(h, rng):
    permuted = -2 * h[:, [1, 2, 0]]
    rotated = 2 * h @ ortho_group.rvs(3, random_state=rng)
    sheared = h @ [[1, 2, 0], [0, 1, 3], [0, 0, 1]]
    scores = [
        [agreement([h, other], kind) for kind in KINDS] for other in (permuted, rotated, sheared)
    ]
    perfect = np.array(scores) > 1 - 1e-9
    assert perfect.tolist() == [[True, True, True], [True, True, False], [True, False, False]]
    assert np.min(scores) > 0.5


@pytest.mark.parametrize("kind", KINDS)
def test_independent_codes_do_not_agree(rng, kind):
    assert agreement(rng.normal(size=(4, 5000, 3)), kind) < 0.05


def test_it_is_the_mean_over_pairs_both_ways(rng):
    a, b, c = (rng.normal(size=(400, k)) for k in (2, 3, 3))
    b[:, :2] += a
    c += b
    pairs = [(a, b), (b, a), (a, c), (c, a), (b, c), (c, b)]
    expected = {
        "affine": np.mean([linear_r2(x, y) for x, y in pairs]),
        "orthogonal": np.mean([1 - procrustes(x, y).error for x, y in pairs]),
        "permutation": np.mean([mcc(x, y) for x, y in pairs]),
    }
    for kind in KINDS:
        assert agreement([a, b, c], kind) == pytest.approx(expected[kind])
        assert agreement([c, a, b], kind) == pytest.approx(expected[kind])


@pytest.mark.parametrize("kind", KINDS)
def test_constant_columns_are_left_out(h, kind):
    collapsed = np.c_[np.full(len(h), 0.1), h]
    assert agreement([collapsed, h], kind) == pytest.approx(1)
    assert agreement([np.zeros_like(h), h], kind) == 0
    assert agreement([np.zeros_like(h), np.zeros_like(h)], kind) == 0


def test_numpy_torch_and_pandas_mix(h):
    assert agreement([h, torch.tensor(h), pd.DataFrame(h)]) == pytest.approx(1)


def test_bad_input_is_named(h):
    with pytest.raises(InputError, match="up_to must be one of"):
        agreement([h, h], "rotation")
    with pytest.raises(InputError, match="at least 2 codes"):
        agreement([h])
    with pytest.raises(InputError, match="same number of rows"):
        agreement([h, h[:-1]])
    with pytest.raises(InputError, match=r"codes\[1\] must be finite"):
        agreement([h, h * np.nan])
