"""Timing of a function, and the machine's own speed to compare with."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch


def seconds(function: Callable[[], Any], *, repeat: int = 5, warm_up: int = 1) -> float:
    """The best of several runs, after the ones that compile and fill caches."""
    for _ in range(warm_up):
        function()
    best = float("inf")
    for _ in range(repeat):
        start = time.perf_counter()
        function()
        best = min(best, time.perf_counter() - start)
    return best


def matmul_rate() -> float:
    """float32 operations per second of a large matrix product."""
    a, b = torch.randn(2, 2048, 2048).unbind()
    return 2 * 2048**3 / seconds(lambda: a @ b, repeat=10, warm_up=3)
