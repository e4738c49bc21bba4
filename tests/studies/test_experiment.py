"""How an experiment runs its stages, and where. There is no GPU here: "cpu:0" stands for one that is
another device than the CPU by name, and "meta" for one whose tensors do not mix with those of the CPU."""

from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import nn

from helpers.masks import TINY, boxes
from identica import (
    MLP,
    Box,
    BoxHead,
    Contrastive,
    ContrastiveModel,
    InfoNCE,
    Normal,
    Training,
    families,
)
from identica.losses import align_uniform, infonce
from identica.process import Pairs
from identica.recipes.studies import PAPER_IMAGES
from identica.resnet import ResNet18
from identica.studies import kitti
from identica.studies.experiment import Experiment, Stage
from identica.studies.kitti import KittiExperiment
from identica.studies.published import WORKSHOP_TABLE5
from identica.studies.study import read_metrics
from identica.studies.threedident_experiment import loss_on_trial
from identica.training import devices, train

GPU, META = torch.device("cpu:0"), torch.device("meta")


def elsewhere(monkeypatch):
    monkeypatch.setattr(devices, "device_for", lambda network: nullcontext(GPU))


def objective():
    model = ContrastiveModel(Box(2), Normal(0.5), MLP(2, 2, (8,), seed=0))
    return Contrastive(model, InfoNCE(model.conditional))


def sample(size, *, generator):
    assert generator.device.type == "cpu"
    z, noise = torch.rand(2, size, 2, generator=generator)
    return Pairs(z, z + 0.1 * noise, z, z + 0.1 * noise)


def weights(module):
    return torch.cat([p.detach().flatten() for p in module.parameters()])


@dataclass(frozen=True)
class Listed(Experiment):
    """The stages it is given; `counted` of them take time."""

    given: list[Stage]
    counted: int = 1
    seed: int = 3
    config: Any = None

    @property
    def trainings(self):
        return [stage.training for stage in self.given[: self.counted]]

    def objective(self):
        return objective(), nn.Identity()

    def stages(self, context):
        for stage in self.given:
            context.say(f"before {stage.name}")
            last = yield stage
            assert last["step"] == stage.training.steps
        return stage.objective, stage.score()


def test_scores_are_those_of_the_network_that_is_trained_elsewhere(monkeypatch, tmp_path):
    how = Training(steps=6, batch=16, optimizer="adam", warmup=0, score_every=2)
    elsewhere(monkeypatch)
    here, scored = objective(), []

    def score():
        assert not here.training
        scored.append(weights(here))
        return {"size": float(scored[-1].norm())}

    result = Listed([Stage(here, sample, how, 3, score)]).run(tmp_path)

    # the same by hand: each batch has a seed of its own, drawn by the generator of the training
    other, source, followed = objective(), torch.Generator().manual_seed(3), []
    seeds = [int(torch.randint(2**62, (), generator=source)) for _ in range(how.steps)]
    batches = iter([sample(16, generator=torch.Generator().manual_seed(s)) for s in seeds])
    alone = train(
        other,
        lambda size, *, generator: next(batches),
        how,
        score=lambda: followed.append(weights(other)) or {},
    )
    records = read_metrics(tmp_path)
    assert [r["loss"] for r in records] == [r["loss"] for r in alone.records]
    assert len(scored) == 4  # three in training, and the result
    for a, b in zip(scored, [*followed, weights(other)], strict=True):
        assert torch.equal(a, b)
    assert not here.training
    assert records[-1]["size"] == result["scores"]["size"]
    assert result["scores"]["size"] == pytest.approx(float(weights(other).norm()))


@pytest.mark.parametrize("row", [1, 7])  # with noise, and with a box
def test_a_run_elsewhere_goes_on_to_the_same_score(tmp_path, monkeypatch, row):
    elsewhere(monkeypatch)
    monkeypatch.setattr(kitti.kitti_masks, "load", boxes)
    experiment = KittiExperiment(WORKSHOP_TABLE5[row - 1], 3, TINY)
    whole = experiment.run(tmp_path / "whole")

    def stop(step, steps):
        if step == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        experiment.run(tmp_path / "stopped", stop)
    again = experiment.run(tmp_path / "stopped")
    assert again["scores"] == whole["scores"]
    found = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "stopped")]
    assert found[0] == found[1]


def test_nothing_of_a_step_is_left_on_the_cpu(monkeypatch):
    for module in (families, align_uniform, infonce):  # which refuse tensors without values
        monkeypatch.setattr(module, "floats", lambda name, value, **_: value)
    masks = torch.zeros(8, 64, 64, dtype=torch.uint8, device=META)
    photos = torch.zeros(8, 3, 64, 64, dtype=torch.uint8, device=META)
    made = [KittiExperiment(row, 0, PAPER_IMAGES).objective()[0] for row in WORKSHOP_TABLE5[:8]]
    cases = [(contrastive, masks) for contrastive in made[2:]]
    head = BoxHead(Box(10), learnable=True)
    model = ContrastiveModel(Box(10), Normal(1.0), ResNet18(10), head=head)
    cases.append((Contrastive(model, InfoNCE(model.conditional, self_negative=True)), photos))
    for contrastive, x in cases:
        contrastive.to(META)
        loss = contrastive.loss(*contrastive.model(x).chunk(2))
        loss.backward()
        learnt = [p for p in contrastive.parameters() if p.requires_grad]
        assert all(p.grad.device == META for p in learnt)
    for vae in made[:2]:
        vae.to(META)(Pairs(masks, masks, masks, masks)).backward()


def test_networks_are_compared_by_the_same_batches_wherever_they_are():
    class Seen(nn.Module):
        def __init__(self, device):
            super().__init__()
            self.weight = nn.Parameter(torch.zeros(1, device=device))
            self.batches = []

        def forward(self, batch):
            assert all(part.device == self.weight.device for part in batch)
            self.batches.append(batch.x)
            return torch.tensor(float(len(self.batches)))

    drawn = []

    def kept(size, *, generator):
        drawn.append(sample(size, generator=generator))
        return drawn[-1]

    for device in (torch.device("cpu"), META):
        network = Seen(device)
        found = loss_on_trial(network, kept, 4)
        assert found == {"loss on trial": pytest.approx((1 + 16) / 2)}
        assert all(len(x) == 4 for x in network.batches)
    assert len(drawn) == 32
    assert all(torch.equal(a.x, b.x) for a, b in zip(drawn[:16], drawn[16:], strict=True))


def test_stages_after_the_steps_that_count_are_told_by_name(tmp_path):
    told = []
    stages = [
        Stage(objective(), sample, Training(steps=steps, batch=8, score_every=1), 0, score, name)
        for name, steps in (("wide", 2), ("head", 3))
        for score in [lambda: {"r2": 0.0}]
    ]
    result = Listed(stages).run(tmp_path, lambda *at: told.append(at))
    assert told[:3] == [(0, 2, "before wide"), (0, 2), (1, 2)]
    assert told[3] == (2, 2, "before head")
    assert told[4:] == [(2, 2, f"head, step {step} of 3") for step in range(3)]
    assert [record["step"] for record in read_metrics(tmp_path)] == [1, 2, 3, 4, 5]
    assert result["pairs"] == 5 * 8
    assert {path.name for path in (tmp_path / "parts").iterdir()} == {"wide", "head"}
