"""A sample of the grid in validation/guarantees.py."""

import pytest
from validation.guarantees import N, name, pairs, summary

from identica import GenerativeProcess, InvertibleMLP, guarantee


def test_pairs_are_many_and_each_is_there_once():
    names = [name(*pair) for pair in pairs()]
    assert len(names) == len(set(names)) >= 100


def test_every_pair_gets_an_answer_that_fits_on_a_screen():
    mixing = InvertibleMLP(N, seed=0, draws=1)
    for assumptions, model in pairs():
        found = guarantee(GenerativeProcess(*assumptions, mixing), model.make(0))
        assert bool(found) != bool(found.violations)
        lines = str(found).splitlines()
        assert sum(1 + len(line) // 100 for line in lines) <= 24
        for change in found.changes:
            assert change.what
            assert change.up_to in ("affine", "orthogonal", "permutation")


def test_the_summary_counts_promises_and_counterexamples():
    found = summary(
        [
            {"up_to": "affine", "kept": True, "counterexample": None, "seconds": 1.0},
            {"up_to": "affine", "kept": False, "counterexample": "a rotation", "seconds": 3.0},
            {"up_to": None, "counterexample": "a rotation", "seconds": 2.0},
            {"up_to": None, "counterexample": None, "seconds": 2.0},
        ]
    )
    assert found == {
        "pairs": 4,
        "promised": 2,
        "kept": 1,
        "promised with a counterexample": 1,
        "without a promise": 2,
        "with a counterexample": 1,
        "longest search, seconds": pytest.approx(3.0),
    }
