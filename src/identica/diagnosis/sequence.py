"""Temporal structure of held-out rows: effective number of independent rows, and measurement noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from identica._validate import as_array, members
from identica.errors import InputError
from identica.metrics.standardise import standardised

Matrix = NDArray[np.float64]
Steps = NDArray[np.int64]
Times = tuple[Steps, Steps]

FEW = 3  # independent rows per code below which they are too few
NOISY = 0.3  # share of noise in differences within pairs that matters
FADED = 0.1  # autocorrelation that counts as zero
SPAN = 10  # the correlation time is taken to be at most the total time divided by this
LINKED = 50  # positives that are anchors as well, needed to estimate the noise
SAME = 1e-6  # largest distance between codes of the same row, relative to their spread
LAGS = 64  # lags to try if rows may be in order of time
ORDERED = 0.2  # correlation of consecutive rows above which they are treated as a sequence


@dataclass(frozen=True)
class Rows:
    """Effective sample size and noise of held-out rows.

    Attributes:
        independent: effective number of independent rows, for the slowest code.
        apart: steps in time beyond which two rows are independent; 0 if all are.
        noise: share of the variance of each code that is noise of single rows, n values; 0 if the order in
            time is unknown.
        noise_in_pairs: the same for the variance of differences within pairs.
    """

    independent: float
    apart: int
    noise: Matrix
    noise_in_pairs: Matrix

    @property
    def few(self) -> bool:
        """Whether there are too few to assess the distribution of the codes."""
        return self.independent < FEW * len(self.noise)

    @property
    def noisy(self) -> bool:
        """Whether differences within pairs reflect noise as much as change."""
        return float(np.median(self.noise_in_pairs)) >= NOISY


@dataclass(frozen=True)
class Order:
    """Time steps of the anchors, and the number of steps after which rows are independent."""

    times: Steps
    apart: int

    def near(self, rows: Steps, others: Steps) -> NDArray[np.bool_]:
        """Which rows are too close in time to be independent, len(rows)×len(others)."""
        gaps = np.abs(self.times[rows][:, None] - self.times[others][None])
        return np.asarray(gaps <= self.apart)

    def halves(self, random_state: int) -> tuple[Steps, Steps]:
        """Split the rows into two independent halves, made of random blocks of time."""
        rng = np.random.default_rng(random_state)
        blocks = np.arange(len(self.times))
        if self.apart:
            # blocks of twice the correlation time; at least eight, so that both halves cover all places
            length = max(1, min(2 * self.apart, int(np.ptp(self.times)) // 8))
            blocks = (self.times - self.times.min()) // length
        names, block = np.unique(blocks, return_inverse=True)
        first = (rng.permutation(len(names)) % 2 == 0)[block]
        return np.flatnonzero(first), np.flatnonzero(~first)


def order_of(h: Matrix, h_pos: Matrix, times: Any = None) -> tuple[Rows, Order]:
    """Effective sample size of the rows of codes h and h_pos (N×n), and their order in time.

    Args:
        times: time steps of the anchors and of their positives, N each. By default they are inferred
            from the codes, if positives are anchors of other rows or if rows are in order.
    """
    n = len(h)
    when = _guessed(h, h_pos) if times is None else _checked(times, n)
    if when is None or np.ptp(when[0]) < SPAN:
        nothing = np.zeros(h.shape[1])
        return Rows(float(n), 0, nothing, nothing), Order(np.arange(n), 0)
    noise, noise_in_pairs = _noise(h, h_pos, when)
    gaps, correlations = _autocorrelation(h, when[0])
    signal = np.minimum(correlations / np.maximum(1 - noise, 0.1), 1.0).max(axis=1)
    faded = np.flatnonzero(signal < FADED)
    last = int(faded[0]) if len(faded) else len(gaps) - 1
    signal[last:] = 0.0
    memory = max(1, min(int(gaps[last]), int(np.ptp(when[0])) // SPAN))
    some = np.random.default_rng(0).permutation(n)[:500]
    apart = np.abs(when[0][some][:, None] - when[0][None])
    together = np.interp(apart, np.r_[0, gaps], np.r_[1.0, signal]).sum(1).mean()
    return Rows(n / float(together), memory, noise, noise_in_pairs), Order(when[0], memory)


def _checked(times: Any, n: int) -> Times:
    arrays = [as_array("times", part) for part in members("times", times, "steps in time", 2)]
    if (shapes := [part.shape for part in arrays]) != [(n,), (n,)]:
        raise InputError(f"times must be two of {n} steps in time, got {shapes}")
    for part in arrays:
        if part.dtype.kind not in "iuf" or not (np.abs(part) < 2**62).all():
            raise InputError("times must be whole numbers of at most 62 bits")
    return arrays[0].astype(np.int64), arrays[1].astype(np.int64)


# --- the order in time ------------------------------------------------------------------------------


def _guessed(h: Matrix, h_pos: Matrix) -> Times | None:
    """Time steps of anchors and positives, if they can be inferred from the codes."""
    n, codes = len(h), standardised(h)
    if (codes[:-1] * codes[1:]).mean(0).max(initial=0.0) > max(ORDERED, 4 / np.sqrt(n)):
        lags = range(1, min(LAGS, n // 4) + 1)
        apart = [float(np.square(h_pos[:-lag] - h[lag:]).mean()) for lag in lags]
        rows = np.arange(n)
        return rows, rows + 1 + int(np.argmin(apart))
    return _chained(h, h_pos)


def _chained(h: Matrix, h_pos: Matrix) -> Times | None:
    """Time steps of chains of rows, in which each row is the positive of the previous one."""
    from scipy.spatial import cKDTree

    distances, following = map(np.asarray, cKDTree(h).query(h_pos))
    if len(np.unique(h, axis=0)) < len(h):  # equal codes may belong to different rows
        return None
    same = distances < SAME * np.linalg.norm(h.std(0))
    rows = np.flatnonzero(same)
    if len(rows) < len(h) / 4:
        return None
    after = dict(zip(rows.tolist(), following[rows].tolist(), strict=True))
    times, clock = np.full(len(h), -1), 0
    first = sorted(set(range(len(h))) - set(after.values()))
    for start in [*first, *range(len(h))]:
        row: int | None = start
        while row is not None and times[row] < 0:
            times[row], clock = clock, clock + 1
            row = after.get(row)
        clock += len(h)  # the time between chains is unknown
    return times, np.where(same, times[following], -1)


# --- correlation time and noise ---------------------------------------------------------------------


def _autocorrelation(h: Matrix, times: Steps) -> tuple[Steps, Matrix]:
    """Autocorrelations of each code at increasing lags: the lags G, and values G×n."""
    order = np.argsort(times, kind="stable")
    at, codes = times[order], standardised(h)[order]
    span = max(2, int(np.ptp(times)) // 2)
    grid = np.unique(np.geomspace(1, span, 40).astype(np.int64))
    gaps, found = [], []
    for gap in grid:
        other = np.searchsorted(at, at + gap)
        inside = np.flatnonzero(other < len(at))
        inside = inside[at[other[inside]] - at[inside] <= gap + gap // 4]
        if len(inside) >= 20:
            gaps.append(int(gap))
            found.append((codes[inside] * codes[other[inside]]).mean(0))
    if not gaps:
        return np.array([1]), np.zeros((1, h.shape[1]))
    return np.array(gaps), np.array(found)


def _noise(h: Matrix, h_pos: Matrix, times: Times) -> tuple[Matrix, Matrix]:
    """Share of noise in each code and in its differences within pairs.

    If the signal is autoregressive, the correlations at one lag and at two are c₁ = sρ and c₂ = sρ²,
    so that s = c₁²/c₂ is its share of the variance.
    """
    order = np.argsort(times[0], kind="stable")
    following = order[np.searchsorted(times[0][order], times[1]).clip(max=len(h) - 1)]
    rows = np.flatnonzero(times[0][following] == times[1])
    if len(rows) < LINKED:
        return np.zeros(h.shape[1]), np.zeros(h.shape[1])
    last, scale = following[rows], np.where(h.std(0) > 0, h.std(0), 1.0)
    steps = np.vstack([h_pos[rows] - h[rows], h_pos[last] - h[last]]) / scale
    change = np.square(steps).mean(0) / 2  # 1 − c₁
    twice = 1 - np.square((h_pos[last] - h[rows]) / scale).mean(0) / 2
    signal = np.where(twice > FADED, (1 - change) ** 2 / np.maximum(twice, FADED), 1.0)
    noise = np.clip(1 - signal, 0.0, change)
    return noise, noise / np.where(change > 0, change, 1.0)
