import json
import math
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from helpers.fits import SMALL, TINY, pairs
from helpers.walks import noisy, slow
from identica import (
    MLP,
    Box,
    ContrastiveICA,
    GenerativeProcess,
    InputError,
    InvertibleMLP,
    Normal,
    Sphere,
    Uniform,
    VonMisesFisher,
)
from identica.errors import TrustWarning
from identica.estimator.windows import WINDOWS
from identica.metrics import linear_r2, mcc

EXPECTED_FAILURES = {
    "check_fit_score_takes_y": "the second argument of fit is the positive of each row, X_pos"
}


@pytest.mark.filterwarnings("ignore:a vector passed as X_pos")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_it_behaves_as_scikit_learn_asks():
    results = check_estimator(ContrastiveICA(2, **TINY), expected_failed_checks=EXPECTED_FAILURES)
    assert len(results) > 40
    found = {r["check_name"] for r in results if r["status"] == "xfail"}
    assert found == set(EXPECTED_FAILURES)  # none that would pass by now


# --- what it recovers -------------------------------------------------------------------------------


def test_pairs_give_back_each_factor():
    train, test = pairs(20_000), pairs(1000, seed=1)
    ica = ContrastiveICA(2, conditional="laplace", steps=200, batch=256)
    codes = ica.fit(train.x, train.x_pos).transform(test.x)
    assert mcc(test.z, codes) > 0.98 > mcc(test.z, test.x) + 0.05
    assert 0 <= codes.min() < codes.max() <= 1
    assert ica.score(test.x, test.x_pos) > 3


def test_a_sequence_gives_back_each_factor():
    """A slow walk in a box, reflected at its walls."""
    rng = np.random.default_rng(0)
    start = rng.uniform(size=(100, 1, 2))
    steps = rng.normal(0, 0.07, size=(100, 200, 2)).cumsum(axis=1)
    z = 1 - np.abs((start + steps) % 2 - 1)
    x = InvertibleMLP(2, seed=3, draws=50)(torch.from_numpy(z.reshape(-1, 2)))
    groups = np.repeat(np.arange(100), 200)
    ica = ContrastiveICA(network=SMALL, steps=500, batch=256).fit(x, lag=1, groups=groups)
    codes = ica.transform(x)
    assert linear_r2(z.reshape(-1, 2), codes) > 0.98
    # steps are normal, so the walls alone single out the axes, and not to the last degree in every run
    assert mcc(z.reshape(-1, 2), codes) > 0.9


def test_a_sampler_gives_back_a_sphere():
    g = InvertibleMLP(3, seed=0, draws=2000)
    process = GenerativeProcess(Sphere(3), Uniform(), VonMisesFisher(20.0), g)
    ica = ContrastiveICA(3, space="sphere", steps=200, batch=256).fit(process.sample)
    test = process.sample(1000, generator=9)
    codes = ica.transform(test.x)
    assert linear_r2(test.z, codes) > 0.98
    assert np.allclose(np.linalg.norm(codes, axis=1), 1, atol=1e-5)
    # the temperature is found too: κ = 1/τ
    assert 1 / ica.temperature_ == pytest.approx(20, rel=0.2)
    assert ica.score(process.sample) == pytest.approx(ica.score(test.x, test.x_pos), abs=0.3)


# --- scores -----------------------------------------------------------------------------------------


def test_the_score_is_the_log_likelihood_of_a_choice(fitted, data):
    x, x_pos = data
    h, h_pos = fitted.transform(x), fitted.transform(x_pos)
    distance = np.abs(h[:, None] - h_pos[None]).sum(-1) / fitted.temperature_
    chance = np.exp(-distance) / np.exp(-distance).sum(1, keepdims=True)
    expected = np.mean(np.log2(chance.diagonal())) + math.log2(100)
    assert fitted.score(x, x_pos) == pytest.approx(expected, abs=1e-3)


def test_strangers_score_nothing(fitted, data):
    x, x_pos = data
    assert fitted.score(x, x_pos[::-1]) < 0 < fitted.score(x, x_pos)


def test_the_lag_of_fit_is_that_of_score():
    x = np.random.default_rng(0).normal(size=(60, 2)).cumsum(axis=0)
    ica = ContrastiveICA(**TINY).fit(x, lag=5)
    assert ica.lag_ == 5
    assert ica.score(x) == ica.score(x, lag=5) != ica.score(x, lag=1)


# --- data of every kind -----------------------------------------------------------------------------


