"""Which device a network is trained on. There is no GPU here, so its names are made up."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import pytest
import torch
from torch import nn

from identica.process import Pairs
from identica.resnet import ResNet18
from identica.training import devices

META = torch.device("meta")


def test_batches_are_drawn_on_the_cpu_and_moved():
    kept = []

    def keep(size, *, generator):
        assert generator.device.type == "cpu"
        kept.append(Pairs(*torch.rand(4, size, 2, generator=generator)))
        return kept[-1]

    draw = devices.moved(keep, META)
    for seed in (1, 2, 1):
        batch = draw(5, generator=torch.Generator().manual_seed(seed))
        assert isinstance(batch, Pairs)
        assert all(part.device == META for part in batch)
        assert all(part.shape == was.shape for part, was in zip(batch, kept[-1], strict=True))
    assert torch.equal(kept[0].x, kept[2].x)
    assert not torch.equal(kept[0].x, kept[1].x)
    assert devices.moved(keep, devices.CPU) is keep


@pytest.fixture
def two_gpus(tmp_path, monkeypatch):
    monkeypatch.setattr(devices, "gpus", lambda: ["a", "b"])
    monkeypatch.setattr(devices, "gettempdir", lambda: str(tmp_path))


def test_gpus_have_a_name_each():
    found = devices.gpus()
    assert len(set(found)) == len(found) == torch.cuda.device_count()


def test_without_a_gpu_everything_stays_on_the_cpu(monkeypatch):
    monkeypatch.setattr(devices, "gpus", list)
    with devices.device_for(ResNet18(2)) as device:
        assert device == devices.CPU


def test_runs_of_images_have_a_gpu_each(two_gpus, monkeypatch):
    def another():
        with devices.device_for(network) as device:
            return str(device)

    network = ResNet18(2)
    with devices.device_for(network) as one, ThreadPoolExecutor() as elsewhere:
        assert str(one) == "cuda:0"
        assert elsewhere.submit(another).result(60) == "cuda:1"
        assert another() == "cuda:0"  # a part of the same run
        with devices.device_for(nn.Linear(1, 1)) as device:  # nothing to gain
            assert device == devices.CPU
    with ThreadPoolExecutor() as elsewhere:
        assert elsewhere.submit(another).result(60) == "cuda:0"
    # a process of a group has that of torchrun
    monkeypatch.setattr("identica.distributed.group", lambda: (1, 2))
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 1)
    assert another() == "cuda:1"


def test_a_network_is_moved_and_comes_back(monkeypatch):
    seen = []
    monkeypatch.setattr(nn.Linear, "to", lambda self, device: seen.append(str(device)))
    monkeypatch.setattr(devices, "device_for", lambda network: nullcontext(torch.device("cuda:1")))
    with devices.placed(nn.Linear(1, 1)) as device:
        assert seen == ["cuda:1"] == [str(device)]
    assert seen == ["cuda:1", "cpu"]
    with pytest.raises(KeyboardInterrupt), devices.placed(nn.Linear(1, 1)):
        raise KeyboardInterrupt
    assert seen[2:] == ["cuda:1", "cpu"]
