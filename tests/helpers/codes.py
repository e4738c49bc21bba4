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
