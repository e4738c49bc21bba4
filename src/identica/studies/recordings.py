"""Recordings of neurons as a study: what is recovered from noise, compared with PCA, FastICA and CEBRA."""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from identica._validate import one_of
from identica.datasets import neurons, recordings
from identica.datasets.recordings import Recording
from identica.errors import InputError, TrustWarning
from identica.recipes import PRESETS, Preset, Recipe
from identica.runs import Tick
from identica.runs.folder import METRICS, PARTS, WEIGHTS, plain, run_name
from identica.studies import decoding, peers
from identica.studies.decoding import SMOOTHED, Labelled, Parts, smoothed, train_rows
from identica.studies.study import Finished, Picture, Study, Target, read_metrics
from identica.training import History, write_metrics

if TYPE_CHECKING:
    from identica.estimator import ContrastiveICA

KINDS = ("contrastive", "pca", "fastica", "cebra", "shuffled")
OURS = ("contrastive", "shuffled")


WORDS = {
    "factors": (
        "A linear map from codes to the true factors is fitted to the first four fifths and scored on the "
        "last; MCC takes each code by itself."
    ),
    "position": (
        "The position of unseen bins is the mean of those with the nearest codes, as many as suit the last "
        "eighth of the training bins best. No model sees positions."
    ),
    "angle": (
        "The direction is the angle of the two codes, after the best rotation or reflection. No model sees "
        "directions."
    ),
}


@dataclass(frozen=True)
class RecordingRow:
    """A recording, and how it is fitted.

    Attributes:
        data: "place cells", "ring", "uneven ring" (simulated) or the name of a recording.
        what: what is decoded, see `decoding.decode`.
        codes, space: number of codes, and where they live.
        bins, rate: of the simulated ones, their length and `rate`.
    """

    row: int
    data: str
    what: str
    codes: int
    space: str = "box"
    bins: int | None = None
    rate: float | None = None

    def load(self, seed: int) -> Recording:
        """The recording; a simulated one depends on the seed."""
        if self.bins is None or self.rate is None:
            return recordings.load(self.data)
        if self.data == "place cells":
            return neurons.place_cells(self.bins, rate=self.rate, seed=seed)
        uneven = self.data == "uneven ring"
        return neurons.head_direction_cells(self.bins, rate=self.rate, uneven=uneven, seed=seed)


_PLACE = [(rate, bins) for rate in (0.5, 2.5, 10.0) for bins in (7_500, 30_000)]
ROWS = [
    *(
        RecordingRow(number, "place cells", "factors", 3, bins=bins, rate=rate)
        for number, (rate, bins) in enumerate(_PLACE, 1)
    ),
    RecordingRow(7, "ring", "angle", 2, "sphere", bins=60_000, rate=0.25),
    RecordingRow(8, "uneven ring", "angle", 2, "sphere", bins=100_000, rate=0.25),
    RecordingRow(9, "achilles", "position", 8),
    RecordingRow(10, "gatsby", "position", 8),
    RecordingRow(11, "head-direction", "angle", 2, "sphere"),
]


