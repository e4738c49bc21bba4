"""Who trains how far in the race of starts: with held-out bits that are made up, rung by rung."""

import math
from types import SimpleNamespace

import pytest
import torch

from identica import Box, Laplace, Training
from identica.estimator import fit as fitting
from identica.estimator.fit import Run, fit, log_density
from identica.estimator.pairs import Batch
from identica.recipes import Recipe

HELD = Batch(torch.zeros(256, 2), torch.zeros(256, 2))  # 8 bits at most
TRAINING = Training(steps=1000)


def candidate(number, **options):
    return Recipe(TRAINING, network=(number,), **options)


@pytest.fixture
def race(monkeypatch):
    """Runs a race of recipes with made-up bits, by their number, and tells what was trained."""
    told = []

    def build(self):
        self.recipe, self.held = self.start(), HELD

    def go(self, until=None, *, patience=400, progress=None, tensorboard=False):
        self.stops = patience is not None
        number = self.recipe.network[0]
        told.append((number, self.seed, until, patience, progress))
        found = self.bits_of(number, self.seed, until)
        self.history = [*self.history, {"step": until or 1000, "bits": found}]

    def run(recipes, bits_of, easy=None, progress=None):
        told.clear()
        monkeypatch.setattr(Run, "bits_of", staticmethod(bits_of), raising=False)
        chosen = fit(
            lambda recipe, seed: recipe,
            recipes,
            Box(2),
            Laplace(1.0),
            easy=easy,
            seed=5,
            progress=progress,
        )
        return chosen, list(told)

    monkeypatch.setattr(Run, "_build", build)
    monkeypatch.setattr(Run, "go", go)
    monkeypatch.setattr(
        Run,
        "fit",
        lambda self, starts: SimpleNamespace(
            run=self, starts=starts, number=self.recipe.network[0]
        ),
    )
    monkeypatch.setattr(Run, "record", lambda self: (self.recipe.network[0], self.seed, self.bits))
    return run


FOUR = [candidate(k) for k in range(4)]


def test_two_rungs_and_the_end(race):
    """Each runs 150 steps, the best two from another seed too; the best three run 150 more."""
    bits = {0: 1.0, 1: 3.0, 2: 2.0, 3: 1.5}
    found, told = race(FOUR, lambda k, seed, until: bits[k] + 0.1 * (seed == 6))
    assert [line[:3] for line in told] == [
        *((k, 5, 150) for k in range(4)),
        (1, 6, 150),
        (2, 6, 150),
        (1, 6, 300),
        (2, 6, 300),
        (3, 5, 300),
        (1, 6, None),
    ]
    assert {line[3] for line in told} == {400}
    assert (found.number, found.run.seed) == (1, 6)
    assert [start[:2] for start in found.starts] == [(0, 5), (1, 5), (2, 5), (3, 5), (1, 6), (2, 6)]


@pytest.mark.parametrize(("second", "trained"), [(0.92, False), (0.94, True)])
def test_a_runner_up_that_is_close_is_trained_to_the_end_and_may_win(race, second, trained):
    def bits(k, seed, until):
        if until is None:
            return {1: 2.0, 2: 2.5}[k]
        return {0: 0.5, 1: 2.0, 2: 2.0 * second, 3: 0.4}[k]

    found, told = race(FOUR, bits)
    assert (2 in [number for number, _, until, *_ in told if until is None]) == trained
    assert found.number == (2 if trained else 1)


@pytest.mark.parametrize(("share", "easy"), [(0.949, False), (0.951, True)])
def test_evidence_saturates_at_95_percent_of_what_is_possible(race, share, easy):
    found, told = race(FOUR, lambda k, seed, until: share * 8 - 0.01 * k, easy=candidate(9))
    assert (found.number == 9) == easy
    assert (told[-1][0] == 9) == easy
    assert (told[-1][3] is None) == easy  # it does not stop early
    if easy:
        assert found.starts[-1][0] == 9


def test_one_recipe_has_one_more_start(race):
    found, told = race([candidate(1)], lambda k, seed, until: 1.0 + (seed == 6))
    assert [line[:3] for line in told] == [(1, 5, 150), (1, 6, 150), (1, 6, 300), (1, 6, None)]
    assert found.run.seed == 6


def test_a_handicap_counts_in_comparisons_alone(race):
    heavy = candidate(7, handicap=0.25)
    for bits, number in ((1.3, 1), (1.4, 7)):
        found, _ = race([candidate(1), heavy], lambda k, s, u, b=bits: b if k == 7 else 1.0)
        assert found.number == number
    # of less than nothing, it takes away as well
    found, _ = race([candidate(1), heavy], lambda k, s, u: -1.0 if k == 7 else -1.2)
    assert found.number == 1


def test_progress_says_which_start_it_is(race):
    _, told = race(FOUR[:2], lambda k, seed, until: k + 1.0, progress="fit")
    assert [line[4] for line in told] == [
        "fit, start 1 of 4",
        "fit, start 2 of 4",
        "fit, start 3 of 4",
        "fit, start 4 of 4",
        *([f"fit, start {told_of(told, 4)} of 4", f"fit, start {told_of(told, 5)} of 4"]),
        f"fit, start {told_of(told, 6)} of 4, may stop early",
    ]


def told_of(told, place):
    """The number of the start that ran at a place: starts are numbered as they begin."""
    begun = [(1, 0, 5), (2, 1, 5), (3, 1, 6), (4, 0, 6)]
    number, seed = told[place][:2]
    return next(start for start, *who in begun if who == [number, seed])


def test_what_is_kept_of_a_run():
    run = object.__new__(Run)
    run.recipe, run.seed, run.held = candidate(3, dropout=0.3), 4, HELD
    run.history = [{"step": s, "bits": b} for s, b in ((50, 1.0), (100, 3.0), (150, 2.0))]
    run.stops = True
    assert run.bits == 3.0
    run.stops = False
    assert run.bits == 2.0
    record = run.record()
    assert (record["steps"], record["bits"], record["possible_bits"]) == (150, 2.0, 8.0)
    assert (record["network"], record["dropout"], record["seed"]) == ([3], 0.3, 4)
    run.history = []
    assert run.bits == -math.inf


def test_temperatures_are_tried_around_the_learnt_one():
    """From a fifth to twice the temperature, as the best of them is told."""
    assert fitting.TEMPERATURES[0] == pytest.approx(0.2)
    assert fitting.TEMPERATURES[-1] == pytest.approx(2)
    ratios = [b / a for a, b in zip(fitting.TEMPERATURES, fitting.TEMPERATURES[1:], strict=False)]
    assert max(ratios) < 1.8
    assert 1.0 in fitting.TEMPERATURES


def test_the_density_is_minus_the_first_number_of_the_potential():
    class Plain(torch.nn.Module):
        def forward(self, codes):
            return torch.stack([codes.sum(-1), 7 + codes[..., 0]], -1)

    codes = torch.randn(5, 3, 2, generator=torch.Generator().manual_seed(0)).numpy()
    assert log_density(Plain(), codes) == pytest.approx(-codes.sum(-1), abs=1e-6)