def test_arrays_tensors_and_frames_are_alike(fitted, data):
    x, x_pos = data
    frames = [pd.DataFrame(a, columns=["left", "right"]) for a in data]
    codes = fitted.transform(x)
    for a, b in ((torch.from_numpy(x), torch.from_numpy(x_pos)), frames, (x.tolist(), x_pos)):
        other = clone(fitted).fit(a, b)
        assert np.array_equal(other.transform(a), codes)
    assert other.n_features_in_ == 2
    named = clone(fitted).fit(*frames).set_output(transform="pandas")
    assert named.feature_names_in_.tolist() == ["left", "right"]
    table = named.transform(frames[0].set_index(frames[0].index + 5))
    assert table.columns.tolist() == ["contrastiveica0", "contrastiveica1"]
    assert table.index[0] == 5
    with pytest.raises(InputError, match="feature names"):
        named.transform(frames[0][["right", "left"]])


def test_codes_have_the_precision_of_the_data(fitted, data):
    x, _ = data
    single = fitted.transform(x.astype(np.float32))
    assert single.dtype == np.float32
    assert fitted.transform(x).dtype == np.float64
    assert np.allclose(single, fitted.transform(x), atol=1e-4)


@pytest.mark.parametrize(
    "images",
    [
        np.random.default_rng(0).integers(0, 256, (20, 64, 64), np.uint8),
        np.random.default_rng(0).random((20, 64, 64, 3), np.float32),
        torch.rand(20, 3, 64, 64, generator=torch.Generator().manual_seed(0)),
        np.random.default_rng(0).random((20, 64, 64)) > 0.5,
        np.random.default_rng(0).integers(0, 256, (20, 28, 28), np.uint8),
        np.random.default_rng(0).random((20, 36, 100, 3), np.float32),
    ],
    ids=["bytes", "channels last", "channels first", "masks", "small", "wide"],
)
def test_images(images):
    ica = ContrastiveICA(3, steps=1, batch=8).fit(images, lag=(1, 3), groups=[0] * 10 + [1] * 10)
    assert ica.transform(images).shape == (20, 3)
    assert ica.n_features_in_ == math.prod(images.shape[1:])
    with pytest.raises(InputError, match="X must hold observations of shape"):
        ica.transform(images[..., :2])


MEMORY = Path(__file__).parents[1] / "helpers" / "memory_of_fits.py"


@pytest.mark.skipif(sys.platform != "linux", reason="what a process holds is counted differently")
def test_memory_does_not_grow_with_a_mapped_file(tmp_path):
    """Ten million rows (320 MB) after a hundred thousand; with a folder, all of them are read."""
    run = [sys.executable, str(MEMORY), str(tmp_path / "rows")]
    done = subprocess.run(run, capture_output=True, text=True, check=True)
    small, large = json.loads(done.stdout)
    assert large - small < 60  # of which some are pages that the system reads ahead


def test_mapped_files_are_read_as_arrays_are(fitted, data, tmp_path):
    mapped = []
    for name, values in zip(("x", "x_pos"), data, strict=True):
        np.save(tmp_path / f"{name}.npy", values)
        mapped.append(np.load(tmp_path / f"{name}.npy", mmap_mode="r"))
    other = clone(fitted).fit(*mapped)
    assert np.array_equal(other.transform(mapped[0]), fitted.transform(data[0]))
    np.save(tmp_path / "bad.npy", np.full((50, 2), np.inf))
    with pytest.raises(InputError, match="X must be finite"):
        clone(fitted).fit(np.load(tmp_path / "bad.npy", mmap_mode="r"))


# --- scikit-learn's company -------------------------------------------------------------------------


def test_pipelines_and_searches(data):
    x, x_pos = data
    pipeline = make_pipeline(StandardScaler(), ContrastiveICA(2, **TINY)).fit(x)
    assert pipeline.transform(x).shape == (100, 2)
    search = GridSearchCV(
        ContrastiveICA(2, **TINY), {"conditional": ["laplace", Normal(1.0)]}, cv=2
    )
    search.fit(x, x_pos)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_estimator_.lag_ is None


