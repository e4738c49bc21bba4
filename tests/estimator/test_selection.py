import json

import numpy as np
import pytest
import torch
from scipy.stats import kstest

from identica import (
    MLP,
    Box,
    ContrastiveICA,
    Euclidean,
    GenerativeProcess,
    InputError,
    InvertibleMLP,
    Laplace,
    Normal,
    Sphere,
    Uniform,
    VonMisesFisher,
)
from identica.estimator import selection
from identica.estimator.pairs import ArrayPairs
from identica.estimator.selection import candidates, choose, count_components, select, unevenness
from identica.estimator.sequences import sequences
from identica.estimator.starts import Starts


def names(found):
    return [(type(space).__name__, type(family).__name__) for space, family in found]


def test_names_stand_for_candidates():
    assert names(candidates("sphere", None, 3)) == [("Sphere", "VonMisesFisher")]
    assert names(candidates("auto", None, 3)) == [
        ("Sphere", "VonMisesFisher"),
        ("Box", "Normal"),
        ("Euclidean", "Normal"),
    ]
    assert names(candidates("box", "auto", 1)) == [
        ("Box", "Laplace"),
        ("Box", "Normal"),
        ("Box", "GeneralizedNormal"),
    ]
    assert len(candidates("auto", "auto", 3)) == 7
    assert len(candidates("auto", "auto", 1)) == 6  # there is no sphere in R¹
    assert candidates(Box(2, -1.0), Laplace(0.3), 2) == [(Box(2, -1.0), Laplace(0.3))]
    assert names(candidates("sphere", "vmf", 3, learn_precision=True)) == [("Sphere", "Normal")]


def test_names_that_stand_for_nothing():
    with pytest.raises(InputError, match="conditional vmf is not defined on the space box"):
        candidates("box", "vmf", 3)
    with pytest.raises(InputError, match="network must give 3 codes"):
        candidates(Box(3), None, 2)
    with pytest.raises(InputError, match="space must be one of"):
        candidates("ball", None, 2)


def decide(*evidence):
    choices = [(space, family) for space, family, _, _ in evidence]
    records = [{"bits": bits, "unevenness": uneven} for _, _, bits, uneven in evidence]
    return choices[choose(choices, records)]


SPHERE, BOX, R, BOX2 = Sphere(3), Box(3), Euclidean(3), Box(2)
VMF, NORMAL, LAPLACE = VonMisesFisher(1.0), Normal(1.0), Laplace(1.0)


def test_the_narrowest_space_that_is_nearly_as_good_is_chosen():
    rest = [(BOX, NORMAL, 4.9, 0.03), (R, NORMAL, 5.0, 0.02), (R, LAPLACE, 4.5, 0.02)]
    assert decide((SPHERE, VMF, 4.9, 0.3), *rest) == (SPHERE, VMF)
    assert decide((SPHERE, VMF, 4.5, 0.3), *rest) == (BOX, NORMAL)


def test_a_box_must_be_filled_evenly():
    rest = [(R, NORMAL, 5.0, 0.13), (R, LAPLACE, 4.5, 0.02)]
    assert decide((BOX, NORMAL, 5.2, 0.14), *rest) == (BOX, NORMAL)  # the best by far
    for bits in (5.1, 4.99):
        assert decide((BOX, NORMAL, bits, 0.14), *rest) == (R, NORMAL)


def test_codes_of_an_unbounded_model_may_fill_a_box():
    rest = [(R, NORMAL, 4.6, 0.13), (R, LAPLACE, 5.0, 0.06)]
    assert decide((BOX, LAPLACE, 4.8, 0.10), *rest) == (BOX, LAPLACE)
    rest = [(R, NORMAL, 4.6, 0.02), (R, LAPLACE, 5.0, 0.16)]  # of another family
    assert decide((BOX, LAPLACE, 4.8, 0.10), *rest) == (R, LAPLACE)


def test_the_family_is_that_of_the_best():
    rest = [(R, NORMAL, 4.95, 0.02), (R, LAPLACE, 5.0, 0.02)]
    assert decide((BOX, NORMAL, 4.96, 0.02), (BOX, LAPLACE, 4.9, 0.02), *rest) == (BOX, LAPLACE)


def test_unevenness_is_the_distance_of_kolmogorov_and_smirnov():
    rng = np.random.default_rng(0)
    codes = np.stack([rng.uniform(size=4000), rng.normal(size=4000)], axis=1)
    expected = []
    for column in codes.T:
        low, high = np.quantile(column, [0.005, 0.995])
        expected.append(kstest(np.clip((column - low) / (high - low), 0, 1), "uniform").statistic)
    assert unevenness(torch.from_numpy(codes)) == pytest.approx(np.mean(expected), abs=2e-3)


