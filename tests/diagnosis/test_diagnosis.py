"""Laws of codes that are made directly, so that the truth is known, and the verdicts about them."""

import json
import math

import numpy as np
import pytest
import torch
from scipy import stats

from identica import (
    MLP,
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
from identica.diagnosis import codes_from, diagnose, diagnose_codes
from identica.diagnosis.conditional import (
    as_directions,
    code_laws,
    concentration,
    generalized_normal,
    inner_differences,
    misfit,
    position_dependence,
    uniform_distances,
)
from identica.diagnosis.dimension import (
    canonical_correlations,
    intrinsic_dimension,
    missed,
    pair_correlations,
)
from identica.diagnosis.page import write_diagnosis_page
from identica.diagnosis.truth import truth
from identica.diagnosis.verdict import DISTRUST, LINEAR, PERMUTATION, UNSURE
from identica.estimator import ContrastiveICA
from identica.estimator.pairs import Batch
from identica.metrics import linear_r2, procrustes

N = 1200


def pairs(space, conditional, n=N, seed=0):
    z = space.sample(n, generator=seed, dtype=torch.float64)
    return z.numpy(), conditional.sample(space, z, generator=seed + 1).numpy()


def rotation(n, seed=0):
    return np.linalg.qr(np.random.default_rng(seed + 3).normal(size=(n, n)))[0]


def judged(maps, space, conditional, *, true=None, pair=None, **more):
    """The diagnosis of codes that are maps of the factors of a process on the space."""
    z, z_pos = pairs(space, true or conditional) if pair is None else pair
    codes = [codes_from(m(z), m(z_pos), conditional) for m in maps]
    return diagnose_codes(codes, space, conditional, **more)


def same(z):
    return z


def swapped(z):
    return 1 - z[:, ::-1]


def level(diagnosis, check):
    return {finding.check: finding.level for finding in diagnosis.findings}.get(check)


def advice(diagnosis, check):
    return next(finding.advice for finding in diagnosis.findings if finding.check == check)


# --- laws -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [1.0, 2.0, 3.0])
def test_shape_and_scale_lie_in_their_intervals(shape):
    shapes = scales = 0
    for seed in range(20):
        law = generalized_normal(stats.gennorm(shape, scale=0.05).rvs(1500, random_state=seed))
        shapes += law.shape_interval[0] < shape < law.shape_interval[1]
        scales += law.scale_interval[0] < 0.05 < law.scale_interval[1]
    assert shapes >= 16
    assert scales >= 16
    assert law.family == {1: "laplace", 2: "normal", 3: "gennorm3"}[shape]


def test_the_fit_is_the_maximum_of_the_likelihood():
    d = stats.gennorm(1.6, scale=3.0).rvs(1000, random_state=0)
    law = generalized_normal(d, resamples=2)
    shape, _, scale = stats.gennorm.fit(d, floc=0)
    assert law.shape == pytest.approx(shape, rel=0.01)
    assert law.scale == pytest.approx(scale, rel=0.01)


def test_walls_do_not_bend_the_fitted_shape():
    z, z_pos = pairs(Box(2), Laplace(0.1), 8000)
    laws = code_laws(inner_differences(z, z_pos, Box(2)))
    for law in laws:
        # a wall is still felt a little by the wide tails of a Laplace law
        assert law.shape == pytest.approx(1.0, abs=0.12)
    everywhere = pairs(Box(2), Normal(1.0), 8000)
    assert code_laws(inner_differences(*everywhere, Box(2))) == [None, None]


@pytest.mark.parametrize("kappa", [1.0, 10.0, 300.0])
def test_concentration_of_von_mises_fisher(kappa):
    z, z_pos = pairs(Sphere(4, radius=2.0), VonMisesFisher(kappa), 20_000)
    assert concentration(z, z_pos) == pytest.approx(kappa, rel=0.05)


def test_concentration_of_unrelated_and_equal_pairs():
    z = Sphere(3).sample(100, generator=0).numpy()
    assert concentration(z, -z) == 0
    assert concentration(z, z) >= 1e5


@pytest.mark.parametrize("shape", [1.0, 2.0])
def test_misfit_is_the_distance_of_distribution_functions(shape):
    d = stats.laplace(scale=2.0).rvs(4000, random_state=0)
    scale = {1: np.abs(d).mean(), 2: np.sqrt(2 * np.mean(d**2))}[shape]
    expected = stats.kstest(d, stats.gennorm(shape, scale=scale).cdf).statistic
    assert misfit([d], shape) == pytest.approx(expected)
    assert (misfit([d], shape) < 0.03) == (shape == 1)


LINEAR_SPACES = [
    (Box(3), Laplace(0.05)),
    (Box(3), Normal(0.4)),  # walls are felt everywhere
    (Sphere(3), VonMisesFisher(10.0)),
    (Sphere(4), VonMisesFisher(1.0)),
]


@pytest.mark.parametrize(("space", "conditional"), LINEAR_SPACES)
def test_the_same_law_everywhere_has_no_bend(space, conditional):
    z, z_pos = pairs(space, conditional)
    law = (
        concentration(z, z_pos)
        if isinstance(space, Sphere)
        else code_laws(inner_differences(z, z_pos, space))
    )
    assert position_dependence(z, z_pos, space, law) < 0.15


def test_a_rotation_or_a_stretch_is_no_bend():
    z = np.random.default_rng(0).normal(size=(N, 3))
    z_pos = z + 0.1 * np.random.default_rng(1).normal(size=z.shape)
    h, h_pos = (part @ rotation(3) * [1, 5, 0.2] for part in (z, z_pos))
    law = code_laws(inner_differences(h, h_pos, Euclidean(3)))
    assert position_dependence(h, h_pos, Euclidean(3), law) < 0.1


def test_a_bend_is_measured_by_its_slope():
    """h = e^{az} spreads as e^{az}, whose logarithm has the standard deviation a/√12."""
    z = np.random.default_rng(0).uniform(size=(20_000, 1))
    z_pos = z + 0.01 * np.random.default_rng(1).normal(size=z.shape)
    h, h_pos = np.exp(0.8 * z), np.exp(0.8 * z_pos)
    law = code_laws(inner_differences(h, h_pos, Euclidean(1)))
    bend = position_dependence(h, h_pos, Euclidean(1), law)
    assert bend == pytest.approx(0.8 / math.sqrt(12), rel=0.15)


def test_a_bend_across_codes_is_seen():
    z = np.random.default_rng(0).uniform(-1, 1, size=(N, 2))
    z_pos = z + 0.03 * np.random.default_rng(1).normal(size=z.shape)
    h, h_pos = (np.c_[part[:, 0] + part[:, 1] ** 2, part[:, 1]] for part in (z, z_pos))
    law = code_laws(inner_differences(h, h_pos, Euclidean(2)))
    assert position_dependence(h, h_pos, Euclidean(2), law) > 0.4


def test_distance_from_uniform_of_each_code():
    rng = np.random.default_rng(0)
    h = np.c_[rng.uniform(2, 5, N), rng.normal(size=N)]
    flat, normal = uniform_distances(h, Box(2))
    assert flat < 0.03
    low, high = np.quantile(h[:, 1], (0.001, 0.999))
    expected = stats.kstest(h[:, 1], stats.uniform(low, high - low).cdf).statistic
    assert normal == pytest.approx(expected)
    assert uniform_distances(Sphere(5).sample(N, generator=0).numpy(), Sphere(5)).max() < 0.05


# --- dimensions -------------------------------------------------------------------------------------


def test_correlations_of_pairs():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(4000, 3))
    z_pos = z * [1, 0.5, 0] + rng.normal(size=z.shape) * [0, math.sqrt(0.75), 1]
    expected = [np.corrcoef(z[:, k], z_pos[:, k])[0, 1] for k in range(3)]
    assert pair_correlations(z, z_pos) == pytest.approx(expected)
    turned = canonical_correlations(z @ rotation(3), z_pos @ rotation(3, seed=1))
    assert turned == pytest.approx([1, 0.5, 0], abs=0.06)
    still = np.c_[z[:, :2], np.ones(len(z))]
    assert canonical_correlations(still, still) == pytest.approx([1, 1, 0])
    assert pair_correlations(still, still)[2] == 0


