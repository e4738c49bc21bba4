"""The compiled inner loops of the fused loss: similarities, exponentials and gradients of a few queries."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from identica._compiled import compiler
from identica._powers import exp2, power_of

Array = NDArray[Any]

ROWS = 4  # queries that share a sweep over the keys; the inner loops are written out for four
BLOCK = 1024  # keys per inner loop, so that ROWS × BLOCK similarities stay in the nearest cache
PRECISE = 32.0  # similarities beyond this are computed again in float64
OUTSIDE = -3e38  # similarity of a key outside the window: finite, but its exponential is exactly 0
LOG2E = 1 / math.log(2)
DOT, OTHER, OTHER64 = 0, 4, 5  # kinds of similarity other than the powers 1, 2 and 3

# Only what vectorised sums and fused multiply-adds need; infinities keep their meaning.
_LIBERTIES = ("reassoc", "contract", "nsz", "arcp")
_compiled = compiler(*_LIBERTIES)
_inlined = compiler(*_LIBERTIES, forceinline=True)


@cache
def kernel(kind: int) -> Callable[..., Any]:
    """The sweep over queries, compiled for one kind of similarity and kept on disk."""

    @_compiled
    def sweep(
        queries: Array,
        keys: Array,
        biases: Array,
        positives: Array,
        reach: Array,
        scale: float,
        p: float,
        window: tuple[int, int],
        part: tuple[int, int],
        gradient: bool,
        dqueries: Array,
        dkeys: Array,
        dbiases: Array,
        dpositives: Array,
    ) -> tuple[float, float]:
        """Go through the queries of a part, ROWS at a time, with powers of 2 as exponentials.

        Biases are in units of the similarities, without the scale. Returns the sum of the log-sum-exps
        and its derivative in the scale with these fixed; writes the other derivatives, times the number
        of queries and, for queries and keys, over scale or −scale·p. `dbiases` may be empty.
        """
        size, (first, count) = keys.shape[1], window
        everything = count + ROWS > size
        length = size if everything else count + ROWS - 1  # keys in the windows of ROWS queries
        raw = np.empty((ROWS, length), np.float32)
        raw64 = np.empty((ROWS, length), np.float64)
        weights = np.empty((ROWS, length), np.float32)
        best = np.empty(ROWS)
        unit = scale * LOG2E
        total = derivative = 0.0
        for row in range(part[0], part[1], ROWS):
            live = min(ROWS, len(positives) - row)
            base = 0 if everything else (row + first) % size
            _similarities(kind, raw, queries, row, keys, biases, base, p)
            _hide(raw, row + first, count, size, everything)
            largest = 0.0
            for r in range(live):
                best[r] = _highest(raw[r])
                largest = max(largest, abs(best[r]), reach[row + r])
            precise = largest * scale > PRECISE
            if precise:
                exact = OTHER64 if kind == OTHER else kind
                _similarities(exact, raw64, queries, row, keys, biases, base, p)
                _hide(raw64, row + first, count, size, everything)
                for r in range(live):
                    best[r] = -np.inf
                    for j in range(length):
                        best[r] = max(best[r], raw64[r, j])
            for r in range(ROWS):
                if r >= live:
                    weights[r] = 0
                    continue
                plus = positives[row + r] * LOG2E
                top = max(unit * best[r], plus)
                lead = top - unit * best[r]
                if precise:
                    z, moment = _exponentials(raw64[r], weights[r], best[r], unit, lead)
                else:
                    numbers = np.float32(best[r]), np.float32(unit), np.float32(lead)
                    z, moment = _exponentials(raw[r], weights[r], *numbers)
                plus = 2 ** (plus - top)
                total += (top + math.log2(z + plus)) / LOG2E
                derivative += moment / (z + plus)
                dpositives[row + r] = plus / (z + plus)
                if gradient:
                    inverse = np.float32(1 / (z + plus))
                    for j in range(length):
                        weights[r, j] *= inverse
            if gradient:
                _gradients(kind, weights, queries, row, keys, base, p, dqueries, dkeys)
                if len(dbiases):
                    _add(weights, base, dbiases)
        return total, derivative

    return sweep


@_inlined
def _similarities(
    kind: int,
    raw: Array,
    queries: Array,
    row: int,
    keys: Array,
    biases: Array,
    base: int,
    p: float,
) -> None:
    """raw[r, o] = similarity of query row + r and key base + o mod K, with its bias, in the precision
    of `raw`."""
    real, length, (n, size) = raw.dtype.type, raw.shape[1], keys.shape
    power = real(p)
    start = 0
    while start < length:
        at = (base + start) % size
        stop = start + min(BLOCK, length - start, size - at)
        a, b, c, d = raw[0, start:stop], raw[1, start:stop], raw[2, start:stop], raw[3, start:stop]
        some = biases[at : at + stop - start]
        a[:], b[:], c[:], d[:] = some, some, some, some
        for i in range(0, n, 2):  # two coordinates at once: half as many loads and stores of raw
            ka, kb = keys[i, at : at + stop - start], keys[i + 1, at : at + stop - start]
            qa, qb = real(queries[row, i]), real(queries[row, i + 1])
            ra, rb = real(queries[row + 1, i]), real(queries[row + 1, i + 1])
            sa, sb = real(queries[row + 2, i]), real(queries[row + 2, i + 1])
            ta, tb = real(queries[row + 3, i]), real(queries[row + 3, i + 1])
            for j in range(stop - start):
                u, v = ka[j], kb[j]
                a[j] += _similarity(kind, qa, u, power) + _similarity(kind, qb, v, power)
                b[j] += _similarity(kind, ra, u, power) + _similarity(kind, rb, v, power)
                c[j] += _similarity(kind, sa, u, power) + _similarity(kind, sb, v, power)
                d[j] += _similarity(kind, ta, u, power) + _similarity(kind, tb, v, power)
        start = stop


@_inlined
def _hide(raw: Array, start: int, count: int, size: int, everything: bool) -> None:
    """Mask the keys outside the window of each row; that of row r starts at start + r mod K."""
    for r in range(ROWS):
        if everything:
            for gap in range(size - count):
                raw[r, (start + r + count + gap) % size] = OUTSIDE
        else:
            for o in range(r):
                raw[r, o] = OUTSIDE
            for o in range(r + count, raw.shape[1]):
                raw[r, o] = OUTSIDE


@_inlined
def _highest(values: Array) -> Any:
    """The largest value, found among integers in the same order: that loop is vectorised."""
    bits = values.view(np.int32)
    highest = np.int32(-(2**31))
    for j in range(bits.size):
        highest = max(highest, _ordered(bits[j]))
    return np.int32(_ordered(highest)).view(np.float32)


@_inlined
def _ordered(bits: Any) -> Any:
    """Integers ordered as the floats of these bits are; its own inverse."""
    return np.int32(bits ^ np.int32(np.int32(bits >> np.int32(31)) & np.int32(0x7FFFFFFF)))


@_inlined
def _exponentials(raw: Array, out: Array, best: Any, unit: Any, lead: Any) -> tuple[float, float]:
    """out = 2^(unit·(raw − best) − lead); returns the sums of out and of raw·out."""
    z, moment = 0.0, 0.0
    for start in range(0, raw.size, BLOCK):
        some, there = raw[start : start + BLOCK], out[start : start + BLOCK]
        part, part_moment = np.float32(0), np.float32(0)
        for j in range(some.size):
            e = exp2(max(np.float32(unit * (some[j] - best) - lead), np.float32(-127)))
            there[j] = e
            part += e
            part_moment += e * max(np.float32(some[j]), np.float32(OUTSIDE))  # not 0·∞
        z += np.float64(part)
        moment += np.float64(part_moment)
    return z, moment


@_inlined
def _gradients(
    kind: int,
    weights: Array,
    queries: Array,
    row: int,
    keys: Array,
    base: int,
    p: float,
    dqueries: Array,
    dkeys: Array,
) -> None:
    """Add Σ_j w·∂s/∂q and Σ_i w·∂s/∂k, up to the factor scale or −scale·p."""
    length, (n, size) = weights.shape[1], keys.shape
    power = np.float32(p - 1)
    start = 0
    while start < length:
        at = (base + start) % size
        stop = start + min(BLOCK, length - start, size - at)
        a, b = weights[0, start:stop], weights[1, start:stop]
        c, d = weights[2, start:stop], weights[3, start:stop]
        for i in range(n):
            k, dk = keys[i, at : at + stop - start], dkeys[i, at : at + stop - start]
            q, r = queries[row, i], queries[row + 1, i]
            s, t = queries[row + 2, i], queries[row + 3, i]
            dq = dr = ds = dt = np.float32(0)
            for j in range(stop - start):
                u = k[j]
                if kind == DOT:
                    dq += a[j] * u
                    dr += b[j] * u
                    ds += c[j] * u
                    dt += d[j] * u
                    dk[j] += (a[j] * q + b[j] * r) + (c[j] * s + d[j] * t)
                else:
                    ga, gb = _slope(kind, a[j], q - u, power), _slope(kind, b[j], r - u, power)
                    gc, gd = _slope(kind, c[j], s - u, power), _slope(kind, d[j], t - u, power)
                    dq += ga
                    dr += gb
                    ds += gc
                    dt += gd
                    dk[j] -= (ga + gb) + (gc + gd)
            dqueries[row, i] += dq
            dqueries[row + 1, i] += dr
            dqueries[row + 2, i] += ds
            dqueries[row + 3, i] += dt
        start = stop


@_inlined
def _add(weights: Array, base: int, totals: Array) -> None:
    """Add the weights of the rows to the totals of their keys."""
    length, size = weights.shape[1], len(totals)
    start = 0
    while start < length:
        at = (base + start) % size
        stop = start + min(length - start, size - at)
        a, b = weights[0, start:stop], weights[1, start:stop]
        c, d = weights[2, start:stop], weights[3, start:stop]
        some = totals[at : at + stop - start]
        for j in range(stop - start):
            some[j] += (a[j] + b[j]) + (c[j] + d[j])
        start = stop


@_inlined
def _similarity(kind: int, q: Any, k: Any, p: Any) -> Any:
    """One coordinate's share of the similarity, without the scale."""
    if kind == DOT:
        return q * k
    d = abs(q - k)
    if kind == 1:
        return -d
    if kind == 2:
        return -(d * d)
    if kind == 3:
        return -(d * d * d)
    if kind == OTHER:
        return -power_of(d, p)
    return -(d**p)


@_inlined
def _slope(kind: int, weight: Any, d: Any, power: Any) -> Any:
    """weight·|d|^power·sign(d), and 0 at d = 0."""
    if kind == 1:
        return math.copysign(weight, d) if d != 0 else np.float32(0)
    if kind == 2:
        return weight * d
    if kind == 3:
        return weight * (abs(d) * d)
    return math.copysign(weight * power_of(abs(d), power), d)
