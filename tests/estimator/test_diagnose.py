import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import identica
from helpers.codes import pairs, rotation, walk
from identica import MLP, Box, ContrastiveICA, InputError, Laplace
from identica.diagnosis.verdict import DISTRUST, PERMUTATION
from identica.estimator.fit import diagnose, encode
from identica.estimator.inputs import pairs_of
from identica.estimator.pairs import ArrayPairs
from identica.estimator.sequences import sequences
from identica.estimator.trust import sample_labelled
from identica.estimator.windows import View


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
    assert known.positives.bend == without.positives.bend


def test_an_estimator_of_unrelated_pairs(fitted):
    _, _, x, x_pos = fitted
    ica = ContrastiveICA(2, network=small, steps=30, batch=128)
    unrelated = np.roll(x_pos, 7, axis=0)
    assert ica.fit(x, unrelated).diagnose(x, unrelated).verdict == DISTRUST


def test_sequences_and_samplers(monkeypatch):
    monkeypatch.setattr("identica.estimator.fit.JUDGED", 500)
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
    with pytest.raises(InputError, match="Z must not be given if X draws pairs"):
        drawn.diagnose(draw, Z=x)


@pytest.mark.parametrize("groups", [None, np.arange(200) % 3])
def test_true_factors_are_compared_with_codes_of_what_was_seen(groups):
    """Square roots and windows included, row by row."""
    x = np.random.default_rng(0).poisson(4.0, size=(200, 3))
    z = np.arange(200.0)[:, None]
    ica = ContrastiveICA(2, window=3, steps=3, batch=32).fit(x, groups=groups)
    sample, _ = pairs_of(ica, x, None, None, groups, reset=False)
    found = sample_labelled(View(ica.lag_, ica.window_, ica.counts_).of(sample), z)
    within = sequences(200, 1, groups)
    windows = ArrayPairs(x, within=within, window=3, counts=True).observed(np.arange(200))
    codes = np.empty((200, 2))
    codes[within.rows(np.arange(200))] = encode(ica.model_, windows)
    assert sorted(found.z.ravel().tolist()) == list(range(200))
    assert np.allclose(encode(ica.model_, found.x), codes[found.z.ravel().int().numpy()], atol=1e-5)


@pytest.mark.parametrize("groups", [None, np.tile([1, 0, 2], 100)])
def test_times_are_those_of_the_pairs_that_are_drawn(groups):
    x = np.arange(300.0)[:, None]
    within = sequences(300, (2, 3), groups)
    pairs = ArrayPairs(x, within=within).split()[1]
    batch, times = (
        draw(50, generator=torch.Generator().manual_seed(0)) for draw in (pairs, pairs.times)
    )
    rows = np.arange(300) if within.order is None else within.order
    for seen, when in zip(batch, times, strict=True):
        assert rows[when].tolist() == seen.ravel().tolist()
    assert ArrayPairs(x, x).times(50, generator=torch.Generator()) is None


def test_the_diagnosis_of_a_sequence_knows_its_times():
    x = walk(1500, n=2)
    ica = ContrastiveICA(2, network=small, steps=5, batch=32).fit(x)
    rows = ica.diagnose(x).rows
    assert rows.apart > 5
    assert rows.independent < 60
    assert ica.diagnose(np.random.default_rng(0).permutation(x)).rows.independent > 200


def test_bad_input_to_the_estimator(fitted):
    ica, z, x, x_pos = fitted
    with pytest.raises(
        InputError, match="restarts must be a whole number of at least 2 and at most 100"
    ):
        ica.diagnose(x, x_pos, restarts=1)
    with pytest.raises(InputError, match="Z must have a row for each of 3000 rows of X, got 7"):
        ica.diagnose(x, x_pos, Z=z[:7])
    with pytest.raises(InputError, match="X must hold at least 100 pairs for a diagnosis, got 50"):
        ica.diagnose(x[:50], x_pos[:50])
    with pytest.raises(InputError, match="NaN"):
        ica.diagnose(np.where(x > 0.5, np.nan, x), x_pos)
    with pytest.raises(InputError, match="n_samples"):
        ica.diagnose(x[:1], x_pos[:1])


# what every part of the package stands on
CORE = {
    *("spaces", "families", "process", "encoders", "heads", "losses", "training", "recipes"),
    *("metrics", "theory", "distributed", "checkpoints", "errors"),
}


def test_a_diagnosis_goes_through_at_most_ten_modules(fitted):
    """From pairs to a verdict, beyond the fits that it judges."""
    ica, _, x, x_pos = fitted
    home, seen = Path(identica.__file__).parent, set()
    sample, _ = pairs_of(ica, x, x_pos, None, None, reset=False)

    def judge():
        diagnose(ica._fit, sample, lambda part, seed: ica._fit)

    def note(frame, event, argument):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(home)):
            seen.add(Path(code.co_filename).relative_to(home).with_suffix("").parts)

    judge()  # so that everything is imported
    before = sys.getprofile()
    sys.setprofile(note)
    try:
        judge()
    finally:
        sys.setprofile(before)
    beyond = {parts for parts in seen if parts[0] not in CORE and not parts[0].startswith("_")}
    assert {("estimator", "fit"), ("diagnosis", "verdict")} <= beyond
    assert len(beyond) <= 10, beyond
