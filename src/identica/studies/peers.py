"""Other methods on the same recordings: PCA, FastICA and, where it is installed, CEBRA."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from identica.studies.decoding import smoothed

Counts = NDArray[Any]
Encode = Callable[[Counts], NDArray[np.float64]]

LINEAR = ("pca", "fastica")


def cebra_is_installed() -> bool:
    """Whether CEBRA (Schneider, Lee & Mathis, Nature 2023) can be imported."""
    return find_spec("cebra") is not None


def linear(kind: str, counts: Counts, n: int, *, window: int = 1, seed: int) -> Encode:
    """Fit n principal or independent components ("pca" or "fastica"); returns a function of counts.

    They are computed from standardised square roots of counts (which equalises the noise), smoothed over a
    window in time.
    """
    from sklearn.decomposition import PCA, FastICA
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    method = PCA(n, random_state=seed)
    if kind == "fastica":
        method = FastICA(n, whiten="unit-variance", max_iter=1000, tol=1e-3, random_state=seed)
    model = make_pipeline(StandardScaler(), method)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the result is scored in any case
        model.fit(smoothed(np.sqrt(counts.astype(float)), window))
    return lambda rows: np.asarray(model.transform(smoothed(np.sqrt(rows.astype(float)), window)))


def cebra(
    counts: Counts, n: int, *, seed: int, iterations: int = 5000, labels: Counts | None = None
) -> Encode:
    """Train CEBRA-Time or, with continuous labels N×m, CEBRA-Behavior, with the settings of its authors'
    demo of the hippocampus.

    It sees ten bins around each row. Positives are ten bins apart, so that these hardly overlap; with
    labels, positives are rows whose labels differ as those of rows ten bins apart do.
    """
    import torch
    from cebra import CEBRA

    model = CEBRA(
        model_architecture="offset10-model",
        conditional="time" if labels is None else "time_delta",
        time_offsets=10,
        output_dimension=n,
        batch_size=512,
        max_iterations=iterations,
        learning_rate=3e-4,
        device="cpu",
    )
    with torch.random.fork_rng(devices=[]):  # it draws from the global generator
        torch.manual_seed(seed)
        given = () if labels is None else (labels.astype(np.float32),)
        model.fit(counts.astype(np.float32), *given)
    return lambda rows: np.asarray(model.transform(rows.astype(np.float32)), float)
