import math
from dataclasses import replace

import pytest
import torch
from torch import nn

from identica import InputError, Training, train
from identica.training import Stopping
from identica.training.stopping import Best

QUICK = Training(
    steps=60,
    batch=16,
    lr=0.1,
    optimizer="adam",
    warmup=0,
    decay=0,
    score_every=1,
    checkpoint_every=7,
)


class Drift(nn.Module):
    """Weights that go up by about the learning rate at every step, one of them in double precision."""

    def __init__(self):
        super().__init__()
        self.one = nn.Parameter(torch.zeros(2))
        self.two = nn.Parameter(torch.zeros((), dtype=torch.float64))
        self.fixed = nn.Parameter(torch.ones(1), requires_grad=False)
        self.register_buffer("calls", torch.tensor(0))

    def forward(self, batch):
        self.calls += 1
        return -(self.one.sum() + self.two) * (1 + batch.mean() / 4)


def draw(size, *, generator):
    return torch.randn(size, 1, generator=generator)


def scored(module, peak=1.0):
    """A score that is highest where the weight is at its peak."""
    return lambda: {"near": -abs(module.two.item() - peak)}


def test_the_average_is_that_of_a_recursion_by_hand():
    module = Drift()
    best = Best(module, Stopping("near", patience=10, memory=0.9))
    one, two = torch.zeros(2, dtype=torch.float64), 0.0
    for step in range(1, 200):
        with torch.no_grad():
            module.one.copy_(torch.tensor([math.sin(step), step]))
            module.two.fill_(math.cos(step))
        best.update(step)
        memory = min(0.9, step / (step + 10))
        one = memory * one + (1 - memory) * module.one.double()
        two = memory * two + (1 - memory) * math.cos(step)
    assert torch.allclose(best.average[0].double(), one, rtol=1e-5)
    assert float(best.average[1]) == pytest.approx(two, rel=1e-12)
    with best.averaged():
        assert module.two.item() == pytest.approx(two, rel=1e-12)
    assert module.two.item() == math.cos(199)


def test_the_weights_of_a_training_are_the_averages_at_its_best():
    """By an independent average of the weights that an undisturbed training passes through."""
    passed, module = [], Drift()
    train(module, draw, QUICK, score=lambda: passed.append(module.two.item()) or {})
    averages = [0.0]
    for step, weight in enumerate(passed, start=1):
        memory = min(0.99, step / (step + 10))
        averages.append(memory * averages[-1] + (1 - memory) * weight)
    closest = min(averages[1:], key=lambda value: abs(value - 1.0))
    other = Drift()
    history = train(other, draw, QUICK, stopping=Stopping("near", 1000), score=scored(other))
    assert other.two.item() == pytest.approx(closest, rel=1e-9)
    assert abs(closest - 1.0) < 0.2 < abs(averages[-1] - 1.0)  # which was passed
    assert len(history.records) == 60
    assert float(other.fixed) == 1


@pytest.mark.parametrize("patience", [1, 5, 8])
def test_training_ends_when_patience_is_at_an_end(patience):
    module = Drift()
    history = train(
        module, draw, QUICK, stopping=Stopping("near", patience), score=scored(module, 0.5)
    )
    scores = [record["near"] for record in history.records]
    assert len(scores) == scores.index(max(scores)) + 1 + patience < 60


def test_a_score_that_is_not_a_number_is_never_the_best():
    module, calls = Drift(), iter([math.nan, 1.0, math.nan, 2.0, *[math.nan] * 100])
    history = train(
        module, draw, QUICK, stopping=Stopping("near", 3), score=lambda: {"near": next(calls)}
    )
    assert history.last["step"] == 4 + 3


def test_without_stopping_the_last_weights_are_kept():
    plain, scores = Drift(), Drift()
    train(plain, draw, QUICK)
    train(scores, draw, QUICK, score=scored(scores))
    assert torch.equal(plain.one, scores.one)


@pytest.mark.parametrize("stop", [3, 14, 25, 38])
def test_a_stopped_run_resumes_to_the_same_bits(tmp_path, stop):
    """Before the best step, and within the patience that follows."""
    settings = replace(QUICK, score_every=3)

    def run(out, tick=None):
        module = Drift()
        history = train(
            module,
            draw,
            settings,
            stopping=Stopping("near", 24, memory=0.8),
            score=scored(module, 1.5),
            out=out,
            tick=tick,
        )
        return module.state_dict(), [{**r, "seconds": 0} for r in history.records]

    def stops(step, steps):
        if step == stop:
            raise KeyboardInterrupt

    whole, records = run(None)
    best = max(records, key=lambda record: record["near"])["step"]
    assert 14 < best < 25 < 38 < records[-1]["step"] == best + 24 < 60
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, stops)
    for _ in range(2):  # and once it is finished
        resumed, again = run(tmp_path)
        assert again == records
        assert all(torch.equal(whole[name], resumed[name]) for name in whole)


def test_training_in_stages_is_training_at_once(tmp_path):
    """Each stage has its best weights so far; the next one goes on from where training was."""

    def run(out, until=None):
        module = Drift()
        stopping, score = Stopping("near", 24, memory=0.8), scored(module, 1.5)
        history = train(module, draw, QUICK, until=until, stopping=stopping, score=score, out=out)
        return module.state_dict(), [{**r, "seconds": 0} for r in history.records]

    whole, records = run(None)
    best = max(records, key=lambda record: record["near"])["step"]
    for until in (best - 5, best + 3):
        weights, some = run(tmp_path, until)
        assert some == records[:until]
    assert all(torch.equal(whole[name], weights[name]) for name in whole)  # of the best step
    weights, every = run(tmp_path)
    assert every == records
    assert all(torch.equal(whole[name], weights[name]) for name in whole)


def test_another_patience_is_another_run(tmp_path):
    for patience in (5, 6):
        module = Drift()
        settings = {"stopping": Stopping("near", patience), "score": scored(module)}
        if patience == 5:
            train(module, draw, QUICK, **settings, out=tmp_path)
        else:
            with pytest.raises(InputError, match="another training: use another folder"):
                train(module, draw, QUICK, **settings, out=tmp_path)


def test_stopping_that_cannot_be():
    module = Drift()
    with pytest.raises(InputError, match="score must be given with stopping"):
        train(module, draw, QUICK, stopping=Stopping("near", 5))
    with pytest.raises(InputError, match=r"score must return 'far', got \['loss', 'lr', 'near'"):
        train(module, draw, QUICK, stopping=Stopping("far", 5), score=scored(module))
    with pytest.raises(InputError, match="patience must be a whole number of at least 1"):
        Stopping("near", 0)
    for memory in (1.0, -0.1, math.nan):
        with pytest.raises(InputError, match="memory must"):
            Stopping("near", 5, memory)
