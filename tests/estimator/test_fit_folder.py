"""Fits that keep checkpoints in a folder."""

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

from helpers.fits import SMALL, TINY
from identica import MLP, ContrastiveICA, InputError, Laplace


@pytest.mark.parametrize("marginal", ["uniform", "any"])
def test_a_fit_with_a_folder_goes_on_where_it_stopped(data, tmp_path, monkeypatch, marginal):
    def ica(folder):
        return ContrastiveICA(2, marginal=marginal, steps=24, batch=16, folder=folder)

    alone = ica(None).fit(*data)
    whole = alone.transform(data[0])
    forward, calls = torch.nn.Module.__call__, 0

    def stops(self, *args):
        nonlocal calls
        calls += type(self).__name__ == "InfoNCE"
        if calls == 20:
            raise KeyboardInterrupt
        return forward(self, *args)

    with monkeypatch.context() as patch:
        patch.setattr(torch.nn.Module, "__call__", stops)
        with pytest.raises(KeyboardInterrupt):
            ica(tmp_path).fit(*data)
    there = ica(tmp_path).fit(*data)
    assert np.array_equal(there.transform(data[0]), whole)
    if marginal == "any":
        assert np.array_equal(there.log_density(data[0]), alone.log_density(data[0]))


def test_no_fit_in_a_folder_finds_the_weights_of_another(data, tmp_path):
    """Whatever differs, the codes are those of a fit without a folder; nothing is lost."""
    x, x_pos = data
    changed = x.copy()
    changed[70, 1] += 1e-9
    other = MLP(2, 2, hidden=(64, 64), seed=1)
    fits = [
        ({}, {"X": x, "X_pos": x_pos}),
        ({}, {"X": x_pos, "X_pos": x}),
        ({}, {"X": x, "X_pos": x_pos[::-1]}),
        ({}, {"X": changed, "X_pos": x_pos}),
        ({}, {"X": x.astype(np.float32), "X_pos": x_pos.astype(np.float32)}),
        ({}, {"X": x}),
        ({}, {"X": x, "lag": 2}),
        ({}, {"X": x, "lag": (1, 2)}),
        ({}, {"X": x, "groups": np.repeat([0, 1], 50)}),
        ({}, {"X": x, "groups": np.arange(100) % 2}),
        ({}, {"X": x, "labels": np.arange(100) % 2}),
        ({}, {"X": x, "labels": np.arange(100) % 2, "lag": 1}),
        ({"window": 3}, {"X": x}),
        ({"random_state": 1}, {"X": x}),
        ({"conditional": "laplace"}, {"X": x}),
        ({"conditional": Laplace(0.5)}, {"X": x}),
        ({"space": "sphere"}, {"X": x}),
        ({"learn_precision": True}, {"X": x}),
        ({"marginal": "any"}, {"X": x}),
        ({"steps": 4}, {"X": x}),
        ({"network": SMALL}, {"X": x}),
        ({"network": other}, {"X": x}),
        ({"network": lambda shape, n: torch.nn.Linear(shape[0], n)}, {"X": x}),
    ]
    for parameters, arguments in fits * 2:
        there = ContrastiveICA(2, **{**TINY, "folder": tmp_path, **parameters}).fit(**arguments)
        alone = clone(there).set_params(folder=None).fit(**arguments)
        assert np.array_equal(there.transform(x), alone.transform(x))
    assert len(list(tmp_path.iterdir())) == len(fits)
    assert all((place / "config.json").exists() for place in tmp_path.iterdir())


def test_pairs_drawn_by_another_function_are_told_by_their_first_batch(tmp_path):
    def sample(scale):
        def draw(size, *, generator):
            x = torch.randn(size, 2, generator=generator)
            return x, x + scale * torch.randn(size, 2, generator=generator)

        return draw

    ica = ContrastiveICA(2, **TINY, folder=tmp_path).fit(sample(0.1))
    again = clone(ica).fit(sample(0.1))
    assert again.history_ == ica.history_
    with pytest.raises(InputError, match="another first batch: use another folder"):
        clone(ica).fit(sample(0.2))


def test_cross_validation_with_a_folder(data, tmp_path):
    x, _ = data
    there, alone = (
        cross_val_score(ContrastiveICA(2, **TINY, folder=folder), x, cv=3)
        for folder in (tmp_path, None)
    )
    assert np.array_equal(there, alone)
    assert len(list(tmp_path.iterdir())) == 3
