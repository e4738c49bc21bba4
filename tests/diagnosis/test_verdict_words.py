"""What each check says of its measurements, and from which value on."""

import numpy as np
import pytest

from helpers.findings import below, filling, fitted, rows, scored
from identica import Box, Euclidean, Laplace, Sphere
from identica.diagnosis.codes import Score
from identica.diagnosis.conditional import Positives
from identica.diagnosis.dimension import Dimensions, Intrinsic
from identica.diagnosis.marginal import Axes, Marginal
from identica.diagnosis.sequence import Rows
from identica.diagnosis.truth import Truth
from identica.diagnosis.verdict import (
    Restarts,
    anisotropy,
    axes,
    bend,
    codes,
    directions,
    memory,
    missed,
    surface,
    truth,
)
from identica.diagnosis.verdict import conditional as _conditional
from identica.diagnosis.verdict import marginal as _marginal
from identica.diagnosis.verdict import restarts as _restarts
from identica.diagnosis.verdict import rows as _rows
from identica.diagnosis.verdict import score as _score


def test_a_score_is_told_without_a_minus_before_zero():
    found = _score(scored(-0.004, error=0.126, control=-0.0049))
    assert found.seen.startswith(
        "Held-out pairs score 0.00 ± 0.13 bits above chance, shuffled pairs 0.00."
    )
    assert "score 1.24 ± 0.00" in _score(scored(1.236, control=-0.126)).seen
    assert "shuffled pairs -0.13." in _score(scored(1.236, control=-0.126)).seen
    related = Score(0.0, 0.0, 0.0, 0.0, None, 10.0, True)
    assert "but their observations are related" in _score(related).means
    assert "the pairs are unrelated" in _score(scored(0.0)).means


@pytest.mark.parametrize(
    ("seen", "bits", "expected"),
    [
        (None, 1.0, []),
        (below(0.05), 0.01, []),  # nothing was learnt by heart either
        (0.05, 0.0, ["wrong"]),
        (2.0, below(1.0), ["wrong"]),
        (2.0, 1.0, ["unsure"]),
        (10.0, below(8.0), ["unsure"]),
        (10.0, 8.0, ["fine"]),
    ],
)
def test_memory_is_what_held_out_pairs_lack(seen, bits, expected):
    found = list(memory(Score(bits, 0.0, 0.0, 0.0, seen, 10.0)))
    assert [finding.level for finding in found] == expected


@pytest.mark.parametrize(
    ("independent", "noise", "level", "words"),
    [
        (below(6.0), 0.5, "unsure", "Too few independent rows to judge 2 codes."),
        (6.0, 0.3, "caution", "noise as well as change"),
        (6.0, below(0.3), "fine", "They suffice for most checks of 2 codes."),
    ],
)
def test_rows_of_a_sequence(independent, noise, level, words):
    (found,) = _rows(rows(independent, 2, noise), 1234)
    assert found.level == level
    assert words in found.means
    share = "50%" if noise == 0.5 else "30%"
    assert "1234 held-out rows" in found.seen
    assert f"worth about 6 independent rows; measurement noise is {share}" in found.seen
    assert not list(_rows(Rows(independent, 0, np.zeros(2), np.zeros(2)), 1234))


def test_the_noise_of_rows_names_what_is_possible():
    linear = np.array([[1.0, 0.9], [0.9, 1.0]])
    assert "at most 0.999 is possible" in _restarts(Restarts(linear, linear, ceiling=0.9994)).seen
    assert "at most" not in _restarts(Restarts(linear, linear, ceiling=0.9995)).seen
    assert "at most" not in _restarts(Restarts(linear, linear, ceiling=0.9)).seen


CLEAR = {"codes": Axes(0.95, 0.95), "differences": Axes(1.0, 1.0)}


