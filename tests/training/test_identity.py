"""What identifies a training run: sketches of tensors, and the options of modules."""

import math

import pytest
import torch
from torch import nn

from identica import Training
from identica.training.identity import LOOKED_AT, describe, differences, identify, sketch, structure


def test_a_sketch_is_the_norm_and_two_projections():
    values = torch.tensor([[3.0, -1.0], [0.5, 2.0]])
    flat = [3.0, -1.0, 0.5, 2.0]
    assert sketch(values) == pytest.approx(
        [
            math.sqrt(sum(x * x for x in flat)),
            sum(x * math.cos(k) for k, x in enumerate(flat)),
            sum(x * math.sin(2 * k) for k, x in enumerate(flat)),
        ]
    )


@pytest.mark.parametrize("size", [LOOKED_AT, LOOKED_AT + 1, 2 * LOOKED_AT, 3 * LOOKED_AT + 5])
def test_a_sketch_of_a_large_tensor_looks_at_every_nth_entry_for_an_odd_n(size):
    step = size // LOOKED_AT
    step += step % 2 == 0
    values = torch.ones(size)
    looked_at = len(range(0, size, step))
    assert sketch(values)[0] == pytest.approx(math.sqrt(looked_at))
    values[step] = 3.0
    assert sketch(values)[0] == pytest.approx(math.sqrt(looked_at + 8))


def identity(scale=1.0, **changes):
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2), nn.Dropout(changes.get("p", 0.5)))
    with torch.no_grad():
        network[0].weight.mul_(scale)
        network[1].running_mean.fill_(changes.get("mean", 1.0))
    batch = changes.get("batch", torch.arange(6.0).reshape(2, 3))
    settings = Training(steps=changes.get("steps", 10))
    return identify([settings], changes.get("seed", 0), network, (batch, "text", 3))


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({}, []),
        ({"scale": 1 + 2e-4}, []),  # rounding, for a large network on another machine
        ({"scale": 1.01}, ["initial state"]),
        ({"mean": -1.0}, []),  # of a buffer, the norm alone: eigenvectors may change their signs
        ({"mean": 1.1}, ["initial state"]),
        ({"batch": torch.arange(6.0).reshape(2, 3).flip(0)}, ["first batch"]),
        ({"batch": torch.arange(6.0).reshape(2, 3) * (1 + 2e-4)}, []),
        ({"p": 0.25}, ["objective"]),
        ({"steps": 11}, ["training"]),
        ({"seed": 1}, ["seed"]),
        ({"seed": torch.Generator()}, ["seed"]),
        ({"steps": 11, "seed": 1}, ["training", "seed"]),
    ],
)
def test_what_differs_by_more_than_rounding_is_named(changes, names):
    assert differences(identity(), identity(**changes)) == names


def test_identities_with_other_parts_differ():
    usual = identity()
    for name in ("initial state", "first batch"):
        fewer = dict(list(usual[name].items())[1:])
        for other in (fewer, None, {k: v[:-1] for k, v in usual[name].items()}):
            assert differences(usual | {name: other}, usual) == [name]
    assert differences({}, usual) == list(usual)


@pytest.mark.parametrize("value", [math.nan, -math.inf])  # as in masks
def test_tensors_that_are_not_finite_are_like_themselves(value):
    batch = torch.tensor([[value, 1.0, 2.0]])
    assert differences(identity(batch=batch), identity(batch=batch)) == []
    assert differences(identity(batch=batch), identity()) == ["first batch"]
    assert differences(identity(), identity(batch=batch)) == ["first batch"]


def test_modules_are_described_by_their_options():
    class Mine(nn.Module):
        def __init__(self):
            super().__init__()
            self.width, self._hidden, self.part = 3, 4, nn.Dropout(0.5)

    assert describe(nn.Dropout(0.25)) == "Dropout(p=0.25, inplace=False)"
    assert structure(Mine()) == {
        ".": f"{Mine.__qualname__}(width=3)",
        "part": "Dropout(p=0.5, inplace=False)",
    }
