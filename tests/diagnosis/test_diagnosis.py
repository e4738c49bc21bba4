"""Verdicts about codes that are made directly, so that the truth is known."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from helpers.codes import N, advice, held_out, judged, level, noisy, pairs, same, swapped, walk
from identica import (
    Box,
    Euclidean,
    InputError,
    Joint,
    Laplace,
    Normal,
    Product,
    Sphere,
    VonMisesFisher,
)
from identica.diagnosis import codes_from, diagnose
from identica.diagnosis.truth import truth
from identica.diagnosis.verdict import DISTRUST, LINEAR, PERMUTATION, UNSURE, Finding
from identica.metrics import linear_r2


def test_factors_themselves():
    found = judged([same, swapped, same], Box(3), Laplace(0.05))
    assert found.verdict == PERMUTATION
    assert all(finding.level == "fine" for finding in found.findings)
    assert found.restarts.permutation.shape == (3, 3)
    assert abs(found.score.control) < 0.02
    assert found.score.bits > 3


def test_the_headline_is_cautious_where_an_assumption_fails_and_not_about_the_axes():
    found = judged([same, same], Box(2), Laplace(0.05))
    fine = [Finding("score", "fine", "…", "All is well.")]
    doubt = Finding("marginal", "caution", "…", "It is skewed. So are others.")
    axes = [Finding(name, "caution", "…", "The axes are free.") for name in ("axes", "truth")]
    plain = f"{PERMUTATION}."
    for findings, expected in (
        (fine, plain),
        ([*fine, *axes], plain),
        ([*axes, doubt], f"{PERMUTATION}, with caution. It is skewed."),
    ):
        assert replace(found, findings=findings).headline == expected
    unsure = replace(found, verdict=UNSURE, findings=[doubt, *fine])
    assert unsure.headline == f"{UNSURE}. It is skewed."


def test_unrelated_pairs():
    z, z_pos = pairs(Box(3), Laplace(0.05))
    found = judged([same, same], Box(3), Laplace(0.05), pair=(z, np.roll(z_pos, 1, axis=0)))
    assert found.verdict == DISTRUST
    assert level(found, "score") == "wrong"
    assert abs(found.score.bits) < 0.05


def test_pairs_learnt_by_heart():
    z, z_pos = pairs(Box(2), Laplace(0.05))
    code = codes_from(z, z_pos, Laplace(0.05))
    for seen, expected in ((20 * code.bits.mean(), "wrong"), (code.bits.mean(), "fine")):
        known = code._replace(seen=float(seen))
        assert level(diagnose([known, known], Box(2), Laplace(0.05)), "memory") == expected


def test_other_codes_from_each_start():
    rng = np.random.default_rng(0)
    noise = [rng.normal(size=(N, 3)) for _ in range(2)]
    z, z_pos = pairs(Box(3), Normal(0.05))
    codes = [codes_from(0.2 * z + e, 0.2 * z_pos + e, Normal(0.05)) for e in noise]
    found = diagnose(codes, Euclidean(3), Normal(0.05))
    assert found.verdict == DISTRUST
    assert level(found, "restarts") == "wrong"


def test_a_bend_that_all_restarts_share():
    def bent(z):
        return np.exp(3 * z)

    z = pairs(Box(3), Normal(0.05))[0]
    assert truth(z, bent(z)).mean_r2 < 0.95
    found = judged([bent, bent], Box(3), Normal(0.05))
    assert found.verdict == DISTRUST
    assert level(found, "bend") == "wrong"


def test_constant_and_useless_codes():
    def still(z):
        return np.c_[z[:, :2], np.full(len(z), 0.3)]

    found = judged([still, still], Box(3), Laplace(0.05))
    assert found.verdict == DISTRUST
    assert advice(found, "codes").startswith("n_components=2")
    assert found.dimensions.varies == [True, True, False]
    nothing = judged([lambda z: 0 * z, lambda z: 0 * z], Box(3), Laplace(0.05))
    assert nothing.verdict == DISTRUST
    assert level(nothing, "score") == "wrong"
    json.loads(nothing.to_json())


def test_a_missing_factor_and_a_repeated_one():
    z, z_pos = pairs(Box(3), Normal(0.05))
    seen = (z, z_pos)
    codes = codes_from(z[:, :2], z_pos[:, :2], Normal(0.05))
    found = diagnose([codes, codes], Box(2), Normal(0.05), observations=seen)
    assert found.verdict == DISTRUST
    assert level(found, "missed") == "wrong"
    bent = judged(
        2 * [lambda z: np.c_[z, z[:, 0] ** 2]], Box(3), Normal(0.05), pair=(z[:, :2], z_pos[:, :2])
    )
    assert bent.verdict == DISTRUST
    assert level(bent, "dimension") == "wrong"
    assert advice(bent, "dimension").startswith("n_components=2")


def test_what_to_try():
    another = judged([same, swapped], Box(3), Normal(0.05), true=Laplace(0.05))
    assert another.verdict == PERMUTATION  # in a box it does not matter much
    assert advice(another, "conditional") == 'conditional="laplace".'
    z, z_pos = pairs(Box(3), Laplace(0.05))
    scale = np.array([1, 1, 4])
    uneven = judged([same, same], Euclidean(3), Laplace(0.05), pair=(z * scale, z_pos * scale))
    assert advice(uneven, "anisotropy") == "learn_precision=True."
    learnt = judged(
        [same, same],
        Euclidean(3),
        Laplace(0.05),
        pair=(z * scale, z_pos * scale),
        learn_precision=True,
    )
    assert level(learnt, "anisotropy") == "fine"


def test_codes_that_are_not_uniform_prove_nothing():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(N, 2))
    z_pos = z + 0.1 * rng.normal(size=z.shape)
    wide = np.c_[z, np.tanh(z)], np.c_[z_pos, np.tanh(z_pos)]
    for seen, more in (((z, z_pos), True), (wide, False)):
        found = judged([same, same], Box(2), Normal(0.1), pair=(z, z_pos), observations=seen)
        assert found.verdict == UNSURE
        assert level(found, "marginal") == "unsure"
        assert ("more factors than columns" in str(found)) == more


def test_steps_that_grow_from_end_to_end_are_not_called_fine():
    """Codes in which steps are alike are then a bent image of the factors."""
    rng = np.random.default_rng(0)
    z = rng.uniform(size=(N, 2))
    z_pos = z + 0.01 * np.exp(3 * z) * rng.normal(size=z.shape)

    def even(z):
        return -np.exp(-3 * z)

    assert linear_r2(z, even(z)) < 0.95
    found = judged([even, even], Box(2), Normal(0.05), pair=(z, z_pos))
    assert found.verdict in (UNSURE, DISTRUST)


def test_a_product_of_spaces():
    space = Product(Sphere(3), Box(2))
    joint = Joint((VonMisesFisher(20.0), 3), (Laplace(0.05), 2))
    found = judged([same, same], space, joint)
    assert found.verdict == LINEAR
    assert found.dimensions.intrinsic.room == 4
    assert found.positives.concentration == pytest.approx(20, rel=0.1)
    assert [fit is None for fit in found.positives.codes] == [True, True, True, False, False]


def test_text_and_json():
    found = judged([same, same], Box(2), Laplace(0.05))
    text = str(found)
    assert text.startswith(f"Verdict: {found.verdict}.")
    assert all(f"[{f.level}] {f.check}:" in text for f in found.findings)
    numbers = json.loads(found.to_json())
    assert numbers["verdict"] == found.verdict
    assert numbers["score"]["bits"] == found.score.bits
    assert len(numbers["positives"]["codes"]) == 2
    assert np.shape(numbers["restarts"]["linear"]) == (2, 2)


def test_bad_input():
    z, z_pos = pairs(Box(2), Laplace(0.05), 100)
    code = codes_from(z, z_pos, Laplace(0.05))
    with pytest.raises(InputError, match=r"h must be finite: 1 of 100"):
        codes_from(np.where(np.arange(200).reshape(100, 2) == 7, np.nan, z), z_pos, Laplace(0.05))
    with pytest.raises(InputError, match=r"h_pos must have the shape of h, \(100, 2\)"):
        codes_from(z, z_pos[:, :1], Laplace(0.05))
    with pytest.raises(InputError, match=r"at least 2 models, got 1"):
        diagnose([code], Box(2), Laplace(0.05))
    few = codes_from(z[:3], z_pos[:3], Laplace(0.05))
    with pytest.raises(
        InputError, match=r"codes must hold at least 20 pairs for a diagnosis, got 3"
    ):
        diagnose([few, few], Box(2), Laplace(0.05))
    with pytest.raises(InputError, match=r"codes\[0\] has 100, codes\[1\] has 3"):
        diagnose([code, few], Box(2), Laplace(0.05))
    for values, message in (
        ({"codes": [z, z]}, "codes must be a list of codes, see codes_from, got a"),
        ({"codes": [code, code._replace(bits=z)]}, r"bits must be 100 numbers, got \(100, 2\)"),
        ({"codes": [code, code._replace(h_pos=z[:7])]}, "h_pos must have the shape of h"),
        ({"codes": [code, code._replace(h=1e300 * z)]}, "must be at most 1e"),
        ({"space": Box(3)}, "codes must have 3 columns, as .*, got 2"),
        ({"space": "box"}, "space must be a space"),
        ({"conditional": "normal"}, "conditional must be a family"),
        ({"observations": z}, "observations must be x and x_pos, got 100 members"),
        ({"observations": (z, z[:7])}, "h has 100, x has 100, x_pos has 7"),
        ({"times": 3}, "times must be steps in time, got 3"),
        ({"times": [np.arange(100), np.full(100, np.nan)]}, "times must be whole numbers"),
        ({"truth": z}, "truth must be a comparison"),
        ({"potential": 1}, "potential must be True or False"),
        ({"random_state": -1}, "random_state must be a whole number"),
    ):
        given = {"codes": [code, code], "space": Box(2), "conditional": Laplace(0.05), **values}
        with pytest.raises(InputError, match=message):
            diagnose(**given)


def test_bad_codes():
    z = np.random.default_rng(0).normal(size=(30, 2))
    both = torch.from_numpy(z), torch.from_numpy(z)
    for values, message in (
        ({"conditional": "normal"}, "conditional must be a family"),
        ({"temperature": 0}, "temperature must be greater than 0"),
        ({"seen": np.nan}, "seen must be a finite number"),
        ({"scaled": both[0]}, "scaled must be two tensors, got 30 members"),
        ({"scaled": (both[0], both[1][:7])}, r"scaled must have 30 rows, got \(7, 2\)"),
        ({"bias": both[0]}, r"bias must have 30 rows, got \(30, 2\)"),
        ({"bias": z[:, 0]}, "bias must be a tensor of floats"),
    ):
        with pytest.raises(InputError, match=message):
            codes_from(**{"h": z, "h_pos": z, "conditional": Normal(1.0), **values})


# --- sequences --------------------------------------------------------------------------------------


def judged_walk(codes, times, *, known=True, **more):
    i, j = times
    fits = [codes_from(part[i], part[j], Laplace(0.05)) for part in (codes, -codes)]
    return diagnose(fits, Box(3), Laplace(0.05), times=times if known else None, **more)


def levels(diagnosis):
    return {finding.level for finding in diagnosis.findings}


@pytest.mark.parametrize(
    ("rows", "seed", "noise"), [(1500, 2, 0.0), (3000, 2, 0.0), (3000, 3, 0.0), (3000, 0, 0.3)]
)
def test_true_factors_of_a_walk_are_never_wrong(rows, seed, noise):
    codes = noisy(walk(rows, seed=seed), noise)
    pairs = held_out(rows)
    for times, known in ((pairs, True), (pairs, False), (np.sort(pairs), False)):
        found = judged_walk(codes, times, known=known)
        assert "wrong" not in levels(found), str(found)


@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_functions_of_one_factor_are_never_called_recovered(noise):
    z = walk(6000)
    codes = noisy(np.c_[z[:, 0], z[:, 0] ** 2, np.sin(4 * z[:, 0])], noise)
    times = held_out(len(z))
    known = truth(z[times[0], :1], codes[times[0]])
    for more in ({}, {"truth": known}):
        found = judged_walk(codes, times, **more)
        assert found.verdict == DISTRUST
        assert level(found, "dimension") == "wrong"


def test_a_short_walk_has_too_few_independent_rows():
    z = walk(300)
    found = judged_walk(z, held_out(300))
    assert found.verdict == UNSURE
    assert str(found).startswith("Verdict: uncertain. Too few independent rows to judge 3 codes.\n")
    assert advice(found, "rows").startswith("a longer recording")


def test_a_sequence_in_a_random_order():
    z = np.random.default_rng(0).permutation(walk(3000))
    i, j = held_out(len(z))
    found = judged_walk(z, (i, j), observations=(z[i], z[j]))
    assert found.verdict == DISTRUST
    assert str(found).startswith("Verdict: do not trust. Nothing can be predicted: ")
    assert advice(found, "score").startswith("check what is paired with what")


def test_one_remedy_first_things_first():
    """Memorised pairs: restarts differ, codes miss something, and so on, but none of it is the cause."""
    z, z_pos = pairs(Box(3), Laplace(0.05))
    rng = np.random.default_rng(0)
    codes = [0.1 * z + rng.normal(size=z.shape) for _ in range(2)]
    fits = [codes_from(h, h, Laplace(0.05))._replace(seen=30.0) for h in codes]
    found = diagnose(fits, Box(3), Laplace(0.05), observations=(z, z_pos))
    wrong = [finding.check for finding in found.findings if finding.level == "wrong"]
    assert wrong[0] == "memory"
    assert len(wrong) > 2
    assert str(found).count("Try:") == 1
    assert advice(found, "memory") == "more pairs, fewer steps, or a smaller network."
    assert len(str(found).splitlines()) < 16


def test_unrelated_pairs_that_were_memorised_are_unrelated_first():
    z, z_pos = pairs(Box(3), Laplace(0.05))
    pair = z, np.roll(z_pos, 1, axis=0)
    code = codes_from(*pair, Laplace(0.05))._replace(seen=8.0)
    found = diagnose([code, code], Box(3), Laplace(0.05), observations=pair)
    assert [finding.check for finding in found.findings[:2]] == ["score", "memory"]


# --- true factors -----------------------------------------------------------------------------------


def test_some_true_factors_decide_about_themselves_alone():
    z, z_pos = pairs(Box(3), Laplace(0.05))
    code = codes_from(z, z_pos, Laplace(0.05))
    part = diagnose([code, code], Box(3), Laplace(0.05), truth=truth(z[:, :1], z))
    assert part.verdict == PERMUTATION
    assert "With 1 of at least 3 true factors" in str(part)
    lost = diagnose([code, code], Box(3), Laplace(0.05), truth=truth(z[:, :1] ** 8, z))
    assert lost.verdict == DISTRUST
    # two findings are wrong: the one factor that was kept does not lift the verdict
    copies = (
        np.c_[z[:, 0], z[:, 0] ** 2, np.ones(N)],
        np.c_[z_pos[:, 0], z_pos[:, 0] ** 2, np.ones(N)],
    )
    code = codes_from(*copies, Laplace(0.05))
    found = diagnose([code, code], Box(3), Laplace(0.05), truth=truth(z[:, :1], copies[0]))
    assert found.truth.mcc > 0.99
    assert found.verdict == DISTRUST


def test_all_true_factors_settle_what_was_only_suspected():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(N, 2))
    pair = z, z + 0.1 * rng.normal(size=z.shape)
    assert judged([same, same], Box(2), Normal(0.1), pair=pair).verdict == UNSURE
    found = judged([same, same], Box(2), Normal(0.1), pair=pair, truth=truth(z, z))
    assert found.verdict == PERMUTATION
    assert level(found, "marginal") == "caution"
    # but not whether pairs are related, nor what else there is in the observations
    strangers = z, np.roll(pair[1], 1, axis=0)
    found = judged([same, same], Box(2), Normal(0.1), pair=strangers, truth=truth(z, z))
    assert found.verdict == DISTRUST