@pytest.mark.parametrize(
    ("mcc", "ceiling", "found", "level", "words"),
    [
        (0.95, 1.0, CLEAR, "fine", "Each code is one factor."),
        (below(0.95), 1.0, CLEAR, "caution", "A code is a mixture"),
        (0.95 * 0.8, 0.64, CLEAR, "fine", "Each code is one factor."),  # noise in both fits
        (0.94 * 0.8, 0.64, CLEAR, "caution", "A code is a mixture"),
        (1.0, 1.0, {**CLEAR, "codes": Axes(0.95, below(0.95))}, "caution", "a wrong rotation"),
        (1.0, 1.0, {**CLEAR, "codes": Axes(below(0.95), 0.0)}, "fine", "Each code is one factor."),
        (1.0, 1.0, {"codes": Axes(below(0.95), 1.0)}, "caution", "The axes are not confirmed."),
        (1.0, 1.0, {}, "fine", "Each code is one factor."),
    ],
)
def test_axes_agree_between_fits_and_with_independent_components(mcc, ceiling, found, level, words):
    both = np.array([[1.0, mcc], [mcc, 1.0]])
    said = axes(Restarts(both, both, ceiling), found, True, Box(2))
    assert said.level == level
    assert words in said.means


def test_the_worst_of_several_components_is_named():
    both = np.ones((2, 2))
    found = {"codes": Axes(1.0, 0.9), "differences": Axes(1.0, 0.5)}
    said = axes(Restarts(both, both), found, True, Box(2))
    assert "components of the differences have other axes (MCC 0.500)" in said.seen
    in_box, outside = (axes(Restarts(both, both), {}, False, s) for s in (Box(2), Euclidean(2)))
    assert in_box.level == outside.level == "caution"
    assert "in a box that is not filled" in in_box.means
    assert "in a box" not in outside.means
    assert in_box.advice.startswith('conditional="laplace"')
    assert outside.advice.startswith('space="box" or conditional="laplace"')


def test_codes_are_counted_from_one():
    intrinsic = Intrinsic(3.0, 0.0, 5)
    found = Dimensions(
        [True, False, True, True, False],
        np.array([0.1, 0.0, below(0.1), -0.5, 0.0]),
        np.ones(5),
        intrinsic,
        None,
        None,
        None,
    )
    still, noise = codes(found)
    assert still.seen == "Codes 2, 5 do not vary."
    assert still.advice.startswith("n_components=3,")
    assert noise.seen == "Codes 3, 4 are not shared within pairs."
    assert noise.advice.startswith("n_components=3,")
    assert still.level == noise.level == "wrong"


def test_a_sphere_is_proposed_where_there_is_none():
    assert [found.advice for found in directions(Box(3), Sphere(3))] == ['space="sphere".']
    assert not list(directions(Sphere(3), Sphere(3)))
    assert not list(directions(Box(3), Box(3)))


def test_the_number_of_codes_that_is_proposed():
    for found, space, words in (
        (filling(1.6, 0.1), Box(3), 'n_components=2, or learn_precision=True, or space="sphere".'),
        (filling(2.7, 0.1), Box(3), "n_components=2,"),  # one of them is a function of others
        (filling(0.2, None), Sphere(4), "n_components=1, or learn_precision=True."),
    ):
        assert surface(found, space, rows(codes=3)).advice.startswith(words)
    seen = surface(filling(1.64, 0.103, error=0.06), Box(3), rows(codes=3)).seen
    assert "dimension of 1.6 ± 0.1 out of 3; up to 90% of a code" in seen
    assert surface(filling(2.5, None), Sphere(4), rows(codes=3)).seen.endswith("out of 3.")
    # two standard errors below nine tenths of the room
    for error, level in ((0.34, "wrong"), (0.36, "fine")):
        assert surface(filling(2.0, None, error), Sphere(4), rows(codes=3)).level == level


@pytest.mark.parametrize(
    ("share", "error", "independent", "expected"),
    [
        (below(0.15), 0.0, 99, "fine"),
        (0.0, below(0.075), 99, "fine"),
        (0.0, 0.075, 99, "unsure"),
        (0.15, 0.0, 99, "wrong"),
        (0.15, 0.5, 99, "wrong"),
        (0.15, 0.0, 2, "unsure"),
    ],
)
def test_what_codes_miss(share, error, independent, expected):
    found = Dimensions(
        [True], np.ones(1), np.ones(1), Intrinsic(1.0, 0.0, 1), 3, share, 0.5, missed_error=error
    )
    (said,) = missed(found, rows(independent))
    assert said.level == expected
    if (share, error) == (0.0, 0.075):
        assert "only known to ± 8%" in said.seen
    assert not list(missed(filling(3.0, 1.0), rows()))