@pytest.mark.parametrize("n", [2, 4])
def test_codes_that_fill_their_space(n):
    full = intrinsic_dimension(Box(n).sample(4000, generator=0).numpy() @ rotation(n), Box(n))
    assert full.dimension == pytest.approx(n, abs=0.3)
    sphere = intrinsic_dimension(Sphere(n + 1).sample(4000, generator=0).numpy(), Sphere(n + 1))
    assert sphere.room == n
    assert sphere.dimension == pytest.approx(n, abs=0.3)


def test_codes_on_a_bent_surface():
    z = Box(2).sample(N, generator=0).numpy()
    h = np.c_[z, np.sin(3 * z.sum(1)), np.cos(2 * z[:, 0])]
    assert intrinsic_dimension(h, Box(4)).dimension == pytest.approx(2, abs=0.3)


def test_a_factor_that_codes_leave_out_is_missed():
    z, z_pos = pairs(Box(3), Normal(0.05))
    mix = rotation(3)
    x, x_pos = (np.c_[np.tanh(2 * part @ mix), part] for part in (z, z_pos))
    nothing, told = missed(x, x_pos, np.exp(z), np.exp(z_pos))
    assert nothing < 0.05
    assert told > 0.95
    something, told = missed(x, x_pos, z[:, :2], z_pos[:, :2])
    assert something > 0.5
    assert told < 0.8


