"""Codes of observations: windows, and their average over time."""

import copy

import numpy as np
import torch

from helpers.fits import TINY
from identica import ContrastiveICA
from identica.estimator.pairs import ArrayPairs
from identica.estimator.sequences import sequences
from identica.metrics import linear_r2


def test_codes_see_the_square_roots_of_a_window():
    """The model by itself, on means of roots by hand, gives the codes that `transform` averages."""
    x = np.random.default_rng(0).poisson(4.0, size=(200, 3))
    ica = ContrastiveICA(2, window=4, **TINY).fit(x, lag=2)
    roots, n = np.sqrt(x), len(x)
    seen = np.stack([roots[max(t - 1, 0) : min(t + 3, n)].mean(0) for t in range(n)])
    with torch.no_grad():
        codes = copy.deepcopy(ica.model_).double()(torch.from_numpy(seen)).numpy()
    expected = np.stack([codes[max(t - 3, 0) : t + 4].mean(0) for t in range(n)])
    assert np.allclose(ica.transform(x), expected, atol=1e-9)
    real = ContrastiveICA(2, **TINY).fit(x + 0.5)
    assert not real.counts_


def test_codes_of_a_window_are_less_noisy_and_stay_in_their_space():
    """Noise of 0.7 hides an angle that turns slowly; the model alone sees it through one window."""
    turns = np.random.default_rng(0).normal(0, 0.02, 3000)
    angle = np.cumsum(turns)
    z = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    x = z + 0.7 * np.random.default_rng(1).normal(size=z.shape)
    ica = ContrastiveICA(2, space="sphere", window=11, steps=150, batch=128).fit(x)
    within = sequences(len(x))
    seen = ArrayPairs(x.astype(np.float32), within=within, window=11)
    with torch.no_grad():
        single = ica.model_(seen.observed(np.arange(len(x)))).numpy()
    codes = ica.transform(x)
    assert np.allclose(np.linalg.norm(codes, axis=1), 1)
    order = np.random.default_rng(2).permutation(len(x))  # as `linear_r2` asks
    missed, before = (1 - linear_r2(z[order], found[order]) for found in (codes, single))
    assert missed < 0.8 * before