@dataclass(frozen=True)
class RecordingRun:
    """A model fitted to the first four fifths of a recording, and scored on the last.

    Attributes:
        row: the recording.
        kind: "contrastive" (`ContrastiveICA` with its defaults), "pca", "fastica", "cebra", or "shuffled":
            as "contrastive", but of a copy with rows in random order, so that there is nothing to find.
        seed: of the model, and of a simulated recording.
        steps: the most steps of training; the default of each method if None.
    """

    row: RecordingRow
    kind: str
    seed: int
    steps: int | None = None

    @property
    def config(self) -> dict[str, Any]:
        row = self.row
        return {
            "kind": self.kind,
            "seed": self.seed,
            "data": row.data,
            "bins": row.bins,
            "rate": row.rate,
            "decoded": row.what,
            "codes": row.codes,
            "space": row.space,
            "steps": self.steps,
        }

    @cached_property
    def name(self) -> str:
        return run_name(self.config)

    @property
    def pairs(self) -> int:
        """Roughly the number of pairs seen in training."""
        return 512 * (self.steps or 3000) if self.kind not in peers.LINEAR else 1

    def data(self) -> Recording:
        """The recording, its rows in random order if they are to be shuffled."""
        found = self.row.load(self.seed)
        if self.kind != "shuffled":
            return found
        order = np.random.default_rng(self.seed).permutation(len(found))
        return Recording(found.name, found.counts[order], found.label[order], found.bin)

    def run(self, folder: Path, tick: Tick = lambda *_: None) -> dict[str, Any]:
        """Fit and score, from wherever an earlier run stopped; the content of result.json."""
        data = self.data()
        counts, test = np.split(data.counts, [train_rows(len(data))])
        before, began = _spent(folder), time.perf_counter()
        tick(0, 2, "fitting")
        result: dict[str, Any] = {"pairs": 0, "seed": self.seed}
        if self.kind in OURS:
            ica, said = self.estimator(folder, counts)
            encode: peers.Encode = ica.transform
            steps = sum(start["steps"] for start in ica.starts_)
            result |= {"window": ica.window_, "pairs": steps * ica.training_.batch}
        else:
            encode = self.peer(counts)
        seconds = before + time.perf_counter() - began
        scores, window = decoding.scores(self.row.what, self.coded(encode, data))
        result |= {"scores": scores, "smoothing": window, "seconds": seconds}
        if self.kind in OURS:
            tick(1, 2, "diagnosing")
            verdict = ica.diagnose(counts).verdict
            result |= {"bits": ica.score(test), "verdict": verdict, "warning": said}
        return result

    def estimator(self, folder: Path, counts: peers.Counts) -> tuple[ContrastiveICA, str | None]:
        """The fitted estimator, which is written to the folder of the run, and its warning, if any."""
        from identica.estimator import ContrastiveICA

        ica = ContrastiveICA(
            self.row.codes,
            space=self.row.space,
            steps=self.steps,
            random_state=self.seed,
            folder=folder / PARTS,
        )
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always", TrustWarning)
            ica.fit(counts)
        ica.save(folder / WEIGHTS)
        write_metrics(folder, History(ica.history_))
        return ica, str(said[0].message) if said else None

    def peer(self, counts: peers.Counts, window: int = 1) -> peers.Encode:
        """Another method, fitted; PCA and FastICA are fitted to counts smoothed by a window."""
        n = self.row.codes
        if self.kind in peers.LINEAR:
            return peers.linear(self.kind, counts, n, window=window, seed=self.seed)
        options: dict[str, Any] = {} if self.steps is None else {"iterations": self.steps}
        n += self.row.what == "factors"  # its codes have unit length, so a box takes one more
        return peers.cebra(counts, n, seed=self.seed, **options)

    def coded(self, encode: peers.Encode, data: Recording) -> Callable[[int], Parts]:
        """A function that returns codes and labels, smoothed by a window.

        PCA and FastICA are fitted to smoothed counts, which suits them better than smoothing their codes.
        """
        parts, counts = self.codes(encode, data), data.counts[: train_rows(len(data))]

        def smooth(window: int) -> Parts:
            if self.kind in peers.LINEAR:
                return self.codes(self.peer(counts, window), data)
            known, test = (Labelled(smoothed(p.codes, window), p.label) for p in parts)
            return known, test

        return smooth

    def codes(self, encode: peers.Encode, data: Recording) -> Parts:
        """Codes and labels of the training part and of the test, each encoded separately."""
        first = train_rows(len(data))
        known, test = (
            Labelled(np.asarray(encode(data.counts[part]), float), data.label[part].astype(float))
            for part in (slice(first), slice(first, None))
        )
        return known, test


def _spent(folder: Path) -> float:
    """Seconds that a resumed run has already spent on training."""
    parts = [read_metrics(path.parent, "seconds") for path in (folder / PARTS).rglob(METRICS)]
    return sum(records[-1]["seconds"] for records in parts if records)


