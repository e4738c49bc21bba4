"""Alignment and uniformity by themselves, with the defaults; see test_infonce.py for the other options."""

import math

import pytest
import torch

from identica import AlignUniform


def test_by_default_it_is_half_alignment_half_uniformity_by_the_sum_of_distances():
    rng = torch.Generator().manual_seed(0)
    h, h_pos = torch.randn(2, 7, 3, generator=rng, dtype=torch.float64).tolist()

    def far(a, b):
        return sum(abs(x - y) for x, y in zip(a, b, strict=True))

    alignment = sum(far(a, b) for a, b in zip(h, h_pos, strict=True)) / 7
    uniformity = 0.0
    for i, a in enumerate(h):
        others = [b for k, b in enumerate(h) if k != i]
        uniformity += math.log(sum(math.exp(-far(a, b)) for b in others) / 6) / 7
    found = AlignUniform()(torch.tensor(h).double(), torch.tensor(h_pos).double()).item()
    assert found == pytest.approx(uniformity / 2 + alignment / 2, rel=1e-5)
