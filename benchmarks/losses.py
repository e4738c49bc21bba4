"""The fused losses against the same formula with every pair in memory: time and memory."""

from __future__ import annotations

import resource
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

POWERS = (None, 1, 2, 3)


def cost(kind: str, p: float | None, batch: int, repeat: int = 1) -> tuple[float, float]:
    """Seconds (the best of some) and extra bytes of one loss of 10-dimensional codes and its gradient.

    To be run in a fresh process: the memory is what the peak grows by.
    """
    import torch

    from identica.losses._fused import mean_log_sum_exp

    def fused(codes: Any) -> Any:
        one = torch.tensor(1.0)
        return mean_log_sum_exp(codes, codes, None, one, p=p, first=0, count=len(codes))

    def materialised(codes: Any) -> Any:
        if p is None:
            return (codes @ codes.T).logsumexp(1).mean()
        return (-(codes[:, None] - codes[None]).abs().pow(p).sum(-1)).logsumexp(1).mean()

    def seconds(size: int) -> float:
        codes = torch.rand(size, 10, generator=torch.Generator().manual_seed(0)).requires_grad_()
        start = time.perf_counter()
        {"fused": fused, "materialised": materialised}[kind](codes).backward()
        return time.perf_counter() - start

    seconds(512)  # loads the compiled code and starts the threads
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    best = min(seconds(batch) for _ in range(repeat))
    return best, 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)


def fresh(*arguments: Any) -> tuple[float, float]:
    """The cost measured in a process of its own."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(cost, *arguments).result()


def against_materialised(batch: int = 6144) -> list[dict[str, Any]]:
    """A record for each similarity: seconds and bytes of both, and the ratio of the times."""
    records = []
    for p in POWERS:
        fresh("fused", p, 512)  # compiles, which takes memory of its own
        ours, ours_bytes = fresh("fused", p, batch, 7)
        theirs, theirs_bytes = fresh("materialised", p, batch, 3)
        records.append(
            {"p": p, "batch": batch, "fused": ours, "materialised": theirs, "ratio": theirs / ours}
            | {"fused_bytes": ours_bytes, "materialised_bytes": theirs_bytes}
        )
    return records


def growth(batches: tuple[int, ...] = (1024, 2048, 4096, 8192, 32768)) -> list[dict[str, Any]]:
    """A record for each batch size: seconds and bytes of the fused loss with p = 1."""
    fresh("fused", 1, 512)
    records = []
    for batch in batches:
        seconds, extra = fresh("fused", 1, batch, 20 if batch < 8192 else 3)
        records.append({"batch": batch, "fused": seconds, "fused_bytes": extra})
    return records


def with_potential(
    batches: tuple[int, ...] = (1024, 6144), repeat: int = 30
) -> list[dict[str, Any]]:
    """A record for each similarity and batch: seconds of InfoNCE and its gradient without a potential,
    with the terms of one given, and with those of `Potential` computed and learnt, in turn."""
    import torch

    from identica import GeneralizedNormal, InfoNCE, Potential, VonMisesFisher

    network = Potential(10)
    records = []
    for batch, p in [(batch, p) for batch in batches for p in POWERS]:
        family = VonMisesFisher(1.0) if p is None else GeneralizedNormal(p)
        loss = InfoNCE(family, negatives_from="positives")
        source = torch.Generator().manual_seed(0)
        h, h_pos = (torch.rand(batch, 10, generator=source).requires_grad_() for _ in range(2))
        terms = torch.randn(batch, 2, generator=source).requires_grad_()
        ways = {"plain": None, "given": lambda codes, terms=terms: terms, "learnt": network}
        best = dict.fromkeys(ways, float("inf"))
        for turn in range(repeat + 2):
            for name, potential in ways.items():
                start = time.perf_counter()
                loss(h, h_pos, potential).backward()
                if turn >= 2:  # compiled, and threads started
                    best[name] = min(best[name], time.perf_counter() - start)
        records.append({"p": p, "batch": batch, **best})
    return records
