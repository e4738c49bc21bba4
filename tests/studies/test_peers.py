"""PCA and FastICA beside NumPy, and CEBRA as far as a stand-in tells."""

import sys

import numpy as np
import pytest
import torch

from identica.metrics import mcc
from identica.studies import peers

FAKE = """
import numpy as np
import torch

calls = []

class CEBRA:
    def __init__(self, **options):
        calls.append(options)

    def fit(self, x, *labels):
        assert x.dtype == np.float32
        calls[-1]["labels"] = labels
        self.weights = torch.randn(x.shape[1], calls[-1]["output_dimension"]).numpy()

    def transform(self, x):
        codes = x @ self.weights + 1e-3
        return codes / np.linalg.norm(codes, axis=1, keepdims=True)
"""


@pytest.fixture
def cebra(tmp_path, monkeypatch):
    """A module of that name with the interface that is used of it."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "cebra", raising=False)
    (tmp_path / "cebra.py").write_text(FAKE)
    import cebra

    yield cebra
    monkeypatch.delitem(sys.modules, "cebra")


def test_pca_is_that_of_standardised_square_roots():
    counts = np.random.default_rng(0).poisson([1, 2, 5, 9], (200, 4)).astype(np.uint8)
    counts[:, 3] += 2 * counts[:, 2]
    roots = np.sqrt(counts.astype(float))
    columns = (roots - roots[:150].mean(0)) / roots[:150].std(0)
    axes = np.linalg.svd(columns[:150], full_matrices=False)[2][:2]
    found = peers.linear("pca", counts[:150], 2, seed=0)(counts)
    for code, axis in zip(found.T, axes, strict=True):
        expected = columns @ axis
        assert np.abs(code - expected).max() < 1e-9 or np.abs(code + expected).max() < 1e-9


def test_fastica_unmixes_and_repeats():
    rng = np.random.default_rng(0)
    factors = rng.uniform(2, 6, (3000, 2))
    counts = np.round((factors @ [[1, 0.5], [0.4, 1]]) ** 2)  # their roots are a linear mixture
    one, two = (peers.linear("fastica", counts, 2, seed=0)(counts) for _ in range(2))
    np.testing.assert_array_equal(one, two)
    assert mcc(factors, one) > 0.99
    assert mcc(factors, peers.linear("pca", counts, 2, seed=0)(counts)) < 0.9


def test_smoothed_counts_are_what_is_fitted():
    rng = np.random.default_rng(0)
    counts = rng.poisson(5.0, (300, 4))
    mean = np.array([np.sqrt(counts[max(0, t - 1) : t + 2]).mean(0) for t in range(300)])
    plain = peers.linear("pca", mean**2, 2, seed=0)(mean**2)  # whose roots are those means
    np.testing.assert_allclose(
        np.abs(peers.linear("pca", counts, 2, window=3, seed=0)(counts)), np.abs(plain), atol=1e-9
    )


def test_cebra_is_seeded_and_leaves_the_global_generator_alone(cebra):
    assert peers.cebra_is_installed()
    counts = np.random.default_rng(0).poisson(1.0, (50, 5)).astype(np.uint8)
    torch.manual_seed(5)
    before = torch.random.get_rng_state()
    one, same, other = (peers.cebra(counts, 3, seed=seed)(counts[:7]) for seed in (0, 0, 1))
    assert torch.equal(before, torch.random.get_rng_state())
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()
    assert one.shape == (7, 3)
    assert one.dtype == float
    told = cebra.calls[0]
    assert (told["conditional"], told["output_dimension"]) == ("time", 3)
    # it sees ten bins, and positives are no nearer than that
    assert (told["model_architecture"], told["time_offsets"]) == ("offset10-model", 10)
    assert told["labels"] == ()


def test_cebra_takes_labels(cebra):
    counts = np.random.default_rng(0).poisson(1.0, (50, 5)).astype(np.uint8)
    labels = np.linspace(0, 1, 100).reshape(50, 2)
    assert peers.cebra(counts, 3, labels=labels, seed=0)(counts).shape == (50, 3)
    told = cebra.calls[-1]
    assert told["conditional"] == "time_delta"
    np.testing.assert_array_equal(told["labels"][0], labels.astype(np.float32))
