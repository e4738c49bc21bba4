"""The metrics that hold a factor fixed: samplers, β-VAE and FactorVAE."""

import numpy as np
import pytest
import torch

from identica.errors import InputError
from identica.metrics import beta_vae, factor_vae, sampler_from

FAST = {"train": 600, "test": 400}


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def z(rng):
    return np.column_stack([rng.integers(0, k, 3000) for k in (5, 6, 7)])


def generating(encode, d):
    """A sampler that makes normal factors, fixes one in each group and encodes them."""

    def sample(factor, groups, size, rng):
        factors = rng.normal(size=(groups, size, d))
        factors[:, :, factor] = factors[:, :1, factor]
        return encode(factors)

    return sample


def both(sampler, codes, d, **options):
    return (
        beta_vae(sampler, d, **FAST),
        factor_vae(sampler, codes, d, **FAST, **options),
    )


def test_a_sampler_fixes_one_factor_and_frees_the_others(z, rng):
    codes = sampler_from(z, z)(1, 4000, 3, rng)
    assert codes.shape == (4000, 3, 3)
    assert (codes[:, :, 1] == codes[:, :1, 1]).all()
    for free in (0, 2):
        pair = codes[:, :2, free]
        assert np.mean(pair[:, 0] == pair[:, 1]) == pytest.approx(1 / (5, 6, 7)[free], abs=0.03)


def test_a_sampler_draws_values_as_often_as_the_table_has_them(rng):
    z = np.c_[np.repeat([7, 9], [750, 250]), rng.integers(0, 2, 1000)]
    codes = sampler_from(z, z)(0, 5000, 2, rng)
    assert (codes[:, 0, 0] == 7).mean() == pytest.approx(0.75, abs=0.03)


def test_the_factors_themselves_are_perfect(z):
    h = -3.0 * z[:, [2, 0, 1]] + 7
    assert both(sampler_from(z, h), h, 3) == (1, 1)


def test_codes_that_know_nothing_score_by_chance(z, rng):
    h = rng.normal(size=(3000, 5))
    assert both(sampler_from(z, h), h, 3) == pytest.approx((1 / 3, 1 / 3), abs=0.08)


def test_duplicated_codes_do_no_harm(z):
    h = np.c_[z, z]
    assert both(sampler_from(z, h), h, 3) == (1, 1)


def test_a_merged_code_only_betrays_the_larger_part():
    """One code a + 3b: fixing b or a leaves different spreads, but there is no other code."""
    encode = generating(lambda z: z @ [[1], [3]], 2)
    codes = np.random.default_rng(0).normal(size=(1000, 2)) @ [[1], [3]]
    beta, factor = both(encode, codes, 2)
    assert beta == 1
    assert factor == pytest.approx(1 / 2, abs=0.08)


def test_a_rotation_by_45_degrees_tells_nothing_and_by_20_degrees_all(rng):
    """At 45° the codes vary alike whichever factor is fixed; at 20° the right one varies least."""
    for degrees, expected in ((45, 1 / 2), (20, 1)):
        angle = np.deg2rad(degrees)
        turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
        sampler = generating(lambda z, turn=turn: z @ turn, 2)
        scores = both(sampler, rng.normal(size=(1000, 2)), 2)
        assert scores == pytest.approx((expected, expected), abs=0.08)


def test_order_scale_and_sign_do_not_matter(rng):
    mix = rng.normal(size=(3, 4))
    table = rng.normal(size=(2000, 3)) @ mix

    def scores(change):
        return both(generating(lambda z: change(z @ mix), 3), change(table), 3, pruned_variance=0.0)

    expected = scores(lambda h: h)
    assert 0.4 < expected[1] < 0.99
    for change in (
        lambda h: h[..., ::-1],
        lambda h: -h,
        lambda h: h * [1e-6, 1, 1e6, 3],
        lambda h: h + 5,
        lambda h: h * 2.0**600,  # whose squares exceed all floats
        lambda h: h * 2.0**-600,  # … or vanish
    ):
        assert scores(change) == pytest.approx(expected, abs=0.01)


