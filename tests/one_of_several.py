"""One process of a group: python one_of_several.py gradients|train OUT. See test_distributed.py."""

import os
import sys
import time
from pathlib import Path

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
    InvertibleMLP,
    Laplace,
    Normal,
    Sphere,
    Training,
    Uniform,
    VonMisesFisher,
    train,
)
from identica.distributed import own_part, processes

LOSSES = {
    "vmf, symmetric": (Sphere(3), VonMisesFisher(2.0), {"symmetric": True}),
    "laplace, self-pair, weighed": (
        Box(3),
        Laplace(1.0),
        {"self_negative": True, "effective_negatives": 500},
    ),
    "normal, few negatives": (Euclidean(3), Normal(1.0), {"negatives": 7}),
    "align and uniform": (Euclidean(3), Normal(1.0), None),
}


def make(name):
    space, family, options = LOSSES[name]
    model = ContrastiveModel(space, family, MLP(3, 3, (16,), seed=1))
    loss = AlignUniform() if options is None else InfoNCE(family, **options)
    return Contrastive(model, loss)


def sample(size, *, generator):
    g = InvertibleMLP(3, seed=0, draws=10)
    return GenerativeProcess(Box(3), Uniform(), Normal(0.2), g).sample(size, generator=generator)


def gradients(size):
    found = {}
    for name in LOSSES:
        objective = make(name)
        network = DistributedDataParallel(objective) if size > 1 else objective
        network(own_part(sample(64, generator=5))).backward()
        found |= {
            f"{name}: {k}": p.grad for k, p in objective.named_parameters() if p.requires_grad
        }
    return found


def main(what, out, pause=0.0):
    torch.set_num_threads(1)
    with processes() as (rank, size):
        if what == "gradients":
            found = gradients(size)
            if rank == 0:
                torch.save(found, out)
            return

        def slow(number, *, generator):
            time.sleep(pause)
            return sample(number, generator=generator)

        how = Training(steps=40, batch=64, score_every=5, checkpoint_every=5, optimizer="adam")
        train(make("vmf, symmetric"), slow, how, out=Path(out))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(os.environ.get("PAUSE", "0")))
