"""Parts of the comparison of `marginal="any"` with "uniform", and its table."""

import inspect

import pytest

from validation import any_marginal


@pytest.mark.parametrize("name", any_marginal.PARTS)
def test_every_part_takes_a_seed_and_a_marginal(name):
    _, part = any_marginal.PARTS[name]
    inspect.signature(part).bind(seed=0, marginal="any")


def test_the_table_compares_the_seeds_that_both_have():
    runs = [
        {"seed": seed, "marginal": marginal, "r2": r2, "mcc": 0.5, "seconds": 1.0}
        for seed, marginal, r2 in ((10, "uniform", 0.75), (10, "any", 0.5), (11, "uniform", 0.0))
    ]
    line = any_marginal.table({"skewed": runs, "frames": runs[:1]}).splitlines()
    assert len(line) == 3
    assert line[2].split(" | ")[1:4] == ["1", "0.7500", "0.5000"]
