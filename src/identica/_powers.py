"""Powers of float32 numbers in compiled code, as polynomials: loops over them are vectorised."""

from __future__ import annotations

from typing import Any

import numpy as np

from identica._compiled import compiler

# Only fused multiply-adds: the formulas depend on their order.
_inlined = compiler("contract", forceinline=True)


@_inlined
def exp2(t: Any) -> Any:
    """2^t in float32 for −127 ≤ t < 128, where −127 gives 0."""
    whole = np.rint(t)
    return _two_to(whole, t - whole)


@_inlined
def power_of(x: Any, p: Any) -> Any:
    """x^p in float32 for x ≥ 0, with 0 at 0 whatever p: x = 2^e·m, log2(m) by the series of artanh."""
    one, bits = np.float32(1), np.float32(x).view(np.int32)
    e = np.int32(np.int32(bits - np.int32(0x3F3504F3)) >> np.int32(23))  # √½ ≤ m < √2
    m = np.int32(bits - np.int32(e << np.int32(23))).view(np.float32)
    u = (m - one) / (m + one)
    v = u * u
    log = np.float32(0.32059890)  # 2/ln 2 over 9, 7, 5, 3, 1
    log = log * v + np.float32(0.41219859)
    log = log * v + np.float32(0.57707802)
    log = log * v + np.float32(0.96179669)
    log = log * v + np.float32(2.88539008)
    log = log * u * p
    few = np.int32(np.float32(p).view(np.int32) & np.int32(-4096)).view(np.float32)
    exact, log = few * np.float32(e), (p - few) * np.float32(e) + log  # few bits: no rounding
    whole = np.rint(min(max(exact + log, np.float32(-126)), np.float32(127)))
    rest = min(max((exact - whole) + log, -one), one)
    return _two_to(whole, rest) if x >= np.float32(1.2e-38) else np.float32(0)


@_inlined
def _two_to(whole: Any, x: Any) -> Any:
    """2^(whole + x) for |x| ≤ ½: a polynomial (within 4e-9) times what the bits of the exponent say."""
    y = np.float32(1.5238006e-4)
    y = y * x + np.float32(1.33911369e-3)
    y = y * x + np.float32(9.61884111e-3)
    y = y * x + np.float32(5.55035919e-2)
    y = y * x + np.float32(2.40226448e-1)
    y = y * x + np.float32(6.93147182e-1)
    y = y * x + np.float32(1)
    return y * np.int32((np.int32(whole) + np.int32(127)) << np.int32(23)).view(np.float32)
