"""Checks of tensors, data types, devices and generators."""

import pytest
import torch

from identica import InputError
from identica._random import as_generator
from identica._tensors import FLOATS, alike, as_device, float_type, floats, points, same_device

META = torch.zeros(2, 3, device="meta")


def test_data_types_are_those_of_floats():
    assert [float_type("dtype", kind) for kind in FLOATS] == list(FLOATS)
    for value in (torch.int64, torch.complex64, torch.bool, "float32", float, None):
        with pytest.raises(InputError, match="dtype must be a data type of floats"):
            float_type("dtype", value)


def test_tensors_of_floats_have_values():
    z = torch.zeros(2, 3)
    assert floats("z", z) is z
    assert floats("z", META, meta=True) is META
    for value in (META, torch.zeros(2, dtype=torch.int64), [[0.0]], None):
        with pytest.raises(InputError, match="z must be a tensor of floats"):
            floats("z", value)


def test_points_have_their_columns():
    for shape in ((3,), (2, 3), (4, 2, 3), (0, 3)):
        z = torch.zeros(shape)
        assert points("z", z, 3) is z
        with pytest.raises(InputError, match=r"z must have 2 columns, got shape \("):
            points("z", z, 2)
    with pytest.raises(InputError, match=r"z must have 1 columns, got shape \(\)"):
        points("z", torch.tensor(1.0), 1)


def test_devices_are_at_hand_and_hold_values():
    assert as_device("device", "cpu") == torch.device("cpu")
    with pytest.raises(InputError, match="device must be an available torch device"):
        as_device("device", "somewhere")
    with pytest.raises(InputError, match="device must be a device that holds values, got 'meta'"):
        as_device("device", "meta")


def test_tensors_that_do_not_fit_together_are_named():
    z = torch.zeros(2, 3)
    alike("z", z, "h", torch.zeros(5, 1, 3))
    same_device("z", z, "h", z)
    with pytest.raises(InputError, match=r"z must have the shape of h, \(4,\), .*got \(2, 3\)"):
        alike("z", z, "h", torch.zeros(4))
    with pytest.raises(InputError, match="z must be on the device of h, meta, got cpu"):
        alike("z", z, "h", META)


def test_seeds_have_64_bits():
    own = torch.Generator()
    assert as_generator(own) is own
    assert as_generator(2**64 - 1).initial_seed() in (2**64 - 1, -1)
    for seed in (0, 7):
        drawn = [torch.rand(3, generator=as_generator(seed)) for _ in range(2)]
        assert torch.equal(*drawn)
        assert torch.equal(drawn[0], torch.rand(3, generator=own.manual_seed(seed)))
    for value in (-1, 2**64, True, 1.0, None):
        with pytest.raises(InputError, match=r"generator must be a torch\.Generator or a seed"):
            as_generator(value)
