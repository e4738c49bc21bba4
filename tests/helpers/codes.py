"""Codes that are made directly, so that the truth is known, and the diagnosis of them."""

import numpy as np
import torch

from identica.diagnosis import codes_from, diagnose

N = 1200


def pairs(space, conditional, n=N, seed=0):
    z = space.sample(n, generator=seed, dtype=torch.float64)
    return z.numpy(), conditional.sample(space, z, generator=seed + 1).numpy()


def rotation(n, seed=0):
    return np.linalg.qr(np.random.default_rng(seed + 3).normal(size=(n, n)))[0]


def judged(maps, space, conditional, *, true=None, pair=None, **more):
    """The diagnosis of codes that are maps of the factors of a process on the space."""
    z, z_pos = pairs(space, true or conditional) if pair is None else pair
    codes = [codes_from(m(z), m(z_pos), conditional) for m in maps]
    return diagnose(codes, space, conditional, **more)


def same(z):
    return z


def swapped(z):
    return 1 - z[:, ::-1]


def level(diagnosis, check):
    return {finding.check: finding.level for finding in diagnosis.findings}.get(check)


def advice(diagnosis, check):
    return next(finding.advice for finding in diagnosis.findings if finding.check == check)


def walk(rows, n=3, scale=0.05, seed=0):
    """Laplace steps in a box with walls that reflect, N×n."""
    rng = np.random.default_rng(seed)
    z = rng.uniform(size=n) + rng.laplace(scale=scale, size=(rows, n)).cumsum(0)
    return np.abs((z + 1) % 2 - 1)


def noisy(codes, noise, seed=0):
    """Codes with noise of their own, in their standard deviations."""
    return codes + noise * codes.std(0) * np.random.default_rng(seed).normal(size=codes.shape)


def held_out(rows, lag=1, blocks=10):
    """Times of pairs of each fifth block of a sequence, in a random order."""
    first = np.arange(rows - lag)
    first = first[first * 5 * blocks // rows % 5 == 4]
    first = np.random.default_rng(0).permutation(first)
    return first, first + lag
