"""Sequences whose factors, noise and time scales are known."""

import numpy as np


def slow(rho, shape, rng):
    """Rows that forget exponentially, of unit variance: x_t = ρ·x_{t−1} + noise."""
    steps = rng.normal(size=shape) * np.sqrt(1 - rho**2)
    x = np.empty(shape)
    x[0] = rng.normal(size=shape[1:])
    for t in range(1, len(x)):
        x[t] = rho * x[t - 1] + steps[t]
    return x


def noisy(rows=3000, columns=8, rho=0.99, noise=3.0, seed=0):
    """Two slow factors in some columns, behind noise that is new in each row."""
    rng = np.random.default_rng(seed)
    z = slow(rho, (rows, 2), rng)
    return z, z @ rng.normal(size=(2, columns)) + noise * rng.normal(size=(rows, columns))


def interleaved(rows=3000, columns=4, seed=0):
    """Two recordings row by row in turn: what says something of a row is the one before the last."""
    rng = np.random.default_rng(seed)
    x = np.stack([slow(0.95, (rows // 2, columns), rng) for _ in range(2)], axis=1)
    return x.reshape(rows, columns) @ rng.normal(size=(columns, columns))
