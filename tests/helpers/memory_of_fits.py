"""Fit to memory-mapped files of a hundred thousand and of ten million rows, and print the peak memory after
each, in MiB: python memory_of_fits.py FILE."""

import json
import resource
import sys

import numpy as np
import torch

from identica import ContrastiveICA


def peak(path, rows):
    block = np.random.default_rng(0).normal(size=(10_000, 8)).astype(np.float32)
    with open(path, "wb") as file:
        for _ in range(rows // len(block)):
            file.write(block.data)
    x = np.memmap(path, np.float32, mode="r", shape=(rows, 8))
    ica = ContrastiveICA(2, steps=5, folder=path + ".fits").fit(x)
    assert np.isfinite(ica.score(x))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(json.dumps([peak(sys.argv[1], 100_000), peak(sys.argv[1], 10_000_000)]))