def test_parameters_stay_untouched(data):
    network = MLP(2, 3, hidden=(8,))
    before = {name: value.clone() for name, value in network.state_dict().items()}
    ica = ContrastiveICA(network=network, **TINY).fit(*data)
    assert ica.network is network
    assert all(torch.equal(before[k], v) for k, v in network.state_dict().items())
    assert ica.transform(data[0]).shape == (100, 3)
    made = ContrastiveICA(3, network=lambda shape, n: MLP(shape[0], n, hidden=(8,)), **TINY)
    assert made.fit(*data).starts_[0] == ica.starts_[0]  # later ones have other weights


def test_random_states(data):
    x, x_pos = data

    def codes(state):
        return ContrastiveICA(2, random_state=state, **TINY).fit(x, x_pos).transform(x)

    assert np.array_equal(codes(5), codes(5))
    assert not np.array_equal(codes(5), codes(6))
    assert np.array_equal(codes(np.random.RandomState(1)), codes(np.random.RandomState(1)))
    assert not np.array_equal(codes(None), codes(None))


def test_nothing_of_an_earlier_fit_is_left(data):
    frame = pd.DataFrame(data[0], columns=["a", "b"])
    ica = ContrastiveICA(2, learn_precision=True, **TINY).fit(frame)
    assert ica.precision_.shape == (2,)
    ica.set_params(learn_precision=False).fit(data[0])
    assert not hasattr(ica, "precision_")
    assert not hasattr(ica, "feature_names_in_")


def test_a_network_of_ones_own_is_drawn_from_the_random_state(data):
    def network(shape, n):
        return torch.nn.Linear(shape[0], n)

    before = torch.get_rng_state()
    codes = [
        ContrastiveICA(2, network=network, random_state=state, **TINY).fit_transform(data[0])
        for state in (0, 0, 1)
    ]
    assert np.array_equal(codes[0], codes[1])
    assert not np.array_equal(codes[0], codes[2])
    assert torch.equal(torch.get_rng_state(), before)


def test_batches_are_no_larger_than_the_data(data):
    ica = ContrastiveICA(2, steps=2).fit(*data)
    assert ica.training_.batch == 100
    assert ContrastiveICA(2, steps=2).fit(data[0], lag=5).training_.batch == 95
    assert ContrastiveICA(2, steps=2, batch=7).fit(*data).training_.batch == 7


# --- units ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scale", "offset"), [(1e-300, 0.0), (1.0, 1e11), (1e39, 0.0), (1e300, -1e301), (1e-20, 1e-8)]
)
def test_units_do_not_matter(data, scale, offset):
    """Up to the rounding of x·scale + offset, which training amplifies: as much is learnt, not the same."""
    ica = ContrastiveICA(2, steps=30, batch=100, random_state=0)
    there = clone(ica).fit(*(scale * x + offset for x in data))
    score = there.score(*(scale * x + offset for x in data))
    assert score > 0.8 * ica.fit(*data).score(*data)


def test_data_that_do_not_vary_are_named(data):
    x = (data[0] + 1e15).astype(np.float32)
    with pytest.raises(InputError, match=r"X must vary.*float32.*offset"):
        ContrastiveICA(2, **TINY).fit(x)
    with pytest.raises(InputError, match="X must span"):
        ContrastiveICA(2, **TINY).fit(np.where(data[0] > data[0].mean(), 1.5e308, -1.5e308))
    images = np.random.default_rng(0).random((20, 64, 64, 1))
    for scale in (1e39, 1e-300):
        with pytest.raises(InputError, match="X must hold images with a range that float32"):
            ContrastiveICA(2, **TINY).fit(images * scale)


def test_the_precision_is_that_of_the_fitted_similarity(data):
    """Codes scaled by λ_k^{1/p} have the similarity of `score`, whatever temperature training had."""
    ica = ContrastiveICA(2, conditional="laplace", learn_precision=True, steps=30, batch=100)
    x, x_pos = data
    ica.fit(x, x_pos)
    h, h_pos = ica.transform(x), ica.transform(x_pos)
    distance = (np.abs(h[:, None] - h_pos[None]) * ica.precision_).sum(-1)
    chance = np.exp(-distance) / np.exp(-distance).sum(1, keepdims=True)
    expected = np.mean(np.log2(chance.diagonal())) + math.log2(100)
    assert ica.score(x, x_pos) == pytest.approx(expected, abs=1e-3)


# --- windows, counts, and how far codes can be trusted ------------------------------------------------


