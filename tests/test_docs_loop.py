"""The page on your own loop: its script on two processes, and its accumulated gradients."""

import subprocess
import sys

import pytest

import blocks
from helpers import programs
from helpers.groups import free_port, outputs

PAGE = blocks.DOCS / "loop.md"


def found(word):
    [block] = [block for block in blocks.blocks(PAGE.read_text("utf-8")) if word in block.code]
    return block


def run(script, number):
    port = str(free_port())
    group = [
        subprocess.Popen(
            [sys.executable, script],
            env=programs.environment(
                MASTER_ADDR="127.0.0.1",
                MASTER_PORT=port,
                WORLD_SIZE=str(number),
                GLOO_SOCKET_IFNAME="lo",
                RANK=str(rank),
                LOCAL_RANK=str(rank),
            ),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(number)
    ]
    said = outputs(group)
    assert [process.returncode for process in group] == [0] * number, said
    return [printed for printed, _ in said]


def test_two_processes_are_as_one(tmp_path):
    script = tmp_path / "train.py"
    block = found("DistributedDataParallel(")
    script.write_text(block.code)
    first, second = run(script, 2)
    assert second == ""
    alone = blocks.run(block, PAGE, {})
    assert float(first) == pytest.approx(float(alone), abs=2e-3)  # three digits, and rounding


def test_pieces_have_the_gradient_of_the_whole():
    import torch

    from identica import MLP, InfoNCE, Normal

    names = {"torch": torch}
    function = found("def backward_in_pieces").code.partition("\n\n\n")[0]
    exec(function, names)
    model, loss = MLP(3, 2).double(), InfoNCE(Normal(1.0), learn_tau=True)
    x, noise = torch.randn(
        2, 20, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0)
    )
    parameters = [*model.parameters(), loss.log_tau]
    expected = torch.autograd.grad(loss(model(x), model(x + noise)), parameters)
    names["backward_in_pieces"](model, loss, x, x + noise, 7)
    for parameter, gradient in zip(parameters, expected, strict=True):
        assert torch.allclose(parameter.grad, gradient, rtol=1e-10, atol=1e-14)
