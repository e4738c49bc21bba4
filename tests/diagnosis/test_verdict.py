"""Each threshold of a verdict: just below and just above it, two different findings."""

import numpy as np
import pytest

from helpers.findings import above, below, filling, fitted, rows, scored
from identica import Box, Joint, Laplace, Normal, Sphere, VonMisesFisher
from identica.diagnosis.conditional import GeneralizedNormalFit, Positives
from identica.diagnosis.marginal import Marginal
from identica.diagnosis.verdict import (
    Finding,
    Restarts,
    bend,
    surface,
    verdict,
)
from identica.diagnosis.verdict import conditional as _conditional
from identica.diagnosis.verdict import marginal as _marginal
from identica.diagnosis.verdict import restarts as _restarts
from identica.diagnosis.verdict import score as _score


@pytest.mark.parametrize(
    ("score", "expected"),
    [
        # nothing to speak of in the control: 0.05 bits count as nothing
        (scored(0.05), "wrong"),
        (scored(above(0.05)), "fine"),
        # three standard errors, of the score and the control together, above the control
        (scored(0.5, error=0.0625, control=0.125, control_error=0.0625), "wrong"),
        (scored(above(0.5), error=0.0625, control=0.125, control_error=0.0625), "fine"),
        (scored(0.5, error=0.125, control=0.125), "wrong"),
        (scored(above(0.5), control=0.125, control_error=0.125), "fine"),
    ],
)
def test_a_score_must_lie_above_chance(score, expected):
    assert _score(score).level == expected


def agreeing(r2):
    linear = np.array([[1.0, r2], [r2, 1.0]])
    return Restarts(linear, linear)


@pytest.mark.parametrize(
    ("r2", "expected"),
    [
        (1.0, "fine"),
        (0.95, "fine"),
        (below(0.95), "unsure"),
        (0.95**2, "unsure"),
        (below(0.95**2), "wrong"),
        (0.0, "wrong"),
    ],
)
def test_restarts_must_agree(r2, expected):
    assert _restarts(agreeing(r2)).level == expected


def test_restarts_are_counted_and_averaged():
    linear = np.array([[1.0, 1.0, 0.9], [1.0, 1.0, 0.95], [0.9, 0.95, 1.0]])
    found = _restarts(Restarts(linear, linear))
    assert found.level == "unsure"  # their mean is .95, up to rounding: 5.7/6
    assert found.seen.startswith("3 fits")
    assert "0.950" in found.seen


@pytest.mark.parametrize(
    ("found", "conditional", "expected"),
    [
        # on a sphere, and with several families: the distance of the distribution functions
        (fitted(None, concentration=5.0, misfit=below(0.05)), VonMisesFisher(5.0), "fine"),
        (fitted(None, concentration=5.0, misfit=0.05), VonMisesFisher(5.0), "caution"),
        (fitted(1.0, misfit=below(0.05)), Joint((Laplace(1.0), 1)), "fine"),
        (fitted(1.0, misfit=0.05), Joint((Laplace(1.0), 1)), "caution"),
        # no distribution could be fitted
        (fitted(None, None), Laplace(1.0), "caution"),
        # the median shape is nearest to another family from √2 on …
        (fitted(below(2**0.5)), Laplace(1.0), "fine"),
        (fitted(2**0.5), Laplace(1.0), "caution"),
        (fitted(2**0.5), Normal(1.0), "fine"),
        (fitted(below(6**0.5)), Normal(1.0), "fine"),
        (fitted(6**0.5), Normal(1.0), "caution"),
        # … or twice as far from the model's as another family would be
        (fitted(above(2**-0.5)), Laplace(1.0), "fine"),
        (fitted(below(2**-0.5)), Laplace(1.0), "caution"),
        (fitted(0.42), Laplace(1.0), "caution"),
        # … and more than half of the intervals leave out the model's shape
        (fitted(2.0, 2.0, 1.0, 1.0), Laplace(1.0), "fine"),
        (fitted(2.0, 2.0, 2.0, 1.0, 1.0), Laplace(1.0), "caution"),
        (fitted(2.0, 2.0, 2.0, 2.0, None), Laplace(1.0), "caution"),
    ],
)
def test_a_conditional_of_another_family_is_a_caution(found, conditional, expected):
    assert _conditional(found, conditional, rows()).level == expected


@pytest.mark.parametrize(
    ("shape", "interval", "conditional", "expected"),
    [
        (1.6, (1.0, 2.0), Laplace(1.0), "fine"),
        (1.6, (above(1.0), 2.0), Laplace(1.0), "caution"),
        (1.2, (1.0, 2.0), Normal(1.0), "fine"),
        (1.2, (1.0, below(2.0)), Normal(1.0), "caution"),
    ],
)
def test_an_interval_holds_its_ends(shape, interval, conditional, expected):
    # the shape is nearest to another family, so the interval decides
    fit = GeneralizedNormalFit(shape, 1.0, interval, (0.9, 1.1), 100)
    found = Positives([fit], None, 0.0, 1.0, 0.0)
    assert _conditional(found, conditional, rows()).level == expected