class RecordingsTable(Study[RecordingRow]):
    """Scores on the last fifth of each recording, for all models with the same split and decoder."""

    side_by_side = False
    by_kind = True
    legend = (
        "Mean ± standard deviation over seeds (how many), on the last fifth of each recording: R² of a "
        "linear map and MCC in %, median error in cm or degrees (in table.json as a share of the track "
        f"of {recordings.TRACK} m, or of 180°). Smoothed: codes (for PCA and FastICA, counts before the fit) "
        "are averaged over so many bins as is best for the last eighth of those to fit to. Bits: held-out "
        "evidence, on pairs of the last fifth. Diagnosis: of the codes without the labels. Window: the one "
        "that the contrastive model chose. Shuffled: the same on a copy whose rows are in random order."
    )

    def ready(self, rows: Sequence[RecordingRow]) -> None:
        for row in rows:
            if row.bins is None:
                try:
                    row.load(0)
                except InputError as error:
                    drawn = [r.row for r in self.rows if r.bins is not None]
                    hint = f" (rows {drawn[0]}-{drawn[-1]} need no files)" if drawn else ""
                    raise InputError(f"{error}{hint}") from None

    def absent(self, kind: str) -> str:
        missing = kind == "cebra" and not peers.cebra_is_installed()
        return "not installed" if missing else ""

    def targets(self, row: RecordingRow) -> list[Target]:
        return [Target(kind, score, None) for kind in KINDS for score in decoding.SCORES[row.what]]

    def experiment(self, row: RecordingRow, kind: str, seed: int, preset: Preset) -> RecordingRun:
        if isinstance(preset, Recipe):
            return RecordingRun(row, kind, seed, preset.training.steps)
        one_of("preset", preset, PRESETS)  # both are the same: nothing is published
        return RecordingRun(row, kind, seed)

    def read_back(self, row: RecordingRow, run: Finished) -> RecordingRun:
        found = RecordingRun(row, run.config["kind"], run.seed, run.config.get("steps"))
        if plain(found.config) != run.config:
            raise InputError(f"{run.folder} is a run of another version")
        return found

    def cells(self, row: RecordingRow) -> dict[str, str]:
        named = {
            "place cells": "place cells in a 3-D box, simulated",
            "ring": "head-direction cells, simulated",
            "uneven ring": "head-direction cells, uneven turns, simulated",
            "achilles": "rat Achilles, hippocampus",
            "gatsby": "rat Gatsby, hippocampus",
            "head-direction": "mouse, head-direction cells",
        }
        return {
            "recording": named[row.data],
            "bins": "–" if row.bins is None else f"{row.bins:,}",
            "rate": "–" if row.rate is None else f"{row.rate:g}",
            "codes": f"{row.codes}, {row.space}",
        }

    def label(self, target: Target) -> str:
        name = target.score.removesuffix(SMOOTHED)
        shown = {"r2": "R²", "mcc": "MCC"}.get(name, "median error")
        return shown if name == target.score else f"{shown}, smoothed"

    def show(self, value: float, score: str = "") -> str:
        if score.startswith("position"):
            return f"{100 * recordings.TRACK * value:.2f} cm"
        if score.startswith("angle"):
            return f"{180 * value:.2f}°"
        return super().show(value)

    def notes(self, runs: Sequence[Finished]) -> dict[str, str]:
        found: dict[str, str] = {}
        results = [run.result for run in runs]
        bits = [r["bits"] for r in results if isinstance(r.get("bits"), float)]
        if bits:
            found["bits"] = f"{np.mean(bits):.2f}"
        keys = {"diagnosis": "verdict", "window": "window", "smoothing": "smoothing"}
        for name, key in keys.items():
            counted = Counter(str(r[key]) for r in results if r.get(key) is not None)
            if counted:
                found[name] = ", ".join(
                    f"{value} ({times})" if len(counted) > 1 else value
                    for value, times in counted.most_common()
                )
        return found

    def words(self, row: RecordingRow) -> str:
        return WORDS[row.what]

    def pictures(self, row: RecordingRow, runs: Mapping[str, list[Finished]]) -> list[Picture]:
        from identica.studies.recordings_pictures import curves, recovered

        pictures = curves(runs.get("contrastive", []), runs.get("shuffled", []))
        with suppress(InputError):  # weights or data that are gone cost these pictures alone
            found = {kind: runs[kind][0] for kind in ("contrastive", "pca") if runs.get(kind)}
            pictures += recovered({k: (self.read_back(row, run), run) for k, run in found.items()})
        return pictures
