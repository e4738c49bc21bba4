"""The FactorVAE score: does the code that varies least name the factor that was held fixed?"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from identica._validate import as_matrix, as_rng, count, nonnegative
from identica.errors import InputError
from identica.metrics.sampling import Sampler, batches
from identica.metrics.standardise import Matrix, is_constant


def factor_vae(
    sampler: Sampler,
    codes: Any,
    n_factors: int,
    *,
    size: int = 64,
    train: int = 10_000,
    test: int = 5_000,
    pruned_variance: float = 0.05,
    random_state: int | np.random.Generator = 0,
) -> float:
    """Held-out accuracy in naming the factor j that a group of samples shares, from the one code

        i* = argmin_i Var_group(h_i) / Var(h_i)

    by majority vote: each code stands for the factor it most often points to. It is 1 if every
    factor stills a code of its own; duplicated codes do no harm, a rotation does. Uninformative
    codes score 1/d, by chance. Two kinds of codes are left out: nearly constant ones, whose
    relative variance is all noise (if no code varies the score is 0), and those that no factor
    stills, which would otherwise stand for whatever factor stills no other code.

    Reference: Kim & Mnih, Disentangling by Factorising, ICML 2018; settings of Locatello et al.,
    ICML 2019, where the threshold is absolute, for codes of about unit variance.

    Args:
        sampler: `sampler(factor, groups, size, rng)` gives codes, groups×size×k, of samples that
            share one value of the factor in each group; `sampler_from` makes one from arrays.
        codes: codes of samples with no factor fixed, N×k, for their variances (say 10,000).
        n_factors: the number d of factors, at least 2.
        size: samples in a group.
        train: groups whose votes decide what each code stands for.
        test: groups to score on.
        pruned_variance: leave out codes with less than this share of the largest variance.
        random_state: seed of all draws.

    >>> from identica.metrics import sampler_from
    >>> z = np.random.default_rng(0).integers(0, 5, size=(1000, 3))
    >>> factor_vae(sampler_from(z, -2.0 * z), -2.0 * z, 3, train=500, test=200)
    1.0
    """
    table = as_matrix("codes", codes)
    largest = float(np.abs(table).max()) or 1.0  # no square of codes in this unit overflows
    table = table / largest
    variances = table.var(axis=0, ddof=1)
    share = nonnegative("pruned_variance", pruned_variance)
    active = ~is_constant(table) & (variances >= share * variances.max())
    if not active.any():
        return 0.0
    rng = as_rng("random_state", random_state)
    groups = count("train", train) + count("test", test)
    factors = rng.integers(count("n_factors", n_factors, at_least=2), size=groups)
    within, means = np.empty((2, groups, int(active.sum())))
    for places, found in batches(sampler, factors, 1, count("size", size, at_least=2), rng):
        if (width := found.shape[-1]) != len(active):
            raise InputError(
                f"codes must have the {width} columns of the sampler, got {len(active)}"
            )
        group = found[:, 0][:, :, active] / largest
        within[places], means[places] = group.var(axis=1, ddof=1), group.mean(axis=1)
    used = _is_stilled(factors[:train], within[:train], means[:train], size)
    stillest = np.where(used, within / variances[active], np.inf).argmin(axis=1)
    votes = np.zeros((n_factors, len(used)), dtype=np.intp)
    np.add.at(votes, (factors[:train], stillest[:train]), 1)
    return float((votes.argmax(axis=0)[stillest[train:]] == factors[train:]).mean())


def _is_stilled(
    factors: NDArray[np.intp], within: Matrix, means: Matrix, size: int
) -> NDArray[np.bool_]:
    """Which codes are stilled by fixing some factor; all of them if none is.

    Then their means differ between groups by more than noise within groups explains (analysis of
    variance: the ratio of the two is about 1 ± sqrt(2/groups) for independent noise).
    """
    stilled = np.zeros(within.shape[1], dtype=bool)
    for factor in np.unique(factors):
        own = factors == factor
        if (groups := int(own.sum())) > 1:
            between = size * means[own].var(axis=0, ddof=1)
            stilled |= between > (1 + 5 * np.sqrt(2 / groups)) * within[own].mean(axis=0)
    return stilled if stilled.any() else ~stilled