def test_nearly_constant_codes_are_left_out(z, rng):
    """A code that rarely moves does not vary at all in most groups, whatever is fixed."""
    h = np.c_[0.01 * (z == 0).all(axis=1), z]
    sampler = sampler_from(z, h)
    assert factor_vae(sampler, h, 3, **FAST, pruned_variance=0.0) < 0.7
    assert factor_vae(sampler, h, 3, **FAST) == 1
    small = sampler_from(z, 1e-6 * h)
    assert factor_vae(small, 1e-6 * h, 3, **FAST) == 1  # only the relative variance counts


def test_constant_codes_score_nothing_or_chance(z):
    for h in (np.full((3000, 2), 0.1), np.zeros((3000, 2))):
        beta, factor = both(sampler_from(z, h), h, 3)
        assert beta == pytest.approx(1 / 3, abs=0.08)
        assert factor == 0


def test_noise_codes_are_not_rewarded(z, rng):
    h = z @ rng.normal(size=(3, 3))
    padded = np.c_[h, h.std() * rng.normal(size=(3000, 7))]
    plain = both(sampler_from(z, h), h, 3)
    noisy = both(sampler_from(z, padded), padded, 3)
    assert plain[1] < 0.95  # by majority of all codes alone, noise would raise this to .99
    assert noisy == pytest.approx(plain, abs=0.04)


def test_a_direct_computation_of_both_agrees(z, rng):
    """One sample after the other, as the papers say it; the scores are the same on average."""
    h = z @ (rng.normal(size=(3, 4)) + 2 * np.eye(3, 4)) + rng.normal(size=(3000, 4))
    variances = h.var(axis=0, ddof=1)

    def vote():
        factor = rng.integers(3)
        rows = rng.choice(np.flatnonzero(z[:, factor] == z[rng.integers(3000), factor]), 64)
        return factor, np.argmin(h[rows].var(axis=0, ddof=1) / variances)

    votes = np.zeros((3, 4))
    for _ in range(1000):
        votes[vote()] += 1
    named = votes.argmax(axis=0)
    expected = np.mean([named[code] == factor for factor, code in (vote() for _ in range(1000))])
    assert 0.4 < expected < 0.98
    score = factor_vae(sampler_from(z, h), h, 3, train=1000, test=1000)
    assert score == pytest.approx(expected, abs=0.07)


def test_samplers_may_give_tensors(rng):
    encode = generating(lambda z: torch.tensor(z, requires_grad=True), 2)
    assert both(encode, torch.tensor(rng.normal(size=(100, 2))), 2) == (1, 1)


def test_the_same_seed_gives_the_same_score(z, rng):
    h = z @ rng.normal(size=(3, 3))
    sampler = sampler_from(z, h)
    options = {"train": 100, "test": 100}
    for score in (
        lambda seed: factor_vae(sampler, h, 3, random_state=seed, **options),
        lambda seed: beta_vae(sampler, 3, pairs=2, random_state=seed, **options),
    ):
        assert score(3) == score(np.random.default_rng(3))
        assert len({score(seed) for seed in range(6)}) > 1


def test_bad_input_is_named(z, rng):
    with pytest.raises(InputError, match="column 0 is continuous"):
        sampler_from(rng.normal(size=(100, 2)), rng.normal(size=(100, 2)))
    with pytest.raises(InputError, match=r"sampler must give codes of shape groups×size×k"):
        factor_vae(lambda factor, groups, size, rng: np.zeros((groups, 3)), z, 3)
    with pytest.raises(InputError, match="sampler must give finite codes"):
        beta_vae(lambda factor, groups, size, rng: np.full((groups, size, 2), np.nan), 3)
    with pytest.raises(InputError, match="n_factors must be a whole number of at least 2"):
        beta_vae(sampler_from(z, z), 1)
