"""The β-VAE score: can a linear classifier tell which factor pairs of samples share?"""

from __future__ import annotations

import numpy as np

from identica._validate import as_rng, count
from identica.metrics.sampling import Sampler, batches
from identica.metrics.standardise import Matrix, standardised


def beta_vae(
    sampler: Sampler,
    n_factors: int,
    *,
    pairs: int = 64,
    train: int = 10_000,
    test: int = 5_000,
    random_state: int | np.random.Generator = 0,
) -> float:
    """Held-out accuracy in naming the factor j that the two samples of each pair share, from

        (1/L) Σ_l |h(x_l) − h(x′_l)|,   where z_j(x_l) = z_j(x′_l)

    by logistic regression, with j drawn at random for each point. It is 1 if fixing a factor leaves
    a trace of its own in the codes; a rotation of the factors leaves one too, so the score says
    little about axes. Uninformative codes score 1/d, by chance. The features are standardised,
    so that the scale of the codes does not matter.

    Reference: Higgins et al., β-VAE: Learning Basic Visual Concepts with a Constrained
    Variational Framework, ICLR 2017; settings of Locatello et al., ICML 2019.

    Args:
        sampler: `sampler(factor, groups, size, rng)` gives codes, groups×size×k, of samples that
            share one value of the factor in each group; `sampler_from` makes one from arrays.
        n_factors: the number d of factors, at least 2.
        pairs: the number L of pairs behind each point.
        train: points to fit on.
        test: points to score on.
        random_state: seed of all draws.

    >>> from identica.metrics import sampler_from
    >>> z = np.random.default_rng(0).integers(0, 5, size=(1000, 3))
    >>> beta_vae(sampler_from(z, -2.0 * z), 3, train=500, test=200)
    1.0
    """
    from sklearn.linear_model import LogisticRegression

    count("pairs", pairs)
    rng = as_rng("random_state", random_state)
    points = count("train", train) + count("test", test)
    factors = rng.integers(count("n_factors", n_factors, at_least=2), size=points)
    found: list[Matrix] = [np.empty(0)] * points
    for places, codes in batches(sampler, factors, pairs, 2, rng):
        for place, difference in zip(places, np.abs(codes[:, :, 0] - codes[:, :, 1]), strict=True):
            found[place] = difference.mean(axis=0)
    features = standardised(np.array(found), slice(train))
    classifier = LogisticRegression(max_iter=1000).fit(features[:train], factors[:train])
    return float(classifier.score(features[train:], factors[train:]))
