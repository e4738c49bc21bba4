"""Train the small model in a folder, in a process of its own: python -m helpers.train_small OUT."""

import sys

import torch

from helpers.small import setup
from identica import Training, train

if __name__ == "__main__":
    torch.set_num_threads(1)
    process, _, objective = setup()
    settings = Training(steps=400, batch=64, score_every=50, checkpoint_every=10)
    train(objective, process.sample, settings, out=sys.argv[1])