def test_noise_is_not_missed():
    z, z_pos = pairs(Box(2), Normal(0.05))
    rng = np.random.default_rng(0)
    x, x_pos = (np.c_[part, rng.normal(size=part.shape)] for part in (z, z_pos))
    nothing, told = missed(x, x_pos, z, z_pos)
    assert nothing < 0.1
    assert told == pytest.approx(0.5, abs=0.05)


# --- verdicts ---------------------------------------------------------------------------------------


def test_factors_themselves():
    found = judged([same, swapped, same], Box(3), Laplace(0.05))
    assert found.verdict == PERMUTATION
    assert all(finding.level == "fine" for finding in found.findings)
    assert found.restarts.permutation.shape == (3, 3)
    assert abs(found.score.control) < 0.02
    assert found.score.bits > 3


@pytest.mark.parametrize("space", [Box(3), Sphere(3)])
def test_rotations_are_a_linear_map(space):
    conditional = VonMisesFisher(10.0) if isinstance(space, Sphere) else Normal(0.05)
    turns = [lambda z, seed=seed: z @ rotation(3, seed) for seed in range(2)]
    found = judged(turns, space, conditional)
    assert found.verdict == LINEAR
    assert level(found, "axes") == "caution"


def test_a_rotation_that_all_restarts_share_is_found_out():
    found = judged(
        [lambda z: z @ rotation(3), lambda z: 2 * z @ rotation(3)], Box(3), Laplace(0.05)
    )
    assert found.restarts.mean_permutation == pytest.approx(1)
    assert found.verdict == LINEAR


def test_no_axes_without_a_sign_of_them():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(N, 3))
    pair = z, z + 0.3 * rng.normal(size=z.shape)
    for conditional in (Laplace(1.0), Normal(1.0)):
        found = judged([same, same], Euclidean(3), conditional, pair=pair)
        assert found.verdict == UNSURE  # no theorem holds
        assert level(found, "axes") == "caution"
    walls = judged([same, same], Box(3), Normal(1.0), pair=pair)  # which nothing comes near to
    assert level(walls, "axes") == "caution"


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
        assert level(diagnose_codes([known, known], Box(2), Laplace(0.05)), "memory") == expected


def test_other_codes_from_each_start():
    rng = np.random.default_rng(0)
    noise = [rng.normal(size=(N, 3)) for _ in range(2)]
    z, z_pos = pairs(Box(3), Normal(0.05))
    codes = [codes_from(0.2 * z + e, 0.2 * z_pos + e, Normal(0.05)) for e in noise]
    found = diagnose_codes(codes, Euclidean(3), Normal(0.05))
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
    seen = Batch(torch.from_numpy(z), torch.from_numpy(z_pos))
    codes = codes_from(z[:, :2], z_pos[:, :2], Normal(0.05))
    found = diagnose_codes([codes, codes], Box(2), Normal(0.05), observations=seen)
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
    x, x_pos = torch.from_numpy(z), torch.from_numpy(z_pos)
    wide = Batch(torch.cat([x, x.tanh()], 1), torch.cat([x_pos, x_pos.tanh()], 1))
    for seen, more in ((Batch(x, x_pos), True), (wide, False)):
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


def test_directions_are_recognised_in_a_space_without_them():
    z, z_pos = pairs(Sphere(3), VonMisesFisher(10.0))
    stretch = rotation(3) * [1, 3, 0.5]
    h, h_pos = (part @ stretch + 2 for part in (z, z_pos))
    y, y_pos = as_directions(h, h_pos)
    assert procrustes(z, y).error < 1e-6
    assert linear_r2(z_pos, y_pos) == pytest.approx(1)
    box = pairs(Box(3), Normal(0.05))
    assert as_directions(*box) is None
    half = z[:, 0] > 0  # a bowl is no sphere
    assert as_directions(h[half], h_pos[half]) is None
    found = judged([same, lambda z: z @ rotation(3)], Euclidean(3), Normal(1.0), pair=(h, h_pos))
    assert found.verdict == LINEAR
    assert advice(found, "space") == 'space="sphere".'
    assert found.dimensions.intrinsic.room == 2


