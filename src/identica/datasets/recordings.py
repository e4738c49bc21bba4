"""Recordings of neurons: spike counts in bins of equal length, with the behaviour of the animal.

Rats on a linear track: Grosmark & Buzsáki, "Diversity in neural firing dynamics supports both rigid and
learned hippocampal sequences", Science 2016, binned as in Schneider, Lee & Mathis, "Learnable latent
embeddings for joint behavioural and neural analysis", Nature 2023. A mouse's sense of direction: Peyrache
et al., "Internally organized mechanisms of the head direction sense", Nature Neuroscience 2015.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import pi
from pathlib import Path
from types import NoneType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from identica._validate import instance, one_of, positive
from identica.datasets._arguments import check_array
from identica.datasets.reading import read_npz
from identica.datasets.root import find
from identica.errors import InputError

TRACK = 1.6  # metres
MOST = 255  # spikes of a neuron in a bin
ROUNDED = 1e-5  # rounding error of labels in single precision


@dataclass(frozen=True, eq=False)
class Recording:
    """Spike counts with a label for each bin; read-only.

    Args:
        name: What was recorded.
        counts: Spikes of each neuron in each bin, N×neurons whole numbers.
        label: What the neurons may encode, N numbers or N×d.
        bin: Length of a bin, in seconds.
        direction: In which direction a rat ran, 0 or 1 for each bin; None for others.
    """

    name: str
    counts: NDArray[Any]
    label: NDArray[Any]
    bin: float
    direction: NDArray[Any] | None = None

    def __post_init__(self) -> None:
        counts, label, direction = self.counts, self.label, self.direction
        positive("bin", self.bin)
        check_array("counts", counts, "whole numbers", (None, None))
        if not counts.size or counts.min() < 0 or counts.max() > MOST:
            raise InputError(f"counts must lie in 0…{MOST}, at least one of them")
        instance("label", label, np.ndarray, "a NumPy array")
        check_array("label", label, "floats", (len(counts), *label.shape[1:2]))
        instance("direction", direction, (np.ndarray, NoneType), "a NumPy array or None")
        if direction is not None and (
            direction.shape != (len(counts),) or not np.isin(direction, (0, 1)).all()
        ):
            raise InputError(f"direction must be 0 or 1 for each of {len(counts)} bins")
        for array in (counts, label, direction):
            if array is not None:
                array.setflags(write=False)

    def __len__(self) -> int:
        return len(self.counts)


class Source(NamedTuple):
    """A file of a recording: its name, that of the label and where it lies, and the length of a bin."""

    file: str
    label: str
    low: float
    high: float
    bin: float
    unit: str
    direction: bool = False


SOURCES = {
    "achilles": Source("rat_achilles.npz", "position", 0.0, TRACK, 0.025, "metres", True),
    "gatsby": Source("rat_gatsby.npz", "position", 0.0, TRACK, 0.025, "metres", True),
    "head-direction": Source("mouse_head_direction.npz", "angle", -2 * pi, 2 * pi, 0.01, "radians"),
}


def load(name: str, path: str | Path | None = None) -> Recording:
    """A recording of the hippocampus ("achilles", "gatsby") or of head-direction cells ("head-direction").

    The label is the position on the track in metres (0 to 1.6), or the angle of the head in radians.

    Args:
        name: Which recording.
        path: The npz archive; by default the one in `recordings` under the data root. It holds `counts`,
            N×neurons, and `position` and `direction` or `angle`, N each.
    """
    source = SOURCES[one_of("name", name, SOURCES)]
    names = ["counts", source.label, *(["direction"] if source.direction else [])]
    if path is None:
        path = find(
            "recordings",
            source.file,
            get=f"put the published recording there, as the arrays {', '.join(names)} with a row for "
            f"each bin of {1000 * source.bin:.0f} ms",
        )
    arrays = read_npz(path, names)
    try:
        made = Recording(
            name, arrays["counts"], arrays[source.label], source.bin, arrays.get("direction")
        )
        label = made.label.astype(float)
        inside = (label >= source.low - ROUNDED) & (label <= source.high + ROUNDED)
        if label.ndim != 1 or not inside.all():
            raise InputError(
                f"{source.label} must be {source.unit} from {source.low:.3g} to {source.high:.3g}, one "
                "for each bin"
            )
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    return made


def check(recording: Recording) -> dict[str, float]:
    """Statistics of a recording.

    >>> check(Recording("one cell", np.array([[0], [3]]), np.zeros(2), bin=0.5))
    {'bins': 2, 'neurons': 1, 'silent neurons': 0, 'seconds': 1.0, 'spikes per neuron and second': 3.0}
    """
    counts = recording.counts
    seconds = len(counts) * recording.bin
    return {
        "bins": len(counts),
        "neurons": counts.shape[1],
        "silent neurons": int((counts.max(axis=0) == 0).sum()),
        "seconds": seconds,
        "spikes per neuron and second": float(counts.mean()) / recording.bin,
    }
