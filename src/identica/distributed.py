"""Distributed training: each process encodes its part of every batch, and negatives come from all parts.

    torchrun --nproc-per-node 2 script.py        # script: with processes(): train(…)

All processes draw the same batch and keep their own rows of it, so the result does not depend on their
number, with two exceptions: on the CPU, batch statistics are those of each process, and autoencoders draw
the same noise in each.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from identica import checkpoints
from identica.errors import DamagedError, InputError, LostProcessError
from identica.process import Pool, Walk

T = TypeVar("T")
_joined: list[Any] = []  # groups, which must be freed before the interpreter ends
# Others wait while the first process evaluates. A dead process is detected without this timeout.
PATIENCE = timedelta(hours=6)
ERRORS: dict[str, type[Exception]] = {  # raised as the same type in all processes
    error.__name__: error for error in (InputError, DamagedError)
}


@contextmanager
def processes() -> Iterator[tuple[int, int]]:
    """Join the group that torchrun started, and give this process's number and how many there are.

    If there are GPUs, each process of a machine uses its own. Outside torchrun, the group has a single
    process and nothing happens.

    >>> with processes() as (rank, size):
    ...     print(rank, size)
    0 1
    """
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield 0, 1
        return
    backend = "gloo"
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
        backend = "cpu:gloo,cuda:nccl"  # small networks and numbers stay on the CPU
    # DistributedDataParallel imports this module, whose default arguments are the group that exists by
    # then. Imported now, they are None. Otherwise the group could never be freed, and its threads would
    # outlive the interpreter: the last tensor that one of them lets go would abort the process.
    from torch.distributed.nn import functional  # noqa: F401

    dist.init_process_group(backend, timeout=PATIENCE)
    # A DistributedDataParallel that outlives this context holds the group as well. Its destructor would
    # wait for the threads of the group without releasing the GIL, which they need to free the last
    # gradients: a deadlock. The destructor of a reference from Python releases the GIL, so one is kept
    # until the program ends.
    _joined.append(dist.group.WORLD)
    atexit.register(_joined.clear)
    try:
        yield group()
    finally:
        dist.destroy_process_group()


def group() -> tuple[int, int]:
    """The number of this process, and how many there are."""
    if dist.is_available() and dist.is_initialized():
        return dist.get_rank(), dist.get_world_size()
    return 0, 1


def gather(codes: Tensor) -> tuple[Tensor, int]:
    """The codes of all processes (with gradients), and where those of this one (N×n) begin."""
    rank, size = group()
    if size == 1:
        return codes, 0
    return _AllGather.apply(codes), rank * len(codes)  # type: ignore[no-untyped-call]


class _AllGather(torch.autograd.Function):
    """Concatenate the tensors of all processes; the backward pass sums their gradients."""

    @staticmethod
    def forward(ctx: Any, codes: Tensor) -> Tensor:
        rank, size = group()
        everything = codes.new_empty(size * len(codes), *codes.shape[1:])
        dist.all_gather(list(everything.chunk(size)), codes.contiguous())
        ctx.rows = slice(rank * len(codes), (rank + 1) * len(codes))
        return everything

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        if torch.is_grad_enabled():  # a graph of the gradients would end at this process
            raise RuntimeError("there are no second derivatives across processes")
        gradient = gradient.contiguous().clone()
        dist.all_reduce(gradient)
        return gradient[ctx.rows]


def own_part(batch: Any) -> Any:
    """This process's rows of a batch, a named tuple of tensors."""
    rank, size = group()
    if size == 1:
        return batch
    rows = len(batch[0])
    if rows % size:
        raise InputError(f"batch must be a multiple of the {size} processes, got {rows}")
    if any(len(part) != rows for part in batch) or isinstance(batch, Pool | Walk):
        raise InputError("batch must hold pairs row by row to be shared by several processes")
    part = slice(rank * rows // size, (rank + 1) * rows // size)
    return type(batch)(*(tensor[part] for tensor in batch))


def mean(value: float) -> float:
    """The mean of a number over all processes."""
    _, size = group()
    if size == 1:
        return value
    total = torch.tensor(value, dtype=torch.float64)
    dist.all_reduce(total)
    return total.item() / size


def from_first(make: Callable[[], T]) -> T:
    """Call a function in the first process, and return its result, or raise its error, in all processes.

    The result may be nested dicts and lists of tensors and plain values; nothing is pickled. An error
    other than an `InputError` becomes a `RuntimeError` in the other processes.

    >>> from_first(lambda: 3)
    3
    """
    rank, size = group()
    if size == 1:
        return make()
    if rank > 0:
        made, kind, message = checkpoints.unpack(_broadcast(b""))
        if kind is not None:
            raise ERRORS.get(kind, RuntimeError)(message)
        return made
    try:
        made = make()
        packed = checkpoints.pack((made, None, None))
    except Exception as error:
        kind, message = type(error).__name__, str(error)
        if kind not in ERRORS:
            message = f"the first process failed: {kind}: {message}"
        _broadcast(checkpoints.pack((None, kind, message)))
        raise
    _broadcast(packed)
    return made


def _broadcast(content: bytes) -> bytes:
    """The bytes of the first process, in all of them."""
    try:
        length = torch.tensor(len(content))
        dist.broadcast(length, 0)
        buffer = torch.empty(int(length), dtype=torch.uint8)
        if content:
            buffer.copy_(torch.frombuffer(bytearray(content), dtype=torch.uint8))
        dist.broadcast(buffer, 0)
    except RuntimeError as error:
        raise LostProcessError(
            f"a process of the group was lost: start all of them again ({error})"
        ) from error
    return buffer.numpy().tobytes()
