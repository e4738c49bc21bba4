"""Files of tensors: what is read is what was written, or an error."""

import json
import random

import pytest
import torch
from safetensors.torch import save_file

from identica import MLP, InputError, checkpoints
from identica.errors import DamagedError


def equal(a, b):
    """Whether two nested states hold the same bits."""
    if isinstance(a, torch.Tensor):
        return isinstance(b, torch.Tensor) and a.dtype == b.dtype and torch.equal(a, b)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(equal(a[k], b[k]) for k in a)
    return type(a) is type(b) and a == b


def test_tensors_come_back_at_aligned_addresses(tmp_path):
    """Where they lie in the file depends on the length of the header; products of tensors at odd
    addresses round differently, so that a resumed run would drift away."""
    for length in range(0, 64, 8):
        state = {"t": torch.arange(100.0), "name": "x" * length, "u": torch.rand(3, 5)}
        checkpoints.save(tmp_path / "c", state)
        back = checkpoints.load(tmp_path / "c")
        assert equal(back, state)
        assert all(back[k].data_ptr() % 64 == 0 for k in ("t", "u"))


def flips(content, number=200):
    """The content with one bit flipped, at random places all over the file."""
    rng = random.Random(0)
    for _ in range(number):
        at, bit = rng.randrange(len(content)), rng.randrange(8)
        yield content[:at] + bytes([content[at] ^ 1 << bit]) + content[at + 1 :]


def test_no_flipped_bit_of_a_checkpoint_passes_unseen(tmp_path):
    generator = torch.Generator().manual_seed(0)
    state = {
        "step": 7,
        "weights": {
            "a": torch.rand(30, 9, generator=generator),
            "b": torch.tensor(1.5, dtype=torch.float64),
            "c": torch.arange(20),
            "d": torch.rand(7, generator=generator).bfloat16(),
            "e": torch.tensor([True, False]),
            "none": torch.zeros(0),
        },
    }
    path = tmp_path / "c"
    checkpoints.save(path, state)
    seen = 0
    for damaged in flips(path.read_bytes()):
        path.write_bytes(damaged)
        try:
            assert equal(checkpoints.load(path), state)
        except DamagedError:
            seen += 1
    assert seen > 190  # the others are in the spaces at the end of the header


def test_no_flipped_bit_of_weights_passes_unseen(tmp_path):
    path, model = tmp_path / "w", MLP(5, 3, hidden=(8,))
    checkpoints.save_weights(path, model)
    seen = 0
    for damaged in flips(path.read_bytes()):
        path.write_bytes(damaged)
        other = MLP(5, 3, hidden=(8,), seed=1)
        try:
            checkpoints.load_weights(path, other)
            assert equal(dict(other.state_dict()), dict(model.state_dict()))
        except InputError:
            seen += 1
    assert seen > 150  # a damaged name in the metadata does no harm


def test_plain_weights_of_others_are_read(tmp_path):
    model, other = MLP(3, 2, seed=0), MLP(3, 2, seed=1)
    save_file(model.state_dict(), tmp_path / "plain")
    save_file(model.state_dict(), tmp_path / "noted", metadata={"format": "pt"})
    for name in ("plain", "noted"):
        other = MLP(3, 2, seed=1)
        checkpoints.load_weights(tmp_path / name, other)
        assert equal(dict(other.state_dict()), dict(model.state_dict()))
        with pytest.raises(DamagedError, match="has no metadata of identica"):
            checkpoints.load(tmp_path / name)


DEEP = '{"list":[' * 100_000 + "]}" * 100_000


@pytest.mark.parametrize(
    "tree",
    [
        "",
        "null",
        "[]",
        "{}",
        '{"tensor": 3}',
        '{"tensor": ["none", [0]]}',
        '{"tensor": ["t", [5]]}',
        '{"tensor": ["t", "0"]}',
        '{"items": [[[1], {"value": 0}]]}',
        '{"items": 5}',
        '{"list": null}',
        '{"value": 1, "list": []}',
        '{"value": 1e999999}]',
        DEEP,
    ],
    ids=lambda tree: tree[:20],
)
def test_a_structure_that_makes_no_sense_is_named(tmp_path, tree):
    """With a valid checksum: the file was made like that."""
    (tmp_path / "c").write_bytes(checkpoints._encoded({"t": torch.zeros(3)}, tree))
    with pytest.raises(DamagedError, match="is not a checkpoint of identica, or is damaged"):
        checkpoints.load(tmp_path / "c")


def test_a_header_of_absurd_sizes_is_named(tmp_path):
    header = {"t": {"dtype": "F32", "shape": [10**15], "data_offsets": [0, 4 * 10**15]}}
    for text in (json.dumps(header).encode(), b"{" * 1000):
        for length in (len(text), 2**62):
            (tmp_path / "c").write_bytes(length.to_bytes(8, "little") + text)
            with pytest.raises(DamagedError):
                checkpoints.load(tmp_path / "c")
            with pytest.raises(InputError):
                checkpoints.load_weights(tmp_path / "c", MLP(3, 2))


def test_checkpoints_hold_nested_state(tmp_path):
    state = {"a": [1, None, {2: torch.arange(3)}], 5: {"x": (True, 2.5, "s")}, "none": []}
    checkpoints.save(tmp_path / "c", state)
    back = checkpoints.load(tmp_path / "c")
    assert back["a"][:2] == [1, None]
    assert torch.equal(back["a"][2][2], torch.arange(3))
    assert back[5] == {"x": (True, 2.5, "s")}
    assert back["none"] == []


def test_checkpoints_keep_the_layout_in_memory(tmp_path):
    tensors = [torch.rand(3, 4).T, torch.rand(2, 3, 4).permute(2, 0, 1), torch.tensor(1.0)]
    checkpoints.save(tmp_path / "c", tensors)
    for before, after in zip(tensors, checkpoints.load(tmp_path / "c"), strict=True):
        assert torch.equal(before, after)
        assert before.stride() == after.stride()


def test_weights_go_out_and_come_back(tmp_path):
    model, other = MLP(3, 2, seed=0), MLP(3, 2, seed=1)
    checkpoints.save_weights(tmp_path / "w", model)
    checkpoints.load_weights(tmp_path / "w", other)
    assert torch.equal(model(torch.ones(1, 3)), other(torch.ones(1, 3)))
    with pytest.raises(InputError, match="does not hold the weights"):
        checkpoints.load_weights(tmp_path / "w", MLP(3, 4))
    with pytest.raises(InputError, match="does not exist"):
        checkpoints.load_weights(tmp_path / "none", model)
