"""The one sum behind the contrastive losses: similarities of each query with a window of keys.

    mean_i log( [e^{positive_i}] + Σ_{j ∈ W(i)} e^{s(q_i, k_j)/τ + [bias_j]} ),
    W(i) = {i + first + o mod K : 0 ≤ o < count}

in memory linear in the batch: by a fused kernel on the CPU in float32, else block by block in torch,
recomputing each block in the backward pass. Under the transforms of `torch.func`, and in what
`torch.compile` makes of the latter, it is one block, with all similarities in memory.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from identica.families import Family, Joint

BLOCK = 1 << 22  # entries of the largest temporary: rows × keys × dimensions


# queries A×n, keys K×n, positives A, 1/τ, biases K
Tensors = tuple[Tensor, Tensor, Tensor | None, Tensor, Tensor | None]


def mean_log_sum_exp(conditional: Family, tensors: Tensors, *, first: int, count: int) -> Tensor:
    """The mean above over the queries."""
    queries, keys, positives, inverse_tau, biases = tensors
    plain = queries.device.type == "cpu" and queries.dtype == torch.float32
    if not plain or isinstance(conditional, Joint) or transformed():
        return by_blocks(conditional, tensors, first=first, count=count)
    from identica.losses import _fused

    if torch.compiler.is_compiling():
        scale = conditional.precision * inverse_tau
        return _fused.opaque(queries, keys, positives, scale, biases, conditional.p, first, count)[
            0
        ]

    def slow(*tensors: Any) -> Tensor:
        queries, keys, positives, scale, biases = tensors
        same = queries, keys, positives, scale / conditional.precision, biases
        return by_blocks(conditional, same, first=first, count=count)

    scaled = queries, keys, positives, conditional.precision * inverse_tau, biases
    return _fused.mean_log_sum_exp(*scaled, p=conditional.p, first=first, count=count, slow=slow)


def transformed() -> bool:
    """Whether a transform of `torch.func` is active, which cannot trace the fused kernel."""
    return not torch.compiler.is_compiling() and torch._C._are_functorch_transforms_active()


def traced() -> bool:
    """Whether tensors may have no concrete values: under `torch.compile` and `torch.func`."""
    return torch.compiler.is_compiling() or transformed()


def full(codes: Tensor) -> Tensor:
    """Codes in single precision at least: sums of many exponentials need more digits than half has."""
    return codes.float() if codes.dtype in (torch.float16, torch.bfloat16) else codes


def without_autocast(codes: Tensor) -> torch.autocast:
    """A context in which arithmetic on the device of codes keeps their precision."""
    return torch.autocast("cpu" if codes.is_meta else codes.device.type, enabled=False)


def by_blocks(conditional: Family, tensors: Tensors, *, first: int, count: int) -> Tensor:
    """The same in plain torch, for any device, dtype and family."""
    queries, keys, positives, inverse_tau, biases = tensors

    def log_sums(
        rows: Tensor, block: Tensor, keys: Tensor, inverse_tau: Tensor, biases: Tensor | None
    ) -> Tensor:
        n_keys = len(keys)
        span = len(rows) + count - 1
        if span < n_keys:
            columns = (rows[0] + first + torch.arange(span, device=keys.device)) % n_keys
            keys = keys[columns]
            biases = None if biases is None else biases[columns]
        else:
            columns = torch.arange(n_keys, device=keys.device)
        similarity = conditional.pairwise(block, keys) * inverse_tau
        if biases is not None:
            similarity = similarity + biases
        if count < n_keys:
            outside = (columns - rows[:, None] - first) % n_keys >= count
            similarity = similarity.masked_fill(outside, -torch.inf)
        return similarity.logsumexp(dim=1)

    indices = torch.arange(len(queries), device=queries.device)
    if traced():  # blocks would be unrolled, and torch.func cannot recompute
        log_sum = log_sums(indices, queries, keys, inverse_tau, biases)
    else:
        size = max(1, BLOCK // (len(keys) * keys.shape[1]))
        sums = [
            checkpoint(log_sums, rows, block, keys, inverse_tau, biases, use_reentrant=False)
            for rows, block in zip(indices.split(size), queries.split(size), strict=True)
        ]
        log_sum = torch.cat(sums)
    if positives is not None:
        log_sum = torch.logaddexp(log_sum, positives)
    return log_sum.mean()
