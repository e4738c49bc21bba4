"""Options of InfoNCE that go beyond the published loss: other negatives, a potential, a pull."""

import numpy as np
import pytest
import torch

from helpers.brute_force import FAMILIES, OPTIONS, brute_force, codes, potential
from identica import InfoNCE, InputError, Laplace, Normal, VonMisesFisher
from identica.losses import _negatives


@pytest.mark.parametrize("family", FAMILIES, ids=str)
@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("denominator", [True, False])
@pytest.mark.parametrize("negatives", [None, 4])
def test_the_other_positives_can_be_the_negatives(family, symmetric, denominator, negatives):
    h, h_pos = codes()
    loss = InfoNCE(
        family,
        0.6,
        negatives=negatives,
        positive_in_denominator=denominator,
        negatives_from="positives",
        symmetric=symmetric,
    )
    args = (family, 0.6, False, negatives, denominator, symmetric, "positives")
    expected = brute_force(h, h_pos, *args)
    assert loss(h, h_pos).item() == pytest.approx(expected, rel=1e-12)
    assert loss(h.float(), h_pos.float()).item() == pytest.approx(expected, rel=1e-5, abs=1e-5)


def test_with_the_other_positives_it_is_a_cross_entropy():
    """Of the whole batch as classes: the true class of each anchor is its own positive."""
    h, h_pos = codes()
    logits = Normal(0.8).pairwise(h, h_pos)
    expected = torch.nn.functional.cross_entropy(logits, torch.arange(len(h)))
    assert torch.allclose(InfoNCE(Normal(0.8), negatives_from="positives")(h, h_pos), expected)


def test_the_other_positives_exclude_some_options():
    with pytest.raises(InputError, match="negatives_from must be one of anchors, positives"):
        InfoNCE(Laplace(1.0), negatives_from="positive")
    with pytest.raises(InputError, match="self_negative must be False"):
        InfoNCE(Laplace(1.0), self_negative=True, negatives_from="positives")
    several = torch.zeros(7, 4, 3, dtype=torch.float64)
    loss = InfoNCE(Laplace(1.0), positive_in_denominator=False, negatives_from="positives")
    with pytest.raises(InputError, match='need negatives_from="anchors"'):
        loss(codes()[0], several)


@pytest.mark.parametrize("family", FAMILIES, ids=str)
@pytest.mark.parametrize("source", ["anchors", "positives"])
@pytest.mark.parametrize("block", [1 << 22, 30], ids=["one block", "small blocks"])
def test_a_potential_is_added_to_each_key(family, source, block, monkeypatch):
    monkeypatch.setattr(_negatives, "BLOCK", block)
    h, h_pos = codes()
    b, b_reversed = lambda x: np.sin(x).sum(), lambda x: 2 - np.square(x).sum()
    for self_negative, negatives, denominator, symmetric in OPTIONS:
        if self_negative and source == "positives":
            continue
        loss = InfoNCE(
            family,
            0.6,
            self_negative,
            negatives,
            positive_in_denominator=denominator,
            negatives_from=source,
            symmetric=symmetric,
        )
        args = (family, 0.6, self_negative, negatives, denominator, symmetric, source)
        expected = brute_force(h, h_pos, *args, b, b_reversed)
        assert loss(h, h_pos, potential).item() == pytest.approx(expected, rel=1e-12)
        fast = loss(h.float(), h_pos.float(), potential).item()
        assert fast == pytest.approx(expected, rel=1e-5, abs=1e-5)


def test_a_potential_counts_for_several_positives_and_for_the_self_pair():
    h, h_pos = codes()
    loss = InfoNCE(Normal(0.8), positive_in_denominator=False, negatives=3)
    several = torch.stack([h_pos, h_pos + 0.1, h_pos - 0.2], 1)
    one_by_one = torch.stack([loss(h, several[:, k], potential) for k in range(3)]).mean()
    assert torch.allclose(loss(h, several, potential), one_by_one)
    plain = InfoNCE(Normal(0.8), self_negative=True)
    weighed = InfoNCE(Normal(0.8), self_negative=True, effective_negatives=7)
    assert torch.allclose(weighed(h, h_pos, potential), plain(h, h_pos, potential))


def test_a_constant_potential_changes_nothing():
    h, h_pos = codes()
    for options in ({}, {"negatives_from": "positives", "symmetric": True}):
        loss = InfoNCE(Laplace(0.7), **options)
        shifted = loss(h, h_pos, lambda x: torch.full((len(x), 2), -30.0))
        assert torch.allclose(shifted, loss(h, h_pos))


# --- positives that are close together --------------------------------------------------------------


def on_sphere(seed=0, spread=0.05):
    generator = torch.Generator().manual_seed(seed)
    h, noise = torch.randn(2, 12, 4, generator=generator, dtype=torch.float64)
    return [torch.nn.functional.normalize(x, dim=1) for x in (h, h + spread * noise)]


def test_a_pull_sets_in_slowly_and_is_that_of_the_concentration():
    """Its gradient is that of gain·(n − 1)/2·log E‖h − h̃‖², less the pull that the loss has itself."""
    h, h_pos = (x.requires_grad_() for x in on_sphere())
    loss, plain = InfoNCE(VonMisesFisher(10.0), pull=(0.5, 2, 6)), InfoNCE(VonMisesFisher(10.0))
    for call in range(8):
        apart = (h - h_pos).square().sum(1).mean()
        part = 0.5 * min(1.0, max(0.0, (call - 2) / 4))
        missing = part * 3 / 2 * apart.log() - 10 / 2 * apart
        expected = torch.autograd.grad(plain(h, h_pos) + (missing if part else 0.0), (h, h_pos))
        found = torch.autograd.grad(loss(h, h_pos), (h, h_pos))
        assert part == 0 or part * 3 / apart.item() > 10  # there is something missing
        for x, y in zip(found, expected, strict=True):
            assert torch.allclose(x, y)
    assert torch.equal(loss.eval()(h, h_pos), plain(h, h_pos))  # scoring is as ever


def test_a_pull_never_repels_and_resumes():
    h, h_pos = on_sphere(spread=1.0)  # far apart: the loss pulls enough by itself
    loss, plain = InfoNCE(VonMisesFisher(10.0), pull=(0.5, 0, 1)), InfoNCE(VonMisesFisher(10.0))
    for _ in range(3):
        assert torch.equal(loss(h, h_pos), plain(h, h_pos))
    h, h_pos = on_sphere()
    half = InfoNCE(VonMisesFisher(10.0), pull=(0.5, 1, 5))
    for _ in range(3):
        half(h, h_pos)
    resumed = InfoNCE(VonMisesFisher(10.0), pull=(0.5, 1, 5))
    resumed.load_state_dict(half.state_dict())
    assert torch.equal(resumed(h, h_pos), half(h, h_pos))


@pytest.mark.parametrize("bad", [(0.5, 3), (0.5, 3, 3), (0.0, 1, 2), (0.5, -1, 2), "half"])
def test_a_bad_pull_is_named(bad):
    with pytest.raises(InputError, match="pull"):
        InfoNCE(VonMisesFisher(1.0), pull=bad)


def test_a_pull_needs_a_dot_product_and_one_positive():
    with pytest.raises(InputError, match="pull needs a dot product"):
        InfoNCE(Normal(1.0), pull=(0.5, 1, 2))
    loss = InfoNCE(VonMisesFisher(1.0), pull=(0.5, 1, 2), positive_in_denominator=False)
    with pytest.raises(InputError, match="no pull"):
        loss(torch.ones(4, 3), torch.ones(4, 2, 3))
