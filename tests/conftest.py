"""Threads: the tests run side by side, so each process takes one."""

from __future__ import annotations

import torch

torch.set_num_threads(1)