def test_noise_hides_the_family():
    found = fitted(2.0, 2.0)
    assert _conditional(found, Normal(1.0), rows(noise=0.29)).level == "fine"
    hidden = _conditional(found, Normal(1.0), rows(noise=0.3))
    assert hidden.level == "caution"
    assert "not known" in hidden.means


def test_noise_limits_the_agreement_of_restarts():
    r2 = 0.92**2  # of codes with 8 % noise each, that agree but for it
    linear = np.array([[1.0, r2], [r2, 1.0]])
    assert _restarts(Restarts(linear, linear)).level == "wrong"
    assert _restarts(Restarts(linear, linear, ceiling=r2)).level == "fine"
    assert _restarts(Restarts(linear * 0.9, linear, ceiling=r2)).level == "wrong"


@pytest.mark.parametrize(
    ("bent", "found", "expected"),
    [
        (below(0.2), rows(), "fine"),
        (0.2, rows(), "unsure"),
        (0.4, rows(), "wrong"),
        # noise may depend on the place, and few rows see few places
        (0.4, rows(noise=0.3), "unsure"),
        (0.4, rows(independent=below(3.0)), "unsure"),
        (0.4, rows(independent=3.0), "wrong"),
        (0.4, rows(independent=3.0, codes=2), "unsure"),
    ],
)
def test_a_bend_is_wrong_only_where_rows_can_tell(bent, found, expected):
    assert bend(Positives([], None, 0.0, 1.0, bent), Box(1), found).level == expected


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (filling(2.7, 0.45), "fine"),
        (filling(2.7, below(0.45)), "unsure"),
        (filling(2.7, below(0.25)), "wrong"),
        (filling(2.5, 0.45), "unsure"),
        (filling(2.5, below(0.45)), "wrong"),
        (filling(2.5, 0.45, error=0.1), "fine"),
        (filling(2.5, None), "wrong"),
        (filling(2.7, None), "fine"),
    ],
)
def test_codes_repeat_each_other_if_both_signs_say_so_or_one_clearly(found, expected):
    space = Box(3) if found.own is not None else Sphere(4)
    assert surface(found, space, rows(codes=3)).level == expected
    few = surface(found, space, rows(codes=3, independent=8)).level
    assert few == ("unsure" if expected == "wrong" else expected)


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        (["fine", "fine"], "recovered up to permutation and scale"),
        (["caution", "fine"], "recovered up to a linear map"),
        (["fine", "caution"], "recovered up to permutation and scale"),
        (["fine", "unsure"], "uncertain"),
        (["unsure", "caution"], "uncertain"),
        (["fine", "wrong"], "do not trust"),
        (["unsure", "wrong"], "do not trust"),
    ],
)
def test_the_gravest_finding_decides(levels, expected):
    findings = [
        Finding(check, level, "seen", "means")
        for check, level in zip(["axes", "other"], levels, strict=True)
    ]
    assert verdict(findings) == expected


def test_true_factors_of_all_codes_decide_about_axes():
    axes, truth = (
        Finding("axes", "caution", "seen", "means"),
        Finding("truth", "fine", "seen", "means"),
    )
    assert verdict([axes, truth]) == "recovered up to a linear map"
    assert verdict([axes, truth], known=True) == "recovered up to permutation and scale"


def test_a_reason_is_the_first_sentence():
    finding = Finding("rows", "unsure", "seen", "Too few rows. Nothing more. ")
    assert finding.reason == "Too few rows."


@pytest.mark.parametrize(
    ("independent", "distance", "expected"),
    [
        # the sampling error is 1/√rows: nearly any density passes with fewer than 25 rows
        (below(9.0), 0.1, "unsure"),  # three for each code
        (9.0, 0.1, "caution"),
        (24.0, 0.1, "caution"),
        (25.0, 0.1, "fine"),
        (25.0, 0.25, "unsure"),  # more than .04 + .2 from uniform
        (9.0, 0.4, "unsure"),
    ],
)
def test_few_rows_cannot_show_that_codes_are_uniform(independent, distance, expected):
    dimensions = filling(3.0, 1.0)
    measured = Marginal(np.full(3, distance), None)
    found = _marginal(measured, dimensions, Box(3), rows(independent, codes=3))
    assert found.level == expected
    assert ("cannot show" in found.means) == (distance == 0.1 and expected != "fine")
