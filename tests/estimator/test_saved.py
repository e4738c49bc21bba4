import contextlib
import random

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import save_file

from helpers.fits import TINY
from identica import MLP, Box, ContrastiveICA, InputError, Laplace, checkpoints


def test_what_is_saved_comes_back(data, tmp_path):
    x = pd.DataFrame(data[0], columns=["a", "b"])
    ica = ContrastiveICA(
        2, space=Box(2, 0.0, (1.0, 2.0)), conditional=Laplace(0.3), learn_precision=True, **TINY
    ).fit(x, lag=(1, 2))
    ica.save(tmp_path / "ica.safetensors")
    back = ContrastiveICA.load(tmp_path / "ica.safetensors")
    assert np.array_equal(back.transform(x), ica.transform(x))
    assert back.score(x) == ica.score(x)
    assert repr(back) == repr(ica)
    for name in ("lag_", "temperature_", "history_", "n_features_in_"):
        assert getattr(back, name) == getattr(ica, name)
    assert np.array_equal(back.precision_, ica.precision_)
    assert np.array_equal(back.feature_names_in_, ica.feature_names_in_)


def test_a_network_of_ones_own_comes_back_with_its_weights(data, tmp_path):
    ica = ContrastiveICA(network=MLP(2, 3, hidden=(8,)), **TINY).fit(*data)
    ica.save(tmp_path / "ica.safetensors")
    with pytest.raises(InputError, match="network must be given"):
        ContrastiveICA.load(tmp_path / "ica.safetensors")
    with pytest.raises(InputError, match="network does not fit"):
        ContrastiveICA.load(tmp_path / "ica.safetensors", network=MLP(2, 3, hidden=(9,)))
    back = ContrastiveICA.load(tmp_path / "ica.safetensors", network=MLP(2, 3, hidden=(8,)))
    assert np.array_equal(back.transform(data[0]), ica.transform(data[0]))


@pytest.mark.parametrize("kind", ["sampler", "images", "wide rows", "one code"])
def test_fits_of_every_kind_come_back(tmp_path, kind):
    def draw(size, *, generator):
        x = torch.randn(size, 3, generator=generator)
        return x, x + 0.1

    rng = np.random.default_rng(0)
    x = {
        "sampler": draw,
        "images": rng.random((30, 64, 64, 1), np.float32),
        "wide rows": rng.normal(size=(60, 450)).cumsum(0),
        "one code": rng.normal(size=(60, 3)).cumsum(0),
    }[kind]
    ica = ContrastiveICA(1 if kind == "one code" else 2, steps=1, batch=16).fit(x)
    ica.save(tmp_path / "ica")
    back = ContrastiveICA.load(tmp_path / "ica")
    some = rng.normal(size=(5, 3)) if kind == "sampler" else x[:5]
    assert np.array_equal(back.transform(some), ica.transform(some))
    assert back.score(x) == ica.score(x)
    assert back.independent_pairs_ == ica.independent_pairs_


def test_other_files_are_refused(tmp_path):
    (tmp_path / "text").write_text("hello")
    with pytest.raises(InputError, match="is not a checkpoint"):
        ContrastiveICA.load(tmp_path / "text")


def crafted(change):
    """A function of the state in a saved file that makes it another one."""

    def make(state):
        change(state["estimator"], state["fitted"], state["weights"])
        return state

    return make


NESTED: list = []
for _ in range(50):
    NESTED = [NESTED]
