import math

import numpy as np
import pytest
import torch
from scipy.linalg import eigh, subspace_angles

from identica.estimator.predictable import independent_pairs, predictable


def planted(n=4000, columns=12, factors=3, noise=1.0, seed=0):
    """Pairs that share factors along some directions, with noise of their own in all columns."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, factors))
    mixing = rng.normal(size=(factors, columns))
    pairs = [z @ mixing + noise * rng.normal(size=(n, columns)) for _ in range(2)]
    return mixing, *(torch.from_numpy(x) for x in pairs)


def test_planted_directions_are_found():
    """What carries the factors in white noise lies in the rows of the mixing."""
    mixing, x, x_pos = planted()
    found = predictable(x, x_pos)
    assert found.matrix.shape == (12, 3)
    assert np.rad2deg(subspace_angles(found.matrix.double().numpy(), mixing.T)).max() < 6
    # the correlation within pairs is that of signal and noise along each direction
    power = np.sort(np.linalg.svd(mixing)[1] ** 2)
    assert np.allclose(found.correlations, power / (power + 1), atol=0.03)


def test_little_is_kept_of_pure_noise():
    kept = []
    for seed in range(20):
        x, x_pos = torch.randn(2, 1500, 40, generator=torch.Generator().manual_seed(seed))
        found = predictable(x, x_pos)
        assert found.matrix.isfinite().all()
        size = (x @ found.matrix).std(0)
        assert size.max() < 0.1  # whatever is kept hardly counts
        kept.append(found.matrix.shape[1])
    assert np.mean(kept) < 2
    fresh = torch.randn(2, 1500, 40, generator=torch.Generator().manual_seed(99))
    assert found.bits(*fresh) < 0.02


def test_without_noise_it_is_whitening_up_to_a_rotation():
    x = torch.from_numpy(np.random.default_rng(0).normal(size=(2000, 5)) ** 3) @ torch.randn(
        5, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0)
    )
    x = x - x.mean(0)
    found = predictable(x, x)
    assert torch.allclose(found.correlations, torch.ones(5), atol=1e-5)
    codes = x @ found.matrix.double()
    assert np.allclose(np.cov(codes.T, bias=True), np.eye(5), atol=1e-3)


def test_weights_fall_with_the_correlation():
    """A direction of correlation ρ is weighed by (ρ − e)/(1 − e), where noise reaches e."""
    rng = np.random.default_rng(0)
    n, rho = 100_000, np.array([0.95, 0.5, 0.1])
    z = rng.normal(size=(n, 3))
    pairs = [np.sqrt(rho) * z + np.sqrt(1 - rho) * rng.normal(size=(n, 3)) for _ in range(2)]
    found = predictable(*(torch.from_numpy(x) for x in pairs))
    edge = math.sqrt(2 * 3 / n)
    size = (pairs[0] @ found.matrix.double().numpy()).std(0)
    assert np.allclose(size, (rho[::-1] - edge) / (1 - edge), atol=0.02)


def test_units_of_columns_do_not_matter():
    """Neither do signs, which eigenvectors leave open: the same directions in other units."""
    _, x, x_pos = planted()
    scale = torch.logspace(-1, 1, 12, dtype=torch.float64)
    here, there = predictable(x, x_pos), predictable(x * scale, x_pos * scale)
    a, b = x @ here.matrix.double(), (x * scale) @ there.matrix.double()
    assert torch.allclose(a.abs(), b.abs(), atol=1e-3)
    for found in (here, there):
        places = 1 / torch.arange(1, 13).float()
        assert (places @ found.matrix > 0).all()
    again = predictable(-x, -x_pos)
    assert torch.allclose(again.matrix, here.matrix, atol=1e-5)


@pytest.mark.parametrize("columns", [30, 200])
def test_duplicated_and_constant_columns_are_no_directions_of_their_own(columns):
    _, x, x_pos = planted(n=1000, columns=6)
    repeat = torch.arange(columns) % 7
    wide = [torch.cat([side, torch.zeros(1000, 1)], 1)[:, repeat] for side in (x, x_pos)]
    found = predictable(*wide)
    plain = predictable(x, x_pos)
    assert found.matrix.isfinite().all()
    assert found.matrix.shape[1] <= 3
    assert torch.allclose(found.correlations[-1], plain.correlations[-1], atol=1e-3)


def test_bits_are_the_information_of_normal_pairs():
    rng = np.random.default_rng(0)
    rho = np.array([0.9, 0.6])
    z = rng.normal(size=(50_000, 2))
    pairs = [
        torch.from_numpy(np.sqrt(rho) * z + np.sqrt(1 - rho) * rng.normal(size=z.shape))
        for _ in range(2)
    ]
    found = predictable(*pairs)
    assert found.bits(*pairs) == pytest.approx(-0.5 * np.log2(1 - rho**2).sum(), abs=0.02)
    assert found.bits(pairs[0], pairs[1].roll(100, 0)) == pytest.approx(0, abs=0.001)


def test_independent_pairs_of_a_slow_process():
    """The mean of N rows that forget exponentially is as uncertain as that of so many independent ones."""
    rho, n = 0.95, 100_000
    expected = n * (1 - rho) / (1 + rho)
    noise = np.random.default_rng(0).normal(size=n) * math.sqrt(1 - rho**2)
    x = np.empty(n)
    x[0] = noise[0]
    for t in range(1, n):
        x[t] = rho * x[t - 1] + noise[t]
    block = 2000
    spread = x.reshape(-1, block).mean(1).var()  # 1/(independent rows of a block)
    assert 1 / spread == pytest.approx(expected * block / n, rel=0.5)
    assert independent_pairs(n, 1, torch.tensor([0.5, 0.95]), 1) == pytest.approx(
        expected, rel=1e-4
    )
    # that of the slowest code which is asked for, and of pairs further apart
    fast = independent_pairs(n, 1, torch.tensor([0.5, 0.95]), 2)
    assert fast == pytest.approx(n / 3, rel=1e-4)
    assert independent_pairs(n, 4, torch.tensor([0.95]), 1) == pytest.approx(expected / 4, rel=1e-4)


@pytest.mark.parametrize(
    ("pairs", "columns", "noise"),
    [(40, 3, 0.5), (200, 6, 1.0), (30, 5, 0.05), (25, 4, 30.0), (12, 10, 0.3), (500, 2, 3.0)],
)
def test_directions_beside_a_generalised_eigenproblem(pairs, columns, noise):
    """C v = ρ S v for the covariance C within pairs and the mean covariance S of their members."""
    rng = np.random.default_rng(pairs)
    z = rng.normal(size=(pairs, columns))
    x, x_pos = (z + noise * rng.normal(size=z.shape) for _ in range(2))
    within = (x.T @ x_pos + x_pos.T @ x) / (2 * pairs)
    rho, vectors = eigh(within, (x.T @ x + x_pos.T @ x_pos) / (2 * pairs))
    edge = min(max(math.sqrt(2 * columns / pairs), -rho[0]), 0.999)
    good = rho > edge if (rho > edge).any() else rho == rho[-1]
    weights = np.clip((rho[good] - edge) / (1 - edge), 0.02, 1)
    expected = vectors[:, good] * weights
    expected *= np.sign(expected.T @ (1 / np.arange(1, columns + 1)))
    found = predictable(torch.from_numpy(x), torch.from_numpy(x_pos))
    assert np.allclose(found.matrix, expected, atol=1e-4)
    assert np.allclose(found.correlations, np.clip(rho[good], 0, 1), atol=1e-6)
    u, v = (side @ found.matrix.double().numpy() for side in (x, x_pos))
    known = [np.corrcoef(u[:, k], v[:, k])[0, 1] for k in range(u.shape[1])]
    bits = sum(-0.5 * math.log2(1 - min(max(r, 0), 0.999) ** 2) for r in known)
    assert found.bits(torch.from_numpy(x), torch.from_numpy(x_pos)) == pytest.approx(bits, rel=1e-4)


@pytest.mark.parametrize(("weak", "kept"), [(1e-2, 2), (1e-4, 1)])
def test_directions_of_a_millionth_of_the_variance_are_left_out(weak, kept):
    z = torch.from_numpy(np.random.default_rng(0).normal(size=(400, 2)))
    assert predictable(
        z * torch.tensor([1.0, weak]), z * torch.tensor([1.0, weak])
    ).matrix.shape == (
        2,
        kept,
    )


def test_independent_pairs_of_no_correlation_and_of_nearly_all():
    for rho, expected in ((-0.3, 1.0), (0.0, 1.0), (1.0, 0.0001 / 1.9999)):
        found = independent_pairs(300.0, 1, torch.tensor([rho, 1.0]), 2)
        assert found == pytest.approx(300 * expected, rel=1e-3)