@pytest.mark.parametrize("truth", [Laplace(0.05), Normal(0.07)])
def test_the_family_of_a_known_process_is_found(truth, monkeypatch):
    monkeypatch.setattr(selection, "HELD_OUT", 1024)
    monkeypatch.setattr("identica.estimator.fit.RUNG", 100)
    mixing = InvertibleMLP(2, seed=3, layers=1, draws=50)  # a linear one, soon undone
    pairs = GenerativeProcess(Box(2), Uniform(), truth, mixing).sample(10_000, generator=0)

    def briefly(space, family, part, *at):
        given = {"steps": 100, "batch": 256, "optimizer": "soap"}
        starts = Starts(part, (2,), MLP(2, 2, hidden=(32, 32)), given)
        return starts.fit(space, family, *at, short=True)

    sample = ArrayPairs(pairs.x.numpy(), pairs.x_pos.numpy())
    found = select(candidates("unbounded", "auto", 2), sample, briefly)
    assert found.conditional.p == truth.p
    assert found.table[0]["behind"] == 0 < found.table[1]["behind"] < found.table[2]["behind"]


@pytest.mark.parametrize("paired", [True, False], ids=["pairs", "a sequence"])
def test_candidates_are_judged_by_pairs_that_none_was_trained_on(paired):
    """One candidate knows by heart what it was trained on and nothing else, the other one knows a
    little of everything: training evidence speaks for the first, held-out evidence for the second."""
    x = np.arange(400.0)[:, None]
    sample = ArrayPairs(x, x) if paired else ArrayPairs(x, within=sequences(400))

    class Known:
        def __init__(self, kept, family):
            seen = kept(400, generator=torch.Generator().manual_seed(0)).x
            self.seen, self.by_heart, self.model = (
                seen.ravel(),
                family == LAPLACE,
                torch.nn.Identity(),
            )

        def log_likelihood(self, pairs):
            known = torch.isin(pairs.x.ravel(), self.seen).double()
            return 5 * known if self.by_heart else torch.full_like(known, 2.0)

    def fit(space, family, kept, label, out):
        return Known(kept, family)

    found = select([(R, LAPLACE), (R, NORMAL)], sample, fit)
    assert found.conditional == NORMAL
    evidence = {record["conditional"]: record["bits"] for record in found.table}
    assert evidence[repr(LAPLACE)] == 0  # not one of the pairs was seen
    assert evidence[repr(NORMAL)] == pytest.approx(2 / np.log(2))


def test_the_estimator_keeps_the_choice(tmp_path):
    x = np.random.default_rng(0).normal(size=(60, 2)).cumsum(axis=0)
    ica = ContrastiveICA(2, space="auto", steps=5, batch=16).fit(x)
    found = ica.selection_
    assert len(found.table) == 3
    assert (ica.model_.space, ica.model_.conditional) == (found.space, found.conditional)
    assert f"chosen: {found.space}" in str(found)
    json.dumps(found.table)
    ica.save(tmp_path / "ica.safetensors")
    assert ContrastiveICA.load(tmp_path / "ica.safetensors").selection_ == found
    assert not hasattr(ica.set_params(space="box").fit(x), "selection_")


@pytest.mark.parametrize(("steps", "short"), [(3, 3), (70, 20), (None, 20)])
def test_candidates_are_fitted_briefly(monkeypatch, steps, short):
    monkeypatch.setattr("identica.estimator.starts.SHORT", 20)
    monkeypatch.setattr("identica.estimator.fit.RUNG", 5)
    x = np.random.default_rng(0).normal(size=(60, 2)).cumsum(axis=0)
    given = {} if steps is None else {"steps": steps}
    starts = Starts(ArrayPairs(x, within=sequences(60)), (2,), None, {"batch": 16, **given})
    found = starts.fit(BOX2, NORMAL, short=True)
    assert found.training.steps == short
    assert max(start["steps"] for start in found.starts) <= short
    assert len({(*start["network"], start["dropout"]) for start in found.starts}) == 2