def test_true_factors_decide():
    z, z_pos = pairs(Box(3), Laplace(0.05), 400)
    turned = z @ rotation(3)
    code = codes_from(z, z_pos, Laplace(0.05))
    for h, expected in ((-z, PERMUTATION), (turned, LINEAR), (np.exp(4 * z), DISTRUST)):
        found = truth(z, h)
        diagnosis = diagnose_codes([code, code], Box(3), Laplace(0.05), truth=found)
        assert diagnosis.verdict == expected
    assert found.r2.shape == (3,)
    rotated = truth(z, turned)
    assert rotated.procrustes < 1e-9
    assert rotated.isometry < 1e-9


def test_every_metric():
    """Factors themselves score 1, their mixture loses what is code by code, constants score 0."""
    z = pairs(Box(3), Laplace(0.05))[0]
    best, turned, nothing = (truth(z, h).scores for h in (-z, z @ rotation(3), np.ones_like(z)))
    names = {name.split()[0].lower() for name in best}
    assert names >= {
        "r²",
        "mcc",
        "dci",
        "infomec",
        "mig",
        "sap",
        "modularity",
        "betavae",
        "factorvae",
    }
    loose = {"MIG"}  # cannot reach 1 for continuous factors
    assert all(value > 0.9 for name, value in best.items() if name not in loose)
    assert turned["R²"] == pytest.approx(1)
    for name in ("MCC", "MIG", "SAP", "DCI disentanglement", "InfoMEC modularity"):
        assert turned[name] < 0.9 * best[name]
        assert nothing[name] == pytest.approx(0, abs=1e-9)
    one = truth(z[:, :1], z).scores
    assert one["R²"] == pytest.approx(1)
    coarse = np.round(z * 3)  # discrete factors
    assert truth(coarse, coarse).scores["BetaVAE"] == 1


def test_a_product_of_spaces():
    space = Product(Sphere(3), Box(2))
    joint = Joint((VonMisesFisher(20.0), 3), (Laplace(0.05), 2))
    found = judged([same, same], space, joint)
    assert found.verdict == LINEAR
    assert found.dimensions.intrinsic.room == 4
    assert found.laws.concentration == pytest.approx(20, rel=0.1)
    assert [law is None for law in found.laws.codes] == [True, True, True, False, False]


# --- what is handed over ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def found():
    z, z_pos = pairs(Box(2), Laplace(0.05), 500)
    codes = [codes_from(part, part_pos, Laplace(0.05)) for part, part_pos in [(z, z_pos)] * 2]
    return diagnose_codes(codes, Box(2), Laplace(0.05), truth=truth(z, z))


def test_text_and_json(found):
    text = str(found)
    assert text.startswith(f"Verdict: {found.verdict}.")
    assert all(f"[{f.level}] {f.check}:" in text for f in found.findings)
    numbers = json.loads(found.to_json())
    assert numbers["verdict"] == found.verdict
    assert numbers["score"]["bits"] == found.score.bits
    assert len(numbers["laws"]["codes"]) == 2
    assert np.shape(numbers["restarts"]["linear"]) == (2, 2)


@pytest.mark.parametrize("kind", ["box", "sphere", "constant"])
def test_the_page_stands_alone(found, kind, tmp_path):
    if kind == "sphere":
        found = judged([same, same], Sphere(3), VonMisesFisher(10.0))
    elif kind == "constant":
        found = judged([lambda z: 0 * z, lambda z: 0 * z], Box(2), Laplace(0.05))
    write_diagnosis_page(tmp_path / "page.html", found)
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert found.verdict in text.lower()
    assert all(finding.check in text for finding in found.findings)
    assert text.count("data:image/png;base64,") == 5 + (found.truth is not None)
    assert "http" not in text
    for heading in ("Factor by factor", "Every metric"):
        assert (heading in text) == (found.truth is not None)


