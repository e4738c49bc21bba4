"""One process of a group (see test_distributed.py): helpers.one_of_several gradients|leave|train|tell OUT"""

import atexit
import json
import os
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch.nn.parallel import DistributedDataParallel

from identica import (
    MLP,
    AlignUniform,
    Box,
    Contrastive,
    ContrastiveModel,
    Euclidean,
    GenerativeProcess,
    InfoNCE,
    InputError,
    InvertibleMLP,
    Laplace,
    Normal,
    Potential,
    Sphere,
    Training,
    Uniform,
    VonMisesFisher,
    distributed,
    train,
)
from identica.distributed import own_part, processes
from identica.errors import DamagedError
from identica.families import Family
from identica.spaces import Space

LOSSES: dict[str, tuple[Space, Family, dict[str, Any] | None]] = {
    "vmf, symmetric": (Sphere(3), VonMisesFisher(2.0), {"symmetric": True}),
    "laplace, self-pair, weighed": (
        Box(3),
        Laplace(1.0),
        {"self_negative": True, "effective_negatives": 500},
    ),
    "normal, few negatives": (Euclidean(3), Normal(1.0), {"negatives": 7}),
    "normal, other positives": (
        Euclidean(3),
        Normal(1.0),
        {"negatives_from": "positives", "symmetric": True},
    ),
    "laplace, potential": (Euclidean(3), Laplace(1.0), {"symmetric": True, "negatives": 9}),
    "normal, other positives, potential": (
        Euclidean(3),
        Normal(1.0),
        {"negatives_from": "positives", "symmetric": True},
    ),
    "align and uniform": (Euclidean(3), Normal(1.0), None),
}


def make(name):
    space, family, options = LOSSES[name]
    potential = Potential(3, (8,), seed=2) if "potential" in name else None
    if potential is not None:
        last = potential.network.layers[-1]
        assert isinstance(last, torch.nn.Linear)
        torch.nn.init.ones_(last.weight)
    model = ContrastiveModel(space, family, MLP(3, 3, (16,), seed=1), potential=potential)
    loss = AlignUniform() if options is None else InfoNCE(family, **options)
    return Contrastive(model, loss)


def sample(size, *, generator):
    g = InvertibleMLP(3, seed=0, draws=10)
    return GenerativeProcess(Box(3), Uniform(), Normal(0.2), g).sample(size, generator=generator)


def gradients(size):
    found: dict[str, torch.Tensor] = {}
    for name in LOSSES:
        objective = make(name)
        network = DistributedDataParallel(objective) if size > 1 else objective
        network(own_part(sample(64, generator=5))).backward()
        found |= {
            f"{name}: {k}": p.grad for k, p in objective.named_parameters() if p.requires_grad
        }
    return found


class Foreign(ValueError):
    """An error that only the first process knows."""


TOLD = [
    {"a": [1, 2.5, None, True, float("inf")], "b": ("text", {3: "ü"})},
    [torch.arange(6.0).reshape(2, 3).T, torch.tensor([True]), torch.zeros(0, 2)],
    DamagedError("torn"),
    InputError("wrong"),
    Foreign("odd"),
    partial,  # a function is no data
]


def tell(value):
    """What comes of a value, or an error, that the first process alone has."""

    def make():
        if distributed.group()[0] > 0:
            raise AssertionError("only the first process makes it")
        if isinstance(value, Exception):
            raise value
        return value

    try:
        return distributed.from_first(make)
    except Exception as error:
        return error


def leave(rank):
    """A network that outlives its group, one of whose threads is yet to free an object of Python."""
    network = DistributedDataParallel(torch.nn.Linear(1, 1))
    torch._C._stash_obj_in_tls("freed by that thread", object())
    if rank == 1:
        time.sleep(1)  # until then, the first process waits
    torch.distributed.all_reduce(torch.zeros(1), async_op=True)
    return network


def threads():
    """The names of the threads of this process, those of libraries among them."""
    return [path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm")]


def main(what, out, pause=0.0):
    torch.set_num_threads(1)
    with processes() as (rank, size):
        if what == "gradients":
            found = gradients(size)
            if rank == 0:
                torch.save(found, out)
            return
        if what == "tell":
            Path(f"{out}{rank}").write_text(json.dumps([repr(tell(each)) for each in TOLD]))
            return
        if what == "leave":
            network = leave(rank)
            Path(f"{out}{rank}").write_text(type(network).__name__)
            return

        def slow(number, *, generator):
            time.sleep(pause)
            return sample(number, generator=generator)

        how = Training(steps=40, batch=64, score_every=5, checkpoint_every=5, optimizer="adam")
        train(make("vmf, symmetric"), slow, how, out=Path(out))


def ended():
    """A thread that outlives the interpreter aborts the process, if it lets go of a tensor by then."""
    if left := [name for name in threads() if "gloo" in name]:
        print(f"threads that outlive the program: {left}", file=sys.stderr, flush=True)
        os._exit(1)


if __name__ == "__main__":
    atexit.register(ended)  # the first one, and so the last to be called
    main(sys.argv[1], sys.argv[2], float(os.environ.get("PAUSE", "0")))
