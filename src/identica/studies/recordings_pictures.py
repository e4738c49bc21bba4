"""Plots of fitted recordings: learning curves, codes, and decoded labels over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from identica.plots.points import aligned
from identica.report import plots
from identica.runs.folder import WEIGHTS
from identica.studies import decoding, peers
from identica.studies.decoding import Labelled, train_rows
from identica.studies.study import Finished, Picture, read_metrics

if TYPE_CHECKING:
    from identica.studies.recordings import RecordingRun

SHOWN = 40.0  # seconds of the test data plotted against time
POINTS = 5000  # codes plotted
UNITS = {"factors": 1.0, "position": 100.0, "angle": 180 / np.pi}
PERIODS = {"angle": 360.0}
NAMES = {"position": "position in cm", "angle": "direction in degrees"}


def curves(runs: Sequence[Finished], shuffled: Sequence[Finished]) -> list[Picture]:
    """Learning curves of the first seed and of the shuffled copy, if their histories are available."""
    named = {"recording": runs, "rows in random order": shuffled}
    histories = {
        name: read_metrics(some[0].folder, "step", "loss", "bits")
        for name, some in named.items()
        if some
    }
    histories = {name: records for name, records in histories.items() if records}
    if not histories:
        return []
    caption = "Loss in training and held-out evidence; the dot is where the weights are from"
    return [Picture(caption, plots.inline(plots.fit_curves(histories), dpi=90))]


def recovered(runs: Mapping[str, tuple[RecordingRun, Finished]]) -> list[Picture]:
    """Test codes of each model, and the labels decoded from those of the contrastive model."""
    from identica.estimator import ContrastiveICA

    if "contrastive" not in runs:
        return []
    run, finished = runs["contrastive"]
    encode: peers.Encode = ContrastiveICA.load(finished.folder / WEIGHTS).transform
    data, what, seed = run.data(), run.row.what, f"seed {finished.seed}"
    known, test = run.coded(encode, data)(finished.result.get("smoothing", 1))
    codes = {"contrastive": test.codes}
    if what == "angle":  # points of a ring would cover each other, so the radius grows with time
        codes["contrastive"] = test.codes * np.linspace(0.75, 1, len(test.codes))[:, None]
    if "pca" in runs:
        other, pca = runs["pca"]
        encode = other.peer(data.counts[: train_rows(len(data))])
        codes["PCA"] = other.coded(encode, data)(pca.result.get("smoothing", 1))[1].codes
    pictures = [Picture(f"{_caption(what)}, {seed}", _codes(what, codes, test))]
    rows = int(SHOWN / data.bin)
    true, decoded = (
        _shown(what, values).reshape(len(values), -1)[:rows]
        for values in (test.label, decoding.decode(what, known, test.codes))
    )
    names = [NAMES[what]] if what in NAMES else [f"factor {i + 1}" for i in range(true.shape[1])]
    figure = plots.decoded_over_time(
        data.bin * np.arange(len(true), dtype=float), true, decoded, names, period=PERIODS.get(what)
    )
    caption = f"Decoded from smoothed codes, {data.bin * len(true):.0f} s of the test, {seed}"
    return [*pictures, Picture(caption, plots.inline(figure, dpi=90))]


def _caption(what: str) -> str:
    if what == "factors":
        return "True factors of the test against their smoothed codes"
    turns = ", from the inside out as time passes" if what == "angle" else ""
    return f"Smoothed codes of the test, coloured by {NAMES[what].split()[0]}{turns}"


def _codes(what: str, codes: Mapping[str, NDArray[np.float64]], test: Labelled) -> str:
    """The picture of some codes of the test, as the address of an <img>."""
    some = slice(None, None, -(-len(test.label) // POINTS))
    if what == "factors":
        recovered = aligned(test.label, test.codes, "permutation")
        return plots.inline(plots.true_against_recovered(test.label[some], recovered[some]), dpi=90)
    figure = plots.coloured_codes(
        {name: each[some] for name, each in codes.items()},
        _shown(what, test.label[some]),
        NAMES[what],
        cyclic=what == "angle",
    )
    return plots.inline(figure, dpi=90)


def _shown(what: str, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Labels in the units of the pictures."""
    return UNITS[what] * (decoding.wrapped(values) if what == "angle" else values)
