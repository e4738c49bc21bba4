"""Where runs are trained. There is no GPU here: "cpu:0" stands for one that is another device than the
CPU by name, and the device "meta" for one whose tensors do not mix with those of the CPU."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import pytest
import torch
from torch import nn

from helpers.masks import TINY, boxes
from identica import MLP, Box, BoxHead, Contrastive, ContrastiveModel, InfoNCE, Normal, Training
from identica.process import Pairs
from identica.resnet import ResNet18
from identica.studies import kitti, trained
from identica.studies.study import Finished
from identica.training import train

GPU, META = torch.device("cpu:0"), torch.device("meta")


def elsewhere(monkeypatch):
    monkeypatch.setattr(trained, "place", lambda objective: nullcontext(GPU))


def objective():
    model = ContrastiveModel(Box(2), Normal(0.5), MLP(2, 2, (8,), seed=0))
    return Contrastive(model, InfoNCE(model.conditional))


def sample(size, *, generator):
    assert generator.device.type == "cpu"
    z, noise = torch.rand(2, size, 2, generator=generator)
    return Pairs(z, z + 0.1 * noise, z, z + 0.1 * noise)


def weights(module):
    return torch.cat([p.detach().flatten() for p in module.parameters()])


def test_scores_are_those_of_the_copy_that_is_trained(monkeypatch):
    how = Training(steps=6, batch=16, optimizer="adam", warmup=0, score_every=2)
    elsewhere(monkeypatch)
    here, scored = objective(), []

    def score():
        assert not here.training
        scored.append(weights(here))
        return {"size": float(scored[-1].norm())}

    history = trained.fit(here, sample, how, seed=3, score=score)

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
    assert [r["loss"] for r in history.records] == [r["loss"] for r in alone.records]
    assert len(scored) == 3
    assert all(torch.equal(a, b) for a, b in zip(scored, followed, strict=True))
    assert torch.equal(weights(here), weights(other))
    assert not here.training
    assert history.last["size"] == pytest.approx(float(weights(other).norm()))


@pytest.mark.parametrize("row", [1, 7])  # with noise, and with a box
def test_a_run_elsewhere_goes_on_to_the_same_score(tmp_path, monkeypatch, row):
    elsewhere(monkeypatch)
    monkeypatch.setattr(kitti.kitti_masks, "load", boxes)
    record = kitti.ROWS[row - 1]
    whole = kitti.run(record, 3, TINY, out=tmp_path / "whole")

    def stop(step, steps):
        if step == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        kitti.run(record, 3, TINY, out=tmp_path / "stopped", tick=stop)
    again = kitti.run(record, 3, TINY, out=tmp_path / "stopped")
    assert again["scores"] == whole["scores"]
    lines = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "stopped")]
    assert lines[0] == lines[1]


def test_batches_are_drawn_on_the_cpu_and_moved():
    kept = []

    def keep(size, *, generator):
        kept.append(sample(size, generator=generator))
        return kept[-1]

    draw = trained.moving(keep, META)
    for seed in (1, 2, 1):
        batch = draw(5, generator=torch.Generator().manual_seed(seed))
        assert isinstance(batch, Pairs)
        assert all(part.device == META for part in batch)
        assert all(part.shape == was.shape for part, was in zip(batch, kept[-1], strict=True))
    assert torch.equal(kept[0].x, kept[2].x)
    assert not torch.equal(kept[0].x, kept[1].x)


def test_nothing_of_a_step_is_left_on_the_cpu():
    masks = torch.zeros(8, 64, 64, dtype=torch.uint8, device=META)
    photos = torch.zeros(8, 3, 64, 64, dtype=torch.uint8, device=META)
    cases = [(kitti.make_objective(row, kitti.PAPER, 0)[0], masks) for row in kitti.ROWS[2:8]]
    head = BoxHead(Box(10), learnable=True)
    model = ContrastiveModel(Box(10), Normal(1.0), ResNet18(10), head=head)
    cases.append((Contrastive(model, InfoNCE(model.conditional, self_negative=True)), photos))
    for made, x in cases:
        made.to(META)
        loss = made.loss(*made.model(x).chunk(2))
        loss.backward()
        learnt = [p for p in made.parameters() if p.requires_grad]
        assert all(p.grad.device == META for p in learnt)
    for row in kitti.ROWS[:2]:
        vae = kitti.make_objective(row, kitti.PAPER, 0)[0].to(META)
        vae(Pairs(masks, masks, masks, masks)).backward()


@pytest.fixture
def two_gpus(tmp_path, monkeypatch):
    monkeypatch.setattr(trained, "gpus", lambda: ["a", "b"])
    monkeypatch.setattr(trained, "gettempdir", lambda: str(tmp_path))


def test_without_a_gpu_everything_stays_on_the_cpu(monkeypatch):
    monkeypatch.setattr(trained, "gpus", list)
    with trained.place(ResNet18(2)) as device:
        assert device == trained.CPU


def test_runs_of_images_have_a_gpu_each(two_gpus, monkeypatch):
    def another():
        with trained.place(network) as device:
            return str(device)

    network = ResNet18(2)
    with trained.place(network) as one, ThreadPoolExecutor() as elsewhere:
        assert str(one) == "cuda:0"
        assert elsewhere.submit(another).result(60) == "cuda:1"
        assert another() == "cuda:0"  # a part of the same run
        with trained.place(objective()) as device:  # nothing to gain
            assert device == trained.CPU
    with ThreadPoolExecutor() as elsewhere:
        assert elsewhere.submit(another).result(60) == "cuda:0"
    # a process of a group has that of torchrun
    monkeypatch.setattr("identica.distributed.group", lambda: (1, 2))
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 1)
    assert another() == "cuda:1"


def test_a_network_is_lent_and_comes_back(monkeypatch):
    seen = []
    monkeypatch.setattr(nn.Linear, "to", lambda self, device: seen.append(str(device)))
    monkeypatch.setattr(trained, "place", lambda network: nullcontext(torch.device("cuda:1")))
    with trained.lent(nn.Linear(1, 1)) as device:
        assert seen == ["cuda:1"] == [str(device)]
    assert seen == ["cuda:1", "cpu"]


def test_trainings_after_the_steps_that_count_are_told_by_name(tmp_path):
    told = []
    course = trained.Course(tmp_path, 2, lambda *at: told.append(at))
    for name, steps in (("wide", 2), ("head", 3)):
        training = Training(steps=steps, batch=8, score_every=1)
        course.fit(name, objective(), sample, training, seed=0, score=lambda: {"r2": 0.0})
    assert told[:2] == [(0, 2), (1, 2)]
    assert told[2:] == [(2, 2, f"head, step {step} of 3") for step in range(3)]
    assert [record["step"] for record in course.history.records][-1] == 5


@pytest.mark.parametrize(
    "line",
    [
        *("null", "[]", "3", "{", '{"step": 1}', '{"step": 1, "mcc": "x"}', "[" * 100_000),
        *('{"step": 1, "mcc": null}', f'{{"step": 1, "mcc": {"9" * 400}}}'),
    ],
)
def test_a_damaged_history_costs_its_curve_alone(line, tmp_path):
    whole = '{"step": 1, "mcc": 0.5}\n'
    for name, text in (("whole", whole), ("damaged", whole + line)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "metrics.jsonl").write_text(text)
    found = [Finished(n, tmp_path / name, {}, {}) for n, name in enumerate(("whole", "damaged"))]
    assert trained.read_metrics(tmp_path / "damaged", "step", "mcc") == []
    assert len(trained.curves(found, "mcc", goal=None)) == 1
    assert trained.curves(found[1:], "mcc", goal=None) == []
