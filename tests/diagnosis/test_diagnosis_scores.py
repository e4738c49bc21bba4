"""The numbers of a diagnosis, from the codes and their evidence, beside plain arithmetic."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from helpers.codes import pairs, rotation
from identica import Box, Euclidean, InputError, Laplace, Normal
from identica.diagnosis import codes_from, diagnose
from identica.diagnosis.codes import Codes
from identica.diagnosis.marginal import blur
from identica.diagnosis.sequence import order_of
from identica.diagnosis.verdict import Finding
from identica.metrics import agreement

RNG = np.random.default_rng(0)


def evidence(h, h_pos, tau, bias=None):
    """Bits of each pair: log N e^{s_ii} / Σ_j e^{s_ij}, with the others as candidates."""
    found = []
    for i in range(len(h)):
        scores = [
            -0.5 * ((h[i] - h_pos[j]) ** 2).sum() / tau + (0 if bias is None else bias[j])
            for j in range(len(h))
        ]
        top = max(scores)
        total = sum(math.exp(score - top) for score in scores) / len(h)
        found.append((scores[i] - top - math.log(total)) / math.log(2))
    return np.array(found)


@pytest.mark.parametrize("biased", [False, True])
def test_evidence_of_pairs_and_of_shuffled_ones(biased):
    h = RNG.normal(size=(40, 2))
    h_pos = h + 0.3 * RNG.normal(size=h.shape)
    bias = torch.from_numpy(RNG.normal(size=40)).float() if biased else None
    found = codes_from(h, h_pos, Normal(1.0), temperature=0.2, bias=bias, seen=3.0)
    weights = None if bias is None else bias.numpy()
    assert found.bits == pytest.approx(evidence(h, h_pos, 0.2, weights), abs=1e-4)
    order = torch.randperm(40, generator=torch.Generator().manual_seed(0)).numpy()
    # strangers are scored at their own best temperature
    best = max(
        evidence(h, h_pos[order], tau, None if weights is None else weights[order]).mean()
        for tau in np.geomspace(0.1, 1e4, 50)
    )
    assert found.control.mean() == pytest.approx(best, abs=5e-3)
    assert found.seen == 3.0
    assert (found.h, found.h_pos) == (pytest.approx(h), pytest.approx(h_pos))
    other = 2 * torch.from_numpy(h).float(), 2 * torch.from_numpy(h_pos).float()
    scaled = codes_from(h, h_pos, Normal(1.0), scaled=other, temperature=0.8, bias=bias)
    assert scaled.bits == pytest.approx(found.bits, abs=1e-4)
    assert scaled.seen is None
    assert scaled.h == pytest.approx(h)


def three_fits(rows=60):
    h = RNG.uniform(size=(rows, 2))
    h_pos = h + 0.05 * RNG.normal(size=h.shape)
    maps = (np.eye(2), rotation(2), np.array([[1.0, 0.4], [0.0, 1.0]]))
    return [
        Codes(h @ m, h_pos @ m, *RNG.normal(2 + k, 1, size=(2, rows)), seen)
        for k, (m, seen) in enumerate(zip(maps, (9.0, 3.0, None), strict=True))
    ]


def test_scores_are_those_of_the_refits():
    """The first model has seen the pairs that the others are judged on."""
    fits = three_fits()
    found = diagnose(fits, Box(2), Laplace(0.05))
    bits = [(a + b) / 2 for a, b in zip(fits[1].bits, fits[2].bits, strict=True)]
    control = [(a + b) / 2 for a, b in zip(fits[1].control, fits[2].control, strict=True)]
    score = found.score
    assert (score.bits, score.error) == pytest.approx((np.mean(bits), np.std(bits) / math.sqrt(60)))
    expected = np.mean(control), np.std(control) / math.sqrt(60)
    assert (score.control, score.control_error) == pytest.approx(expected)
    assert (score.seen, score.most, score.related) == (3.0, math.log2(60), None)
    for i in range(3):
        for j in range(3):
            both = [fits[i].h, fits[j].h]
            linear, permutation = (
                1.0 if i == j else agreement(both, up_to) for up_to in ("affine", "permutation")
            )
            assert found.restarts.linear[i, j] == pytest.approx(linear)
            assert found.restarts.permutation[i, j] == pytest.approx(permutation)
    assert found.restarts.mean_linear == pytest.approx(
        found.restarts.linear[[0, 0, 1], [1, 2, 2]].mean()
    )
    assert found.restarts.mean_permutation == pytest.approx(
        found.restarts.permutation[[0, 0, 1], [1, 2, 2]].mean()
    )
    assert found.restarts.ceiling == 1.0
    assert found.pairs == 60
    assert found.codes[0] == pytest.approx(fits[0].h)


@pytest.mark.parametrize("noise", [0.3, 0.6])
def test_noise_limits_the_agreement_of_fits(noise):
    angle = 2 * np.pi * np.arange(401) / 40
    z = np.c_[np.sin(angle), np.cos(angle)]
    fits = []
    for k in range(3):
        h = z + (1 + 0.2 * k) * noise * np.random.default_rng(k).normal(size=z.shape)
        fits.append(Codes(h[:-1], h[1:], *np.ones((2, 400)), None))
    times = np.arange(400), np.arange(1, 401)
    found = diagnose(fits, Euclidean(2), Normal(1.0), times=times)
    signal = [1 - order_of(fit.h, fit.h_pos, times)[0].noise.mean() for fit in fits]
    pairs_of_fits = [signal[i] * signal[j] for i, j in ((0, 1), (0, 2), (1, 2))]
    assert found.restarts.ceiling == pytest.approx(max(0.5, np.mean(pairs_of_fits)))
    assert (found.restarts.ceiling > 0.5) == (noise == 0.3)
    assert found.marginal.blur == blur(float(found.rows.noise.max()), 0)


def test_limits_of_what_is_diagnosed():
    z, z_pos = pairs(Box(2), Laplace(0.05), 20)
    code = codes_from(z, z_pos, Laplace(0.05))
    assert diagnose([code, code], Box(2), Laplace(0.05)).pairs == 20
    few = codes_from(z[:19], z_pos[:19], Laplace(0.05))
    with pytest.raises(InputError, match="at least 20 pairs for a diagnosis, got 19"):
        diagnose([few, few], Box(2), Laplace(0.05))
    large = code._replace(h=np.where(z == z[3, 1], np.nextafter(1e150, np.inf), z))
    with pytest.raises(InputError, match=r"at most 1e\+150"):
        diagnose([large, large], Box(2), Laplace(0.05))
    with pytest.raises(InputError, match=r"at most 1e\+150"):
        codes_from(z, np.where(z == z[3, 1], -2e150, z_pos), Laplace(0.05))


def test_two_thousand_pairs_are_kept_for_plots():
    z, z_pos = pairs(Box(1), Laplace(0.05), 2001)
    code = Codes(z, z_pos, *np.ones((2, 2001)), None)
    kept = diagnose([code, code], Box(1), Laplace(0.05)).codes
    assert [part.shape for part in kept] == [(2000, 1), (2000, 1)]


def test_codes_of_two_values_are_judged():
    """Binary codes have no dimension that distances could tell, and are no reason to fail."""
    h = RNG.integers(2, size=(200, 2)).astype(float)
    h_pos = np.where(RNG.uniform(size=h.shape) < 0.1, 1 - h, h)
    code = codes_from(h, h_pos, Laplace(1.0))
    found = diagnose([code, code], Euclidean(2), Laplace(1.0))
    assert found.dimensions.intrinsic == (2, 2, 2)
    json.loads(found.to_json())


def test_findings_are_sorted_by_gravity_and_only_the_first_advises():
    found = diagnose(three_fits(), Box(2), Laplace(0.05))
    order = ["wrong", "unsure", "caution", "fine"]
    levels = [order.index(finding.level) for finding in found.findings]
    assert levels == sorted(levels)
    assert len(set(levels)) > 1
    assert [finding.advice for finding in found.findings[1:]] == [""] * (len(levels) - 1)
    text = str(replace(found, findings=[Finding("score", "wrong", "Seen.", "Means.", "more.")]))
    assert text.endswith("\n  [wrong] score: Seen. Means. Try: more.")
