"""Checks of arguments: what passes, at and beyond each limit, and what the error says."""

import math

import numpy as np
import pytest
import torch

from identica import InputError
from identica import _validate as check

LONGEST = 2**63 - 1


def test_numbers_have_their_limits():
    assert check.positive("x", 5e-324) == 5e-324
    assert check.nonnegative("x", 0) == 0.0
    assert check.finite("x", np.float32(-2)) == -2.0
    for test, value in ((check.positive, 0.0), (check.positive, -1), (check.nonnegative, -5e-324)):
        with pytest.raises(InputError, match=r"^x must be (greater than|at least) 0, got"):
            test("x", value)
    for value in (math.nan, math.inf, 10**400, True, "1", b"1", None, [1], torch.zeros(2)):
        with pytest.raises(InputError, match=r"^x must be a finite number, got"):
            check.finite("x", value)


@pytest.mark.parametrize(
    ("limits", "inside", "outside", "told"),
    [
        ({}, [1, np.int8(3), LONGEST], [0, -1, True, 1.0, "1"], "at least 1, got"),
        ({}, [], [LONGEST + 1], f"at least 1 and at most {LONGEST}, got"),
        ({"at_least": 0}, [0, 1], [-1], "at least 0, got"),
        ({"at_least": 2, "at_most": 4}, [2, 3, 4], [1, 5, LONGEST + 1], "at least 2 and at most 4"),
        ({"at_most": 2**70}, [2**70], [2**70 + 1], f"at most {2**70}, got"),
    ],
)
def test_whole_numbers_have_their_limits(limits, inside, outside, told):
    for value in inside:
        found = check.count("n", value, **limits)
        assert type(found) is int
        assert found == value
    for value in outside:
        with pytest.raises(InputError, match=f"^n must be a whole number of .*{told}"):
            check.count("n", value, **limits)


def test_seeds_lie_below_2_to_the_63():
    assert [check.seed("seed", value) for value in (0, LONGEST)] == [0, LONGEST]
    for value in (-1, LONGEST + 1):
        with pytest.raises(InputError, match=f"at least 0 and at most {LONGEST}"):
            check.seed("seed", value)
    same = [check.as_rng("rng", 5), np.random.default_rng(5)]
    assert len({generator.integers(1 << 40) for generator in same}) == 1
    assert check.as_rng("rng", same[0]) is same[0]
    assert isinstance(check.as_rng("rng", 0), np.random.Generator)
    with pytest.raises(InputError, match="rng must be a whole number of at least 0"):
        check.as_rng("rng", -1)


def test_near_misses_are_pointed_out():
    names = ["pearson", "spearman"]
    assert check.one_of("method", "spearman", iter(names)) == "spearman"
    with pytest.raises(InputError, match=r"pearson, spearman; got 'spearmn' \(did you mean 'spea"):
        check.one_of("method", "spearmn", names)
    for value in ("kendall", 3, None):
        with pytest.raises(InputError, match=r"pearson, spearman; got [^(]*$"):
            check.one_of("method", value, names)


def test_matrices_have_rows_and_columns_of_finite_numbers():
    vector = check.as_matrix("z", [1, 2, 3])
    np.testing.assert_array_equal(vector, np.array([[1.0], [2.0], [3.0]]))
    assert vector.dtype == np.float64
    assert check.as_matrix("z", torch.ones(2, 3, requires_grad=True)).shape == (2, 3)
    assert check.as_matrix("z", np.ones((5, 1)), rows=5).shape == (5, 1)
    for data, told in (
        (np.ones((1, 3)), "z must have at least 2 rows, got 1"),
        (np.ones((3, 0)), r"shape N×d, got \(3, 0\)"),
        (np.ones((3, 1, 1)), r"shape N×d, got \(3, 1, 1\)"),
        (np.float64(3), r"shape N×d, got \(\)"),
        ([[1, np.nan], [np.inf, np.nan], [0, 1]], "finite: 2 of 3 rows"),
        ([[1], [2, 3]], "z must be an array of numbers"),
        ([[1j], [2j]], "it holds complex numbers"),
        (np.array(["2020-01-01", "2020-01-02"], "M8[D]"), "it holds dates or durations"),
        (np.array([1, 2j], object), "it holds complex numbers"),
        (["a", "b"], "z must be numeric"),
    ):
        with pytest.raises(InputError, match=told):
            check.as_matrix("z", data)
    with pytest.raises(InputError, match="at least 6 rows, got 5"):
        check.as_matrix("z", np.ones((5, 1)), rows=6)


def test_rows_are_compared():
    check.same_rows(z=np.ones((3, 1)), h=np.ones((3, 2)))
    with pytest.raises(InputError, match=r"^z and h must .* rows: z has 3, h has 4"):
        check.same_rows(z=np.ones((3, 1)), h=np.ones((4, 2)))


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "None"),
        (True, "True"),
        (0.5, "0.5"),
        ({}, "a dict"),
        (object(), "an object"),
        (torch.ones(2, 3), r"a torch.float32 Tensor of shape (2, 3)"),
        (np.int8(3), "an int8 int8 of shape ()"),
    ],
)
def test_values_in_words(value, words):
    assert check.kind_of(value) == words


def test_flags_lists_functions_and_paths(tmp_path):
    assert check.flag("f", np.bool_(True)) is True
    assert check.flag("f", False) is False
    assert check.members("m", range(2), "a list") == [0, 1]
    assert check.members("m", "ab", "a list") == []
    assert check.as_path("p", str(tmp_path)) == check.as_path("p", tmp_path) == tmp_path
    check.function("f", len)
    check.instance("s", "text", str, "a text")
    for call, told in (
        (lambda: check.flag("f", 1), "f must be True or False, got 1"),
        (lambda: check.members("m", 3, "a list"), "m must be a list, got 3"),
        (lambda: check.function("f", 3), "f must be a function, got 3"),
        (lambda: check.instance("s", 3, str, "a text"), "s must be a text, got 3"),
        (lambda: check.as_path("p", 3), "p must be a path, got 3"),
    ):
        with pytest.raises(InputError, match=told):
            call()
