import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.integrate import quad

from identica import Box, InputError, Laplace, Normal, Sphere
from identica._bessel import log_mean_exp_gap
from identica.families import GeneralizedNormal, VonMisesFisher
from identica.studies.study import Finished, Ours
from identica.studies.table import pooled
from identica.studies.theorem1 import (
    ROWS,
    Estimate,
    Estimation,
    Limit,
    Theorem1,
    cross_entropy,
    score_name,
)

SMALL = Estimate(negatives=(10, 100, 1000, 10_000, 100_000), batches=6, anchors=32, positives=128)


def estimate(row, seed):
    return Estimation(row, seed).run(Path("never written to"), lambda *at: None)


@pytest.mark.parametrize(
    ("space", "family"),
    [
        (Sphere(10), VonMisesFisher(1.0)),
        (Sphere(10), VonMisesFisher(10.0)),
        (Box(10), Laplace(0.25)),
        (Box(10), Normal(0.25)),
        (Box(3), GeneralizedNormal(3.0, 0.05)),
        (Box(2, low=(0.0, -2.0), high=(1.0, 5.0)), Laplace(0.7)),
        (Box(2), Normal(30.0)),
    ],
)
def test_the_limit_is_the_mean_of_minus_log_density(space, family):
    z = space.sample(100_000, generator=0, dtype=torch.float64)
    sample = -family.log_prob(space, family.sample(space, z, generator=1), z)
    error = sample.std().item() / math.sqrt(len(sample))
    assert cross_entropy(space, family) == pytest.approx(sample.mean().item(), abs=4 * error + 1e-9)


@pytest.mark.parametrize("scale", [0.02, 0.3, 2.0])
def test_quadrature_agrees_with_scipys(scale):
    def entropy(c):
        def integral(f):
            return quad(f, 0, c)[0] + quad(f, c, 1)[0]

        z = integral(lambda x: math.exp(-abs(x - c) / scale))
        mean = integral(lambda x: abs(x - c) / scale * math.exp(-abs(x - c) / scale)) / z
        return math.log(z) + mean

    expected = 2 * quad(entropy, 0, 0.5, limit=200)[0]
    assert cross_entropy(Box(1), Laplace(scale)) == pytest.approx(expected, abs=1e-6)


def test_what_has_no_limit_is_named():
    with pytest.raises(InputError, match="has no cross-entropy"):
        cross_entropy(Sphere(3), Laplace(0.05))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row.conditional))
def test_the_estimate_meets_the_limit_and_the_gap_falls(row):
    row = replace(row, estimate=SMALL)
    results = [estimate(row, seed) for seed in (0, 1)]
    found = [pooled(results, score_name(m)) for m in SMALL.negatives]
    gaps = [ours.mean - row.cross_entropy for ours in found]
    assert abs(gaps[-1]) < 2 * found[-1].error
    # what is left at M is (R + 1)/2M with R = E q²/(E q)²: the gap falls until noise is left
    assert gaps[0] > 4 * found[0].error
    assert gaps[0] > gaps[1] > gaps[2]
    for gap, ours in zip(gaps[3:], found[3:], strict=True):
        assert abs(gap) < max(gaps[2], 2 * ours.error)
    if isinstance(row.conditional, VonMisesFisher):
        kappa = row.conditional.kappa
        ratio = math.exp(log_mean_exp_gap(10, 2 * kappa) - 2 * log_mean_exp_gap(10, kappa))
        assert gaps[2] == pytest.approx((ratio + 1) / 2000, abs=3 * found[2].error)


def test_the_standard_error_is_honest():
    """Over many seeds the estimates scatter as they say they do."""
    rough = Estimate(negatives=(20,), batches=4, anchors=8, positives=4)
    row = Limit(1, Box(2), Laplace(0.3), rough)
    results = [estimate(row, seed) for seed in range(150)]
    values = np.array([r["scores"]["M=20"] for r in results])
    errors = np.array([r["errors"]["M=20"] for r in results])
    assert values.std(ddof=1) == pytest.approx(math.sqrt((errors**2).mean()), rel=0.2)


def test_it_estimates_the_loss_with_fresh_negatives():
    """L(M) − log M + log|Z| by its formula, with negatives drawn anew for every anchor."""
    row = Limit(1, Sphere(4), VonMisesFisher(5.0), replace(SMALL, negatives=(50,), anchors=128))
    ours = estimate(row, 0)
    generator = torch.Generator().manual_seed(1)
    z = row.space.sample(10_000, generator=generator, dtype=torch.float64)
    z_pos = row.conditional.sample(row.space, z, generator=generator)
    negatives = row.space.sample(10_000 * 50, generator=generator, dtype=torch.float64)
    others = 5 * (z[:, None] * negatives.view(10_000, 50, 4)).sum(-1)
    own = 5 * (z * z_pos).sum(-1)
    losses = torch.cat([own[:, None], others], 1).logsumexp(1) - own
    expected = float(losses.mean()) - math.log(50) + row.space.log_volume
    error = math.hypot(float(losses.std()) / 100, ours["errors"]["M=50"])
    assert ours["scores"]["M=50"] == pytest.approx(expected, abs=4 * error)


def test_the_largest_m_alone_is_judged():
    study = Theorem1("theorem1", "Theorem 1", ROWS)
    row, targets = ROWS[1], study.targets(ROWS[1])
    limit = row.cross_entropy
    assert study.verdict(targets[0], Ours(limit + 0.9, 0, 5, 0.01)) == ("above", None)
    assert study.verdict(targets[-1], Ours(limit + 0.019, 0, 5, 0.01)) == ("within", True)
    assert study.verdict(targets[-1], Ours(limit + 0.021, 0, 5, 0.01)) == ("above", False)


def test_a_run_that_lacks_scores_is_left_out_of_the_picture(tmp_path):
    study = Theorem1("theorem1", "Theorem 1", ROWS)
    scores = {target.score: 1.0 for target in study.targets(ROWS[0])}
    runs = [Finished(0, tmp_path, {}, {"scores": found}) for found in (scores, {"M=10": 1.0})]
    (picture,) = study.pictures(ROWS[0], {"contrastive": runs})
    assert "1 seed" in picture.caption
    assert study.pictures(ROWS[0], {"contrastive": runs[1:]}) == []