HUGE = 10**12
CRAFTED = {
    "list": lambda state: [state],
    "empty": lambda state: {},
    "no weights": lambda state: {k: v for k, v in state.items() if k != "weights"},
    "nothing fitted": lambda state: {**state, "fitted": None},
    "weights of another kind": lambda state: {**state, "weights": [1]},
    "parameters of another kind": lambda state: {**state, "estimator": 3},
    **{
        f"without {name}": crafted(lambda e, f, w, name=name: f.pop(name))
        for name in (
            *("space", "conditional", "own_network", "shape", "lag", "training", "history"),
            *("window", "counts", "encoder", "bits", "starts", "choices", "independent_pairs"),
        )
    },
    "unknown parameter": crafted(lambda e, f, w: e.update(shell="rm")),
    "space of no kind": crafted(lambda e, f, w: f.update(space={"kind": "Sfere", "arguments": {}})),
    "space of bad arguments": crafted(
        lambda e, f, w: f.update(space={"kind": "Box", "arguments": {"dims": 2}})
    ),
    "space is a number": crafted(lambda e, f, w: f.update(space=3)),
    "family for a space": crafted(lambda e, f, w: f.update(space=f["conditional"])),
    "space too large": crafted(
        lambda e, f, w: f.update(space={"kind": "Sphere", "arguments": {"dim": HUGE}})
    ),
    "unbounded space too large": crafted(
        lambda e, f, w: f.update(space={"kind": "Euclidean", "arguments": {"dim": 10**8}})
    ),
    "parts without number": crafted(
        lambda e, f, w: f.update(space={"kind": "Product", "arguments": {}})
    ),
    "nested space": crafted(lambda e, f, w: f.update(space=NESTED)),
    "shape too large": crafted(lambda e, f, w: f.update(shape=[HUGE])),
    "shape overflows": crafted(lambda e, f, w: f.update(shape=[2**70])),
    "shape below zero": crafted(lambda e, f, w: f.update(shape=[-2])),
    "shape of words": crafted(lambda e, f, w: f.update(shape=["two"])),
    "shape of nothing": crafted(lambda e, f, w: f.update(shape=[])),
    "shape of images": crafted(lambda e, f, w: f.update(shape=[64, 64])),
    "training of words": crafted(lambda e, f, w: f.update(training="long")),
    "training unknown": crafted(lambda e, f, w: f["training"].update(speed=3)),
    "training without steps": crafted(lambda e, f, w: f["training"].update(steps="many")),
    "window of words": crafted(lambda e, f, w: f.update(window="wide")),
    "window of nothing": crafted(lambda e, f, w: f.update(window=0)),
    "choices of numbers": crafted(lambda e, f, w: f.update(choices=[1])),
    "choices without bits": crafted(lambda e, f, w: f.update(choices={"lag": [1, 2]})),
    "starts of numbers": crafted(lambda e, f, w: f.update(starts=[1])),
    "encoder of words": crafted(lambda e, f, w: f.update(encoder="large")),
    "encoder of another kind": crafted(lambda e, f, w: f["encoder"].update(enter="Whiten")),
    "encoder of images": crafted(
        lambda e, f, w: f.update(encoder={"enter": "Pixels", "channels_last": 0, "channels": HUGE})
    ),
    "layers too large": crafted(lambda e, f, w: f["encoder"].update(hidden=[10**8, 10**8])),
    "directions too many": crafted(lambda e, f, w: f["encoder"].update(rows=[2, 10**9])),
    "directions below zero": crafted(lambda e, f, w: f["encoder"].update(rows=[2, -1])),
    "temperature": crafted(lambda e, f, w: f.update(temperature="hot")),
    "temperature below zero": crafted(lambda e, f, w: f.update(temperature=-1.0)),
    "history": crafted(lambda e, f, w: f.update(history=5)),
    "history of numbers": crafted(lambda e, f, w: f.update(history=[1, 2])),
    "feature names": crafted(lambda e, f, w: f.update(feature_names_in_=5)),
    "feature names of numbers": crafted(lambda e, f, w: f.update(feature_names_in_=[1, 2])),
    "too many feature names": crafted(lambda e, f, w: f.update(feature_names_in_=["a"] * 3)),
    "selection": crafted(lambda e, f, w: f.update(selection_={"space": None})),
    "no model": crafted(lambda e, f, w: w.pop("model")),
    "model of numbers": crafted(lambda e, f, w: w.update(model={"a": 1})),
    "weights without names": crafted(lambda e, f, w: w["model"].update({5: torch.zeros(1)})),
    "other weights": crafted(lambda e, f, w: w["model"].update(more=torch.zeros(1))),
    "no tensor": crafted(lambda e, f, w: w["loss"].update(log_tau=3.0)),
}


@pytest.mark.parametrize("name", CRAFTED)
def test_a_crafted_file_is_refused(fitted, tmp_path, name):
    path = tmp_path / "ica"
    fitted.save(path)
    checkpoints.save(path, CRAFTED[name](checkpoints.load(path)))
    with pytest.raises(InputError, match=r"ica (holds|does not hold) an estimator|fit the weights"):
        ContrastiveICA.load(path)


def test_a_damaged_file_is_refused(fitted, data, tmp_path):
    path, rng = tmp_path / "ica", random.Random(0)
    fitted.save(path)
    whole, codes = path.read_bytes(), fitted.transform(data[0])
    for _ in range(60):
        at, byte = rng.randrange(len(whole)), bytes([rng.randrange(256)])
        path.write_bytes(whole[:at] + byte + whole[at + 1 :])
        with contextlib.suppress(InputError):  # and nothing else
            assert np.array_equal(ContrastiveICA.load(path).transform(data[0]), codes)
    for length in [0, 1, 7, 8, 9, *rng.sample(range(len(whole)), 20)]:
        path.write_bytes(whole[:length])
        with pytest.raises(InputError):
            ContrastiveICA.load(path)
    save_file({"weight": torch.zeros(2)}, path)
    with pytest.raises(InputError, match="has no metadata of identica"):
        ContrastiveICA.load(path)
    with pytest.raises(InputError):
        ContrastiveICA.load(tmp_path)


def test_a_file_does_not_say_where_to_write(fitted, data, tmp_path):
    path = tmp_path / "ica"
    fitted.save(path)
    state = checkpoints.load(path)
    state["estimator"] |= {"folder": str(tmp_path / "theirs"), "tensorboard": True}
    checkpoints.save(path, state)
    back = ContrastiveICA.load(path)
    assert back.folder is None
    assert not back.tensorboard
    back.fit(*data)
    assert not (tmp_path / "theirs").exists()