def test_windows_counts_and_evidence_are_kept(tmp_path):
    z = slow(0.99, (2400, 2), np.random.default_rng(0))
    rates = np.exp(z @ np.random.default_rng(1).normal(size=(2, 10)) / 2)
    x = np.random.default_rng(2).poisson(rates)
    ica = ContrastiveICA(2, **TINY).fit(x, lag="auto")
    assert ica.counts_
    assert ica.window_ > 1
    assert ica.evidence_.keys() == {"lag", "window"}
    assert ica.evidence_["window"].keys() <= set(WINDOWS)
    ica.save(tmp_path / "ica")
    back = ContrastiveICA.load(tmp_path / "ica")
    for name in ("window_", "counts_", "lag_", "evidence_", "bits_", "starts_", "training_"):
        assert getattr(back, name) == getattr(ica, name)
    assert back.independent_pairs_ == ica.independent_pairs_
    assert np.array_equal(back.transform(x), ica.transform(x))
    assert back.score(x) == ica.score(x)
    with pytest.raises(InputError, match="X must hold counts, as in fit, but some entries are neg"):
        back.transform(x - 1)


def test_slow_and_shuffled_rows_are_not_to_be_trusted():
    rng = np.random.default_rng(0)
    walk = np.random.default_rng(1).normal(size=(300, 3)).cumsum(axis=0)
    ica = ContrastiveICA(2, steps=60, batch=64)
    with pytest.warns(TrustWarning, match=r"too few to recover 2 factors: do not trust the codes"):
        ica.fit(walk)
    assert ica.independent_pairs_ < 20
    x = noisy(1500, rho=0.7, noise=0.3)[1]
    with pytest.warns(TrustWarning, match=r"no better than by chance .* do not trust the codes"):
        ica.fit(rng.permutation(x))
    assert abs(ica.bits_) < 0.05
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ica.fit(x)
    assert ica.bits_ > 0.1


# --- bad input --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_components": 0}, "n_components must be a whole number of at least 1"),
        ({"learn_precision": np.ones(3)}, "learn_precision must be True or False, got"),
        ({"n_components": 1001}, "n_components must be at most 1000 for these data, got 1001"),
        ({"space": "bx"}, "space must be one of .*did you mean 'box'"),
        ({"space": Box(3)}, "n_components must be 3 for"),
        ({"conditional": "laplac"}, "conditional must be one of"),
        ({"marginal": "normal"}, "marginal must be one of any, uniform; got 'normal'"),
        ({"conditional": "vmf"}, "conditional vmf is not defined on the space box"),
        ({"steps": 0}, "steps must be a whole number"),
        ({"n_components": "many"}, "n_components must be a whole number"),
        ({"window": 3}, "window needs rows in order of time, so X_pos must not be given"),
        ({"window": "wide"}, "window must be a whole number"),
        ({"window": np.ones(3)}, "window must be a whole number"),
        ({"n_components": np.ones((3, 2))}, "n_components must be a whole number"),
        ({"device": np.ones(3)}, "device must be"),
        ({"device": "gpu"}, "device must be"),
        ({"optimizer": "sgd"}, "optimizer must be one of"),
        ({"random_state": -1}, "random_state must be"),
        ({"network": lambda shape, n: 3}, "network must return a module"),
    ],
)
def test_parameters_are_checked_in_fit(data, parameters, message):
    ica = ContrastiveICA(**{"n_components": 2, **TINY, **parameters})
    with pytest.raises(InputError, match=message):
        ica.fit(*data)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"X_pos": np.zeros((100, 3))}, "X has 3 features"),
        ({"X_pos": np.zeros((99, 2))}, "X_pos must have the shape of X"),
        ({"X_pos": np.zeros((100, 2)), "lag": 1}, "lag, groups and labels must not be given"),
        ({"groups": [1, 2]}, "groups must have one entry"),
        ({"groups": [[1], [2, 3]]}, "groups must be an array"),
        ({"labels": 3}, "labels must have shape N or"),
        ({"labels": [[1], [2, 3]]}, "labels must be an array"),
        ({"labels": np.linspace(-1e300, 1e300, 100)}, "labels must vary, by less than 1e150"),
        ({"lag": 100}, "lag must be smaller than the number of rows, 100"),
    ],
)
def test_arguments_are_checked(fitted, data, arguments, message):
    with pytest.raises(InputError, match=message):
        clone(fitted).fit(data[0], **arguments)


def test_a_vector_of_labels_is_ignored_but_not_silently(fitted, data):
    with pytest.warns(UserWarning, match="ignored; pass groups="):
        labelled = clone(fitted).fit(data[0], np.arange(100))
    assert labelled.lag_ == 1
