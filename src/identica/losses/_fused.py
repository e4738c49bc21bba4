"""Mean log-sum-exp of many similarities on the CPU: value and gradients in one pass, memory linear.

The forward pass already knows the gradient of a scalar up to one factor, so it takes a few queries at a
time through similarities, exponentials and gradients while they are in cache.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from identica._validate import positive
from identica.errors import InputError
from identica.losses._kernels import DOT, OTHER, ROWS, kernel

PARTS = 4  # of the work for each thread, as long as they need no more than
SUMS = 1 << 24  # numbers for sums over queries
SLICE = 1 << 15  # pairs below which a second thread is not worth its start


def mean_log_sum_exp(
    queries: Tensor,
    keys: Tensor,
    positives: Tensor | None,
    scale: Tensor,
    biases: Tensor | None = None,
    *,
    p: float | None,
    first: int,
    count: int,
    slow: Callable[..., Tensor] | None = None,
) -> Tensor:
    """The sum of `_negatives`, with s_ij = scale·⟨q_i, k_j⟩ if p is None and −scale·Σ_d |q_id − k_jd|^p
    otherwise (whose slope counts as 0 where q_id = k_jd).

    Differentiable in all tensors, but the kernel only once: a graph of the gradients (`create_graph=True`)
    is made by `slow`, the same function in torch. With the same number of threads, which is torch's, the
    same bits come out each time. Where an input is not finite, the result is NaN.

    Args:
        queries, keys: A×n and K×n, float32 on the CPU; they may be the same tensor.
        positives, biases: of shape A and K; without positives that term is left out.
        scale: 0-dimensional, above 0.
        p: exponent above 0, or None for the dot product.
        first, count: offset of the window from the query's own index, and its number of keys.
        slow: the same as a function of the five tensors; without it, a graph of the gradients is
            refused.

    >>> codes = torch.tensor([[0.0], [1.0], [3.0]])
    >>> mean_log_sum_exp(codes, codes, None, torch.tensor(1.0), p=1, first=1, count=1)
    tensor(-2.)
    """
    named = {"queries": queries, "keys": keys, "positives": positives, "biases": biases}
    for name, x in named.items():
        if x is not None and (x.dtype != torch.float32 or x.device.type != "cpu"):
            raise InputError(f"{name} must be float32 on the CPU, got {x.dtype} on {x.device}")
    positive("scale", scale.item())
    tensors = (queries, keys, positives, scale, biases)
    if torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in tensors):
        return _MeanLogSumExp.apply(*tensors, p, first, count, slow)  # type: ignore[no-untyped-call]
    value, *_ = _evaluate(tensors, p, first, count, gradient=False)
    return value


class _MeanLogSumExp(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *arguments: Any) -> Tensor:
        *tensors, p, first, count, ctx.slow = arguments
        value, *gradients = _evaluate(tensors, p, first, count, gradient=True)
        ctx.save_for_backward(*tensors, *gradients)
        return value

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        inputs, gradients = ctx.saved_tensors[:5], ctx.saved_tensors[5:]
        if torch.is_grad_enabled():  # gradients are to be differentiated in turn
            gradients = _differentiable(ctx.slow, inputs, ctx.needs_input_grad[:5])
        wanted = zip(gradients, ctx.needs_input_grad[:5], strict=True)
        return *(g * upstream if needed else None for g, needed in wanted), None, None, None, None


# --- for torch.compile, which cannot look into it ---------------------------------------------------


@torch.library.custom_op(
    "identica::mean_log_sum_exp",
    mutates_args=(),
    schema="(Tensor queries, Tensor keys, Tensor? positives, Tensor scale, Tensor? biases, float? p, "
    "SymInt first, SymInt count) -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
)
def opaque(*arguments: Any) -> tuple[Tensor, ...]:
    """The value of `mean_log_sum_exp` and its gradients, as one operator; empty where there are none."""
    *tensors, p, first, count = arguments
    results = _evaluate(tensors, p, first, count, gradient=True)
    return tuple(torch.empty(0) if each is None else each.contiguous() for each in results)


@opaque.register_fake
def _(*arguments: Any) -> tuple[Tensor, ...]:
    tensors = arguments[:5]
    like = (torch.empty(0) if each is None else each.new_empty(each.shape) for each in tensors)
    return tensors[0].new_empty(()), *like


def _keep(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(*output[1:])


def _scale(ctx: Any, upstream: Tensor, *_: Any) -> tuple[Tensor | None, ...]:
    wanted = zip(ctx.saved_tensors, ctx.needs_input_grad[:5], strict=True)
    return *(g * upstream if needed else None for g, needed in wanted), None, None, None


opaque.register_autograd(_scale, setup_context=_keep)

# ----------------------------------------------------------------------------------------------------


def _differentiable(slow: Any, inputs: Any, needed: Any) -> list[Tensor | None]:
    """Gradients by torch, with a graph."""
    if slow is None:
        raise RuntimeError("the fused kernel has no second derivatives: use float64")
    inputs = [None if x is None else x.view_as(x) for x in inputs]  # queries may be the keys
    wanted = [x for x, need in zip(inputs, needed, strict=True) if need]
    gradients = iter(torch.autograd.grad(slow(*inputs), wanted, create_graph=True))
    return [next(gradients) if need else None for need in needed]


def _evaluate(
    tensors: Sequence[Any], p: float | None, first: int, count: int, *, gradient: bool
) -> tuple[Any, ...]:
    """The value and its gradients in all tensors (zeros unless asked for)."""
    queries, keys, positives, scale, biases = tensors
    (a, n), size, factor = queries.shape, len(keys), scale.item()
    rows, width = -(-a // ROWS) * ROWS, n + n % 2  # zeros fill up the last rows and an odd column
    q = np.zeros((rows, width), np.float32)
    q[:a, :n] = queries.detach().numpy()
    k = np.zeros((width, size), np.float32)  # a coordinate's keys side by side: loops over keys
    k[:n] = keys.detach().numpy().T
    plus = np.full(a, -np.inf, np.float32)
    if positives is not None:
        plus[:] = positives.detach().numpy()
    bias = np.zeros(size) if biases is None else biases.detach().double().numpy()
    finite = all(np.isfinite(x).all() for x in (q, k, bias))
    if not (finite and (plus < np.inf).all()):
        nan = (None if x is None else torch.full_like(x, torch.nan) for x in tensors)
        return queries.new_tensor(torch.nan), *nan
    # What the terms of a dot product may reach before they cancel; distances have one sign.
    reach = np.zeros(a, np.float32)
    if p is None:
        reach[:] = (queries.detach().norm(dim=1) * keys.detach().norm(dim=1).max()).numpy()
    # biases may cancel too, but not what they have in common, which comes back in the end
    middle = np.float32((bias.max() + bias.min()) / 2)
    bias = (bias - middle) / factor
    plus -= middle
    reach += np.float32(abs(bias).max())

    # More parts than threads, so that a slow thread holds up little. Each part has its own sum for
    # the keys, so that who did what leaves no trace in the result.
    threads = max(1, min(torch.get_num_threads(), a * count // SLICE))
    parts = threads if threads == 1 else max(threads, min(PARTS * threads, SUMS // k.size))
    parts = min(parts, rows // ROWS)
    edges = [rows // ROWS * t // parts * ROWS for t in range(parts + 1)]
    dq, dplus = np.zeros_like(q), np.zeros_like(plus)
    dk = np.zeros((parts, *k.shape) if gradient else (parts, 0, 0), np.float32)
    db = np.zeros((parts, 0 if biases is None or not gradient else size), np.float32)
    sums = np.zeros((parts, 2))
    sweep = kernel(DOT if p is None else int(p) if p in (1, 2, 3) else OTHER)
    power, window, ticket = float(p or 0), (first % size, count), itertools.count()

    def work() -> None:
        while (t := next(ticket)) < parts:
            part = (edges[t], edges[t + 1])
            where = dq, dk[t], db[t], dplus
            sums[t] = sweep(q, k, bias, plus, reach, factor, power, window, part, gradient, *where)

    helpers = [_pool().submit(work) for _ in range(threads - 1)]
    work()
    for helper in helpers:
        if not helper.cancel():  # nothing is left for one that has not begun
            helper.result()
    value, derivative = sums.sum(axis=0) / a
    total = db.sum(axis=0, dtype=np.float64) / a
    if len(total):
        derivative -= bias @ total  # they do not grow with the scale
    slope = factor / a * (1 if p is None else -p)
    return (
        torch.tensor(value + middle, dtype=queries.dtype),
        torch.from_numpy(dq[:a, :n] * np.float32(slope)),
        torch.from_numpy(dk.sum(axis=0)[:n].T * np.float32(slope)),
        None if positives is None else torch.from_numpy(dplus / np.float32(a)),
        torch.full_like(scale, derivative),
        None if biases is None else torch.from_numpy(total.astype(np.float32)),
    )


@cache
def _pool() -> ThreadPoolExecutor:
    # Threads of our own, not numba's: those abort the process when two callers or a fork meet.
    return ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="identica-fused")


if hasattr(os, "register_at_fork"):  # a forked child inherits the pool but not its threads
    os.register_at_fork(after_in_child=_pool.cache_clear)
