import json
import signal
import time

import pytest
import torch

from helpers import one_of_several
from helpers.groups import losses, outputs, start
from identica import InputError
from identica.distributed import _AllGather, own_part
from identica.process import Pairs, Pool, Walk

# A gradient is a sum over the 128 observations of a batch, and that of each code one over 64 keys. A sum
# of n float32 numbers is within n·ε/2 times their size of the exact one in any order, so two are within
# n·ε of each other. Adam makes no more of it: it moves a weight with gradient g by about its rate, so that
# a gradient off by η changes the step by rate·η/|g|, and hence the loss by rate·η, the share η/|g| of what
# the step was to change.
ROUNDING = (128 + 64) * torch.finfo(torch.float32).eps


def finish(group):
    said = [said for _, said in outputs(group)]
    assert [process.returncode for process in group] == [0] * len(group), said


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The curve of one process with the whole batch."""
    out = tmp_path_factory.mktemp("alone")
    one_of_several.main("train", out)
    return losses(out)


def test_gradients_of_two_processes_are_those_of_one(tmp_path):
    finish(start(2, "one_of_several", "gradients", tmp_path / "two.pt"))
    two, one = torch.load(tmp_path / "two.pt", weights_only=True), one_of_several.gradients(1)
    assert two.keys() == one.keys()
    for name, gradient in one.items():
        loss = name.partition(":")[0]
        size = max(one[each].abs().max() for each in one if each.startswith(f"{loss}:"))
        # moving all codes changes no distance
        assert gradient.abs().max() > 1e-2 * size or "bias" in name
        assert (two[name] - gradient).abs().max() <= ROUNDING * size, name


def test_a_network_that_outlives_its_group_is_no_deadlock(tmp_path):
    finish(start(2, "one_of_several", "leave", tmp_path / "left"))
    assert (tmp_path / "left1").read_text() == "DistributedDataParallel"


def test_loss_curves_coincide(tmp_path, alone):
    finish(start(2, "one_of_several", "train", tmp_path))
    assert losses(tmp_path) == pytest.approx(alone, rel=ROUNDING)


def test_a_lost_process_is_named_and_the_run_goes_on(tmp_path, alone):
    first, second = start(2, "one_of_several", "train", tmp_path, PAUSE="0.1")
    while not (tmp_path / "checkpoint.safetensors").exists() and first.poll() is None:
        time.sleep(0.05)
    second.send_signal(signal.SIGKILL)
    (_, said), _ = outputs([first, second])
    assert first.returncode == 1, said
    assert "LostProcessError: a process of the group was lost at step" in said
    assert "start all of them again" in said
    finish(start(2, "one_of_several", "train", tmp_path))
    assert losses(tmp_path) == pytest.approx(alone, rel=ROUNDING)


def test_what_the_first_process_makes_or_raises_reaches_all_without_pickle(tmp_path):
    finish(start(2, "one_of_several", "tell", tmp_path / "told"))
    first, second = [json.loads((tmp_path / f"told{rank}").read_text()) for rank in range(2)]
    values, errors = 2, 4  # of one_of_several.TOLD
    assert first[: values + errors - 1] == [repr(told) for told in one_of_several.TOLD[:-1]]
    assert second[: values + 2] == first[: values + 2]
    assert second[values + 2] == "RuntimeError('the first process failed: Foreign: odd')"
    assert first[-1].startswith("TypeError(")
    assert second[-1].startswith("RuntimeError('the first process failed: TypeError: ")


def test_only_batches_of_rows_can_be_shared(monkeypatch):
    monkeypatch.setattr("identica.distributed.group", lambda: (1, 2))
    rows = torch.arange(6.0)[:, None]
    part = own_part(Pairs(rows, rows + 10, rows + 20, rows + 30))
    assert part.z.flatten().tolist() == [3, 4, 5]
    assert part.x_pos.flatten().tolist() == [33, 34, 35]
    with pytest.raises(InputError, match="multiple of the 2 processes"):
        own_part(Pairs(*[torch.zeros(5, 1)] * 4))
    with pytest.raises(InputError, match="row by row"):
        own_part(Pool(rows, rows, torch.zeros(6, 2, dtype=torch.int64)))
    with pytest.raises(InputError, match="row by row"):
        own_part(Walk(rows, rows))


def test_second_derivatives_across_processes_are_refused():
    with torch.enable_grad(), pytest.raises(RuntimeError, match="no second derivatives"):
        _AllGather.backward(None, torch.ones(3))
