"""What bends the ring of head directions: errors of decoded directions, in parts.

    python -m validation.ring [codes|decoder]       # writes results/ring.json and .md

Recordings are simulated with the statistics of the first three fifths of the mouse's: tuning of the neurons,
and turns, which depend on the direction the mouse faces. One property at a time is then taken away. The
error is measured in four ways: of the codes after the best rotation, as in the study `recordings`; of codes
that `transform` does not straighten (`ContrastiveICA.ring_`); after a smooth map, fitted with the true
directions, has straightened the ring; and of a decoder that was fitted with true directions. What is measured
again, codes or decoder, replaces its old figures. One thread.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter1d
from scipy.signal import lfilter

from identica import ContrastiveICA
from identica._io import write_json, write_text
from identica.datasets import recordings
from identica.studies import decoding
from identica.studies.decoding import Labelled, wrapped

RESULTS = Path(__file__).parent.parent / "results" / "ring.json"
TABLE = RESULTS.with_suffix(".md")
SEEDS = (10, 11, 12)
BINS = 100_000
ANGLES = 72  # directions at which tuning is measured
CENTRES = (np.arange(ANGLES) + 0.5) / ANGLES * 2 * np.pi - np.pi
HARMONICS = 8  # of the smooth map that straightens the ring
RECORDED = "the recording"
WINDOWS = (7, 11, 15, 21, 31, 41, 61)  # tried by the decoder that is fitted with true directions
# how far tuning curves are moved at random, so that each seed has other neurons
MOVED = np.radians(30)
# Neurons do not follow the tracked direction exactly, so their direction strays. Without this, a decoder
# fitted with true directions would do twice as well in simulations as in the recording.
STRAYING, FORGOTTEN = np.radians(12), 0.015  # standard deviation, and the share lost per bin
EXCITED, CALMED = 0.35, 0.01  # the same for the logarithm of the rate that all neurons share

Array = NDArray[np.float64]
Data = tuple[NDArray[Any], Array]  # counts or rates, and directions

# how recordings are simulated, and how they are fitted
VARIANTS: dict[str, tuple[dict[str, bool], dict[str, int]]] = {
    "as measured": ({}, {}),
    "the same, `window=11`": ({}, {"window": 11}),
    "turns that do not depend on the direction": ({"alike": True}, {}),
    "neurons spread evenly, with equal rates": ({"even": True}, {}),
    "rates instead of spikes, `window=1`, `lag=21`": ({"spikes": False}, {"window": 1, "lag": 21}),
}


def measured() -> Data:
    """Spikes and directions of the first three fifths of the recording."""
    mouse = recordings.load("head-direction")
    first = len(mouse) * 3 // 5
    return mouse.counts[:first], wrapped(mouse.label[:first].astype(float))


def tuning(counts: NDArray[Any], angle: Array) -> Array:
    """Mean spikes per bin of each neuron at each of `ANGLES` directions, smoothed."""
    at = np.digitize(angle, np.linspace(-np.pi, np.pi, ANGLES + 1)[1:-1])
    spikes = np.stack([np.bincount(at, x, ANGLES) for x in counts.T.astype(float)], 1)
    mean = spikes / np.maximum(np.bincount(at, minlength=ANGLES), 1)[:, None]
    return np.asarray(gaussian_filter1d(np.maximum(mean, 1e-4), 1.0, axis=0, mode="wrap"))


def at_angles(curves: Array, angle: Array) -> Array:
    """Tuning curves at some directions, N×neurons."""
    return np.stack([np.interp(angle, CENTRES, c, period=2 * np.pi) for c in curves.T], 1)


def turned(curves: Array, by: Array) -> Array:
    """Tuning curves, each moved by an angle."""
    return np.stack(
        [at_angles(curves[:, [k]], CENTRES - b)[:, 0] for k, b in enumerate(by)], axis=1
    )


def turns(angle: Array, rows: int, rng: np.random.Generator, *, alike: bool) -> Array:
    """A walk of pieces of the measured one, of 1.5 to 4 s; each starts in the direction the last ended in.

    If `alike`, pieces are taken from anywhere and half of them are mirrored.
    """
    order = np.argsort(angle)
    pieces, have, now = [], 0, float(angle[rng.integers(len(angle))])
    while have < rows:
        near = np.searchsorted(angle[order], [now - 0.03, now + 0.03])
        first = rng.integers(*near) if near[1] > near[0] else near[0] - 1
        start = rng.integers(len(angle)) if alike else order[first]
        piece = np.unwrap(angle[start : start + rng.integers(150, 400)])
        sign = rng.choice([-1, 1]) if alike else 1
        pieces.append(now + sign * (piece - piece[0]))
        have, now = have + len(piece), float(wrapped(pieces[-1][-1]))
    return wrapped(np.concatenate(pieces)[:rows])


def autoregressive(rows: int, width: float, lost: float, rng: np.random.Generator) -> Array:
    noise = width * np.sqrt(lost * (2 - lost)) * rng.normal(size=rows)
    return np.asarray(lfilter([1.0], [1.0, lost - 1], noise))


def simulated(seed: int, *, alike: bool = False, even: bool = False, spikes: bool = True) -> Data:
    """A simulated recording.

    Args:
        seed: of turns, neurons and spikes.
        alike: turns do not depend on the direction.
        even: preferred directions are spread evenly, and all neurons fire as much.
        spikes: Poisson spikes; otherwise the square roots of rates, of neurons that do not stray.
    """
    rng = np.random.default_rng(seed)
    counts, angle = measured()
    curves = tuning(counts, angle)
    cells = curves.shape[1]
    truth = turns(angle, BINS, rng, alike=alike)
    if even:
        preferred = np.angle(np.exp(1j * CENTRES) @ curves)
        by = rng.permutation(cells) * 2 * np.pi / cells - preferred
        curves = turned(curves * (curves.max() / 3 / curves.max(0)), by)
    else:
        curves = turned(curves, rng.normal(0, MOVED, cells))
    if not spikes:
        return np.sqrt(at_angles(curves, truth)).astype(np.float32), truth
    rates = at_angles(curves, wrapped(truth + autoregressive(BINS, STRAYING, FORGOTTEN, rng)))
    rates *= np.exp(autoregressive(BINS, EXCITED, CALMED, rng) - EXCITED**2 / 2)[:, None]
    return np.minimum(rng.poisson(rates), recordings.MOST).astype(np.uint8), truth


def degrees(found: Array, truth: Array) -> float:
    """The median error in degrees."""
    return 180 * decoding.error("angle", truth, found)


def straightened(found: Array, truth: Array) -> tuple[Array, float]:
    """Directions corrected by a smooth map of the ring, and the r.m.s. correction in degrees.

    The map is fitted to the truth: truth − found by harmonics of the found angle, with the least absolute
    error.
    """
    waves = [f(k * found) for k in range(1, HARMONICS + 1) for f in (np.cos, np.sin)]
    columns = np.column_stack([np.ones(len(found)), *waves])
    missing, weights = wrapped(truth - found), np.ones(len(found))
    change = missing
    for _ in range(15):  # least squares, weighed again until they are least absolute errors
        root = np.sqrt(weights)
        change = columns @ np.linalg.lstsq(columns * root[:, None], missing * root, rcond=None)[0]
        weights = 1 / np.maximum(np.abs(missing - change), 0.05)
    bend = change - np.median(change)
    return found + change, float(np.degrees(np.sqrt(np.mean(bend**2))))


def supervised(counts: NDArray[Any], angle: Array, first: int) -> float:
    """Error of the mean direction under the posterior of Poisson neurons with known tuning.

    The tuning is that of the first rows; the window, that with the least error on their last eighth. As
    for codes, the error is that after the best rotation, so a drift of the neurons' zero does not count.
    """
    fine = np.linspace(-np.pi, np.pi, 360, endpoint=False)

    def missed(known: slice, window: int, test: slice) -> float:
        rates = at_angles(tuning(counts[known], angle[known]), fine)
        seen = window * decoding.smoothed(counts[test].astype(float), window)
        log = seen @ np.log(rates).T - window * rates.sum(1)
        mean = np.exp(log - log.max(1, keepdims=True)) @ np.exp(1j * fine)
        codes = Labelled(np.stack([mean.real, mean.imag], 1), angle[test])
        return degrees(decoding.decode("angle", codes, codes.codes), codes.label)

    some = first * 7 // 8
    best = min(WINDOWS, key=lambda w: missed(slice(some), w, slice(some, first)))
    return missed(slice(first), best, slice(first, None))


def measure(data: Data, seed: int, *, lag: int = 1, window: int | str = "auto") -> dict[str, Any]:
    """The errors on the last fifth of a model fitted to the first four."""
    seen, angle = data
    first, start = decoding.train_rows(len(seen)), time.perf_counter()
    ica = ContrastiveICA(2, space="sphere", window=window, random_state=seed)
    ica.fit(seen[:first], lag=lag)
    seconds = time.perf_counter() - start

    def directions() -> Array:
        test = Labelled(np.asarray(ica.transform(seen[first:]), float), truth)
        return decoding.decode("angle", test, test.codes)

    truth = angle[first:]
    found = directions()
    straight, bend = straightened(found, truth)
    error = {"error": degrees(found, truth), "straightened": degrees(straight, truth), "bend": bend}
    ica.ring_ = np.ones(1)
    error["as trained"] = degrees(directions(), truth)
    error = {name: round(value, 3) for name, value in error.items()}
    return {"seed": seed, "window": ica.window_, **error, "seconds": round(seconds, 1)}


def decoded(data: Data, seed: int) -> dict[str, Any]:
    """The error of the decoder that is fitted with true directions; none without spikes."""
    counts, angle = data
    if not np.issubdtype(counts.dtype, np.integer):
        return {"seed": seed}
    error = supervised(counts, angle, decoding.train_rows(len(counts)))
    return {"seed": seed, "supervised": round(error, 3)}


def table(results: dict[str, list[dict[str, Any]]]) -> str:
    """The figures as Markdown: means over seeds."""
    lines = [
        "| data | window | error | as trained | straightened | supervised | r.m.s. bend |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, runs in results.items():
        cells = [
            name,
            ", ".join(str(w) for w in sorted({r["window"] for r in runs if "window" in r})),
        ]
        for key in ("error", "as trained", "straightened", "supervised", "bend"):
            values = [run[key] for run in runs if key in run]
            cells.append(f"{np.mean(values):.1f}°" if values else "–")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + f"\n\nMeans of {len(SEEDS)} seeds; one thread.\n"


def main(parts: list[str]) -> int:
    unknown = [part for part in parts if part not in ("codes", "decoder")]
    if unknown:
        print(f"unknown part {unknown[0]!r}: choose from codes, decoder", file=sys.stderr)
        return 2
    torch.set_num_threads(1)
    results: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    mouse = recordings.load("head-direction")
    recorded = mouse.counts, wrapped(mouse.label.astype(float))
    for name in (*VARIANTS, RECORDED):
        drawn, fitted = VARIANTS.get(name, ({}, {}))
        old = results.get(name, [{} for _ in SEEDS])
        runs = []
        for seed, run in zip(SEEDS, old, strict=True):
            data = recorded if name == RECORDED else simulated(seed, **drawn)
            if "codes" in parts or not parts:
                run = run | measure(data, seed, **fitted)
            if "decoder" in parts or not parts:
                run = run | decoded(data, seed)
            runs.append(run)
            print(name, run, flush=True)
        results[name] = runs
        write_json(RESULTS, results)
        write_text(TABLE, table(results))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