@pytest.mark.parametrize(("ratio", "expected"), [(below(1.5), "fine"), (1.5, "caution")])
def test_codes_spread_alike(ratio, expected):
    found = Positives([], None, 0.0, ratio, 0.0)
    assert anisotropy(found, False).level == expected
    assert anisotropy(found, True).level == "fine"
    assert "learnt" in anisotropy(Positives([], None, 0.0, 1.5, 0.0), True).means


@pytest.mark.parametrize(
    ("r2", "mcc", "expected"),
    [
        ([0.9, 0.9], 0.95, "fine"),
        ([0.95, 0.95], below(0.95), "caution"),
        ([1.0, 0.94, 0.5], 0.9, "wrong"),
    ],
)
def test_true_factors(r2, mcc, expected):
    known = Truth(np.array(r2), np.array([-mcc] * len(r2)), [0], 0.0, 0.0, np.ones((1, 1)), {})
    (found,) = truth(known, 2)
    assert found.level == expected
    assert found.seen.startswith("With the true factors: R² = ")
    if expected == "wrong":
        assert found.means == "Factors 2, 3 are not recovered."
    (part,) = truth(known, 4)
    assert part.seen.startswith(f"With {len(r2)} of at least 4 true factors: ")
    assert not list(truth(None, 2))


@pytest.mark.parametrize("apart", [0, 7])
def test_the_allowance_of_codes_that_are_not_uniform(apart):
    """.04, what noise blurs, and 1.5/√rows for pairs or 1/√rows for rows of a sequence."""
    number = 3600.0
    most = 0.04 + 0.03 + (1.0 if apart else 1.5) / 60
    order = Rows(number, apart, np.zeros(3), np.zeros(3))
    for distance, level in ((most - 1e-9, "fine"), (most + 1e-9, "unsure")):
        measured = Marginal(np.array([0.0, distance, 0.01]), None, blur=0.03)
        assert _marginal(measured, filling(3.0, 1.0), Box(3), order).level == level
    for distance, words in (
        (0.0799, "They fill their space evenly"),
        (0.0801, "within what noise"),
    ):
        measured = Marginal(np.array([distance]), None, blur=0.05)
        assert words in _marginal(measured, filling(3.0, 1.0), Box(3), order).means
    few = Rows(24.0, apart, np.zeros(3), np.zeros(3))
    said = _marginal(Marginal(np.array([0.1]), None), filling(3.0, 1.0), Box(3), few)
    assert said.advice == ("a longer recording." if apart else "more pairs.")
    assert "About 24 independent rows" in said.means


@pytest.mark.parametrize(("columns", "words"), [(None, 0), (3, 1), (4, 0)])
def test_more_factors_than_columns(columns, words):
    found = Dimensions(
        [True] * 3, np.ones(3), np.ones(3), Intrinsic(3.0, 0.0, 3), columns, None, None
    )
    advice = {
        Box(3): 'more steps; space="unbounded"',
        Sphere(3): "more steps, or another space",
        Euclidean(3): 'space="box" or space="sphere"',
    }
    for space, words_of_it in advice.items():
        said = _marginal(Marginal(np.array([0.5]), None), found, space, rows())
        assert said.means.count("more factors than columns") == words
        assert said.advice.startswith(f'marginal="any"; {words_of_it}')


def test_the_numbers_of_a_conditional_are_told():
    said = _conditional(fitted(1.0, 1.3, 3.456), Laplace(1.0), rows())
    assert "shape β = 1.30 (1.00 to 3.46), the model assumes 1;" in said.seen
    pauses = _conditional(fitted(0.42), Laplace(1.0), rows())
    assert "pauses and jumps" in pauses.means
    other = _conditional(fitted(2.0), Laplace(1.0), rows())
    assert other.advice == 'conditional="normal".'
    bent = bend(Positives([], None, 0.0, 1.0, 0.2), Box(1), rows(noise=0.3))
    assert "or their noise vary" in bent.means
    assert bent.advice == 'space="unbounded".'
    assert "themselves vary" in bend(Positives([], None, 0.0, 1.0, 0.2), Sphere(3), rows()).means