def test_bad_input(found):
    z, z_pos = pairs(Box(2), Laplace(0.05), 100)
    code = codes_from(z, z_pos, Laplace(0.05))
    with pytest.raises(InputError, match=r"h must be finite: 1 of 100"):
        codes_from(np.where(np.arange(200).reshape(100, 2) == 7, np.nan, z), z_pos, Laplace(0.05))
    with pytest.raises(InputError, match=r"h_pos must have the shape of h, \(100, 2\)"):
        codes_from(z, z_pos[:, :1], Laplace(0.05))
    with pytest.raises(InputError, match=r"at least 2 models to compare, got 1"):
        diagnose_codes([code], Box(2), Laplace(0.05))
    few = codes_from(z[:3], z_pos[:3], Laplace(0.05))
    with pytest.raises(InputError, match=r"pairs must be at least 20 to be judged by, got 3"):
        diagnose_codes([few, few], Box(2), Laplace(0.05))
    with pytest.raises(InputError, match=r"codes\[0\] has 100, codes\[1\] has 3"):
        diagnose_codes([code, few], Box(2), Laplace(0.05))
    with pytest.raises(InputError, match=r"at least one restart of it, got 0"):
        diagnose([], Batch(torch.zeros(2, 2), torch.zeros(2, 2)))


# --- the estimator ----------------------------------------------------------------------------------


def small(shape, n):
    return MLP(shape[0], n, hidden=(16, 16))


@pytest.fixture(scope="module")
def fitted():
    z, z_pos = pairs(Box(2), Laplace(0.05), 3000)
    x, x_pos = (np.c_[part @ rotation(2), part[:, 0] ** 2] for part in (z, z_pos))
    ica = ContrastiveICA(2, conditional="laplace", network=small, steps=300, batch=128)
    return ica.fit(x, x_pos), z, x, x_pos


def test_an_estimator_of_known_factors(fitted):
    ica, z, x, x_pos = fitted
    without, known = ica.diagnose(x, x_pos), ica.diagnose(x, x_pos, Z=z)
    assert known.truth.mcc > 0.95
    assert known.verdict == PERMUTATION
    assert without.verdict == PERMUTATION
    assert without.pairs == 600
    assert without.restarts.linear.shape == (2, 2)
    # the restarts are other fits, although the network would always begin with the same weights
    assert known.restarts.linear[0, 1] < 1 - 1e-9
    # and the same ones each time
    assert np.array_equal(known.restarts.linear, without.restarts.linear)
    assert known.laws.bend == without.laws.bend


def test_an_estimator_of_unrelated_pairs(fitted):
    _, _, x, x_pos = fitted
    ica = ContrastiveICA(2, network=small, steps=30, batch=128)
    unrelated = np.roll(x_pos, 7, axis=0)
    assert ica.fit(x, unrelated).diagnose(x, unrelated).verdict == DISTRUST


def test_sequences_and_samplers(monkeypatch):
    monkeypatch.setattr("identica.diagnosis.JUDGED", 500)
    x = np.random.default_rng(0).normal(size=(300, 2)).cumsum(axis=0)
    ica = ContrastiveICA(2, network=small, steps=5, batch=32).fit(x, lag=2)
    found = ica.diagnose(x, restarts=3)
    assert 50 <= found.pairs <= 70
    assert found.restarts.linear.shape == (3, 3)
    assert ica.diagnose(x, restarts=3).to_json() == found.to_json()

    def draw(size, *, generator):
        z = torch.randn(size, 2, generator=generator)
        return z, z + 0.1 * torch.randn(size, 2, generator=generator)

    drawn = ContrastiveICA(2, network=small, steps=5, batch=32).fit(draw)
    assert drawn.diagnose(draw).pairs == 500
    with pytest.raises(InputError, match="Z must not be given where X draws pairs"):
        drawn.diagnose(draw, Z=x)


def test_bad_input_to_the_estimator(fitted):
    ica, z, x, x_pos = fitted
    with pytest.raises(InputError, match="restarts must be a whole number of at least 2, got 1"):
        ica.diagnose(x, x_pos, restarts=1)
    with pytest.raises(InputError, match="Z must have a row for each of 3000 rows of X, got 7"):
        ica.diagnose(x, x_pos, Z=z[:7])
    with pytest.raises(InputError, match="X must hold at least 100 pairs to be judged, got 50"):
        ica.diagnose(x[:50], x_pos[:50])
    with pytest.raises(InputError, match="NaN"):
        ica.diagnose(np.where(x > 0.5, np.nan, x), x_pos)
    with pytest.raises(InputError, match="n_samples"):
        ica.diagnose(x[:1], x_pos[:1])
