import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import torch

import identica.metrics
from helpers.defaults import numbers_of
from identica.errors import InputError
from identica.metrics import agreement, dci, linear_r2, mcc, mig, modularity, procrustes, sap

SCORES = {
    "linear_r2": linear_r2,
    "mcc": mcc,
    "spearman": lambda z, h: mcc(z, h, "spearman"),
    "procrustes": lambda z, h: procrustes(z, h).error,
    "agreement": lambda z, h: agreement([z, h], up_to="orthogonal"),
    "sap": sap,
    "mig": mig,
    "modularity": modularity,
    "dci": lambda z, h: dci(z, h)[:3],
}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(200, 2))
    return z, np.tanh(z @ rng.normal(size=(2, 2))) + 0.1 * rng.normal(size=(200, 2))


@pytest.mark.parametrize("name", SCORES)
def test_scores_do_not_depend_on_the_unit(data, name):
    """Powers of two change no digit, so the scores stay the same up to rounding: not even where sums
    or squares of the numbers exceed all floats (2^1021) or vanish (2^-1000)."""
    z, h = data
    score, expected = SCORES[name], SCORES[name](z, h)
    for unit in (2.0**1000, 2.0**1021, 2.0**-1000):
        for pair in ((unit * z, h), (z, unit * h), (unit * z, unit * h)):
            assert score(*pair) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("name", SCORES)
def test_scores_do_not_depend_on_the_origin(data, name):
    """Far from 0 numbers have few digits, but what is left of them counts."""
    z, h = ((matrix + 1e15) - 1e15 for matrix in data)  # rounded as they will be
    for pair in ((z + 1e15, h), (z, h + 1e15)):
        assert SCORES[name](*pair) == pytest.approx(SCORES[name](z, h), rel=1e-9)


def test_the_scale_of_procrustes_is_that_of_the_matrices(data):
    z, h = data
    expected = procrustes(z, h).scale
    assert procrustes(2.0**1000 * z, 2.0**990 * h).scale == pytest.approx(2.0**10 * expected)
    assert procrustes(2.0**-1000 * z, 2.0**-990 * h).scale == pytest.approx(2.0**-10 * expected)
    assert procrustes(2.0**1000 * z, 2.0**-1000 * h).scale == np.inf


@pytest.mark.parametrize(
    "values",
    [
        np.ones((200, 2), complex) * 1j,
        torch.ones(200, 2, dtype=torch.complex64),
        np.arange(400).reshape(200, 2).astype("M8[D]"),
        np.arange(400).reshape(200, 2).astype("m8[s]"),
        np.full((200, 2), np.datetime64("2020-01-01"), object),
        np.full((200, 2), np.complex128(1j), object),
        pd.DataFrame({"a": np.arange(200.0), "day": pd.Timestamp("2020-01-01")}),
    ],
    ids=["complex", "torch", "dates", "durations", "objects", "complex objects", "frame"],
)
@pytest.mark.parametrize("name", ["linear_r2", "mcc", "procrustes", "sap"])
def test_dates_and_complex_numbers_are_not_numbers(data, values, name):
    with pytest.raises(InputError, match="h must be numeric"):
        SCORES[name](data[0], values)
    with pytest.raises(InputError, match="z must be numeric"):
        SCORES[name](values, data[1])


def test_all_names_are_there():
    for name in identica.metrics.__all__:
        assert hasattr(identica.metrics, name), name


def test_the_import_is_light():
    """What the package itself adds to the import must not pull in the heavy libraries."""
    code = (
        "import sys, identica; before = set(sys.modules); import identica.metrics;"
        "print(*{'numba', 'pandas', 'scipy', 'sklearn', 'torch', 'tqdm'} & (set(sys.modules) - before))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == ""


def test_the_defaults_are_the_settings_of_the_benchmark():
    """Locatello et al., ICML 2019: 20 bins, 64 samples to a point, 10,000 points and 5,000 held out."""
    points = {"train": 10_000, "test": 5_000, "random_state": 0}
    assert numbers_of(identica.metrics.beta_vae) == {"pairs": 64, **points}
    factor_vae = {"size": 64, "pruned_variance": 0.05, **points}
    assert numbers_of(identica.metrics.factor_vae) == factor_vae
    assert numbers_of(mig) == numbers_of(modularity) == {"bins": 20}
    for score in (dci, sap, identica.metrics.infomec):
        assert numbers_of(score) == {"random_state": 0}