def test_a_killed_selection_goes_on(tmp_path, monkeypatch):
    """What is done is found again: only what is left is trained."""
    from identica import training

    x = np.random.default_rng(0).normal(size=(60, 2)).cumsum(axis=0)
    monkeypatch.setattr("identica.estimator.starts.SHORT", 2)
    ica = ContrastiveICA(2, conditional="auto", steps=6, batch=16)
    calls, stop, forward = 0, None, training.Contrastive.forward

    def counts(self, pairs):
        nonlocal calls
        calls += 1
        if calls == stop:
            raise KeyboardInterrupt
        return forward(self, pairs)

    monkeypatch.setattr(training.Contrastive, "forward", counts)
    codes, whole = ica.fit(x).transform(x), calls
    candidates_of_two_steps = 3 * 2 * (2 + 2)  # three candidates, two recipes from two starts
    assert whole > candidates_of_two_steps
    ica.set_params(folder=tmp_path)
    calls, stop = 0, 12  # the fourth start of the first candidate: its last step was not saved
    with pytest.raises(KeyboardInterrupt):
        ica.fit(x)
    calls, stop = 0, None
    assert np.array_equal(ica.fit(x).transform(x), codes)
    assert calls == whole - 10
    calls = 0
    assert np.array_equal(ica.fit(x).transform(x), codes)
    assert calls == 0


# --- how many codes ---------------------------------------------------------------------------------


def test_codes_are_added_until_two_more_bring_nothing():
    curve = {1: 1.0, 2: 2.0, 3: 3.0, 4: 3.02, 5: 3.03, 6: 9.0}
    tried = count_components(curve.get, 20)
    assert tried == {n: curve[n] for n in (1, 2, 3, 4, 5)}
    assert list(count_components(curve.get, 2)) == [1, 2]
    assert list(count_components(curve.get, 3, least=2)) == [2, 3]
    assert list(count_components(curve.get, 1, least=2)) == [2]


def test_one_code_more_may_be_too_few_to_help():
    """A circle needs two codes, and the first of them alone shows nothing."""
    curve = {1: 1.0, 2: 0.99, 3: 2.0, 4: 2.0, 5: 2.0}
    assert 3 in count_components(curve.get, 20)


def test_the_number_of_codes_is_that_of_the_factors(monkeypatch, tmp_path):
    monkeypatch.setattr(selection, "COMPONENTS", (1, 2, 3))
    monkeypatch.setattr("identica.estimator.fit.RUNG", 50)
    rng = np.random.default_rng(0)
    z = rng.uniform(-1, 1, size=(1000, 2))
    mixing = rng.normal(size=(2, 6))
    x, x_pos = (
        (z + 0.1 * rng.normal(size=z.shape)) @ mixing + 0.05 * rng.normal(size=(1000, 6))
        for _ in range(2)
    )
    ica = ContrastiveICA("auto", steps=50, batch=128, optimizer="adam").fit(x, x_pos)
    evidence = ica.evidence_["n_components"]
    assert ica.transform(x).shape == (1000, 2)
    assert evidence[1] < 0.8 * evidence[2]
    ica.save(tmp_path / "ica")
    assert ContrastiveICA.load(tmp_path / "ica").evidence_ == ica.evidence_


@pytest.mark.parametrize("learn_precision", [False, True])
def test_the_number_of_codes_on_a_sphere_is_two_or_more(learn_precision):
    x = np.random.default_rng(0).normal(size=(500, 3)).cumsum(axis=0)
    ica = ContrastiveICA(space="sphere", learn_precision=learn_precision, steps=3, batch=16).fit(x)
    assert min(ica.evidence_["n_components"]) == 2
    assert ica.model_.space.dim >= 2


@pytest.mark.parametrize(
    ("bits", "uneven", "expected"),
    [
        (9.71, 0.0799, "Box"),
        (9.71, 0.0801, "Euclidean"),
        (9.69, 0.0799, "Euclidean"),  # … whose own codes are uneven
    ],
)
def test_nearly_as_good_is_97_percent_and_even_is_8(bits, uneven, expected):
    found = decide((BOX, NORMAL, bits, uneven), (R, NORMAL, 10.0, 0.13))
    assert type(found[0]).__name__ == expected
    sphere = decide((SPHERE, VMF, bits, 0.5), (R, NORMAL, 10.0, 0.13))
    assert (sphere[0] == SPHERE) == (bits > 9.7)


@pytest.mark.parametrize(("gain", "more"), [(1.030, False), (1.032, True)])
def test_two_more_codes_must_bring_three_percent(gain, more):
    curve = {1: 1.0, 2: 0.9, 3: gain, 4: 5.0, 5: 1.0, 6: 1.0}
    assert (4 in count_components(curve.get, 20)) == more
    swapped = {1: 1.0, 2: gain, 3: 0.9, 4: 5.0, 5: 1.0, 6: 1.0}
    assert (4 in count_components(swapped.get, 20)) == more


def test_the_numbers_of_codes_that_are_tried():
    tried = list(count_components(lambda n: 2.0**n, 1000))
    assert tried == [1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20]
    assert list(count_components(lambda n: 2.0**n, 8, least=2)) == [2, 3, 4, 5, 6, 8]
