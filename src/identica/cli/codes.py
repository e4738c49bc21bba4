"""Codes on disk: as an array, as a table and as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CODES, TABLE, PICTURE = "codes.npy", "codes.csv", "codes.png"
MOST = 12  # codes that are drawn over time


def write_codes(folder: Path, codes: Any) -> None:
    """Write codes N×n, or trials × time × n, which have their numbers in the first columns of the table."""
    import numpy as np

    from identica._io import replacing

    with replacing(folder / CODES) as temporary, temporary.open("wb") as file:
        np.save(file, codes)
    names = [f"code{k}" for k in range(1, codes.shape[-1] + 1)]
    rows, formats = codes.reshape(-1, codes.shape[-1]), ["%.7g"] * codes.shape[-1]
    if codes.ndim == 3:
        trial, time = np.indices(codes.shape[:2]).reshape(2, -1)
        rows, names = np.column_stack([trial, time, rows]), ["trial", "time", *names]
        formats = ["%d", "%d", *formats]
    with replacing(folder / TABLE) as temporary:
        header = ",".join(names)
        np.savetxt(temporary, rows, formats, delimiter=",", header=header, comments="")


def draw_codes(path: Path, codes: Any, groups: Any = None) -> None:
    """Write a picture of codes: each over time, and two of them against each other, coloured by time."""
    import numpy as np

    from identica._io import replacing
    from identica.estimator.sequences import sequences

    if codes.ndim == 3:
        groups = np.repeat(np.arange(len(codes)), codes.shape[1])
    rows = codes.reshape(-1, codes.shape[-1])
    within = sequences(len(rows), 1, groups)
    time = np.arange(len(rows))
    # an empty place after the end of each sequence, where a line would go on to the next
    gaps = np.where(np.isin(time + 1, within.ends)[:, None], np.nan, rows[within.rows(time)])
    with replacing(path) as temporary:
        _figure(rows[within.rows(time)], gaps).savefig(temporary, format="png", dpi=120)


def _figure(rows: Any, lines: Any) -> Figure:
    import numpy as np
    from matplotlib.figure import Figure

    from identica import plots

    shown = min(rows.shape[1], MOST)
    figure = Figure((11, max(4.0, 0.9 * shown + 1)), layout="constrained")
    parts: Any = figure.subfigures(1, 2, width_ratios=(2, 1))
    left, right = parts
    panels = left.subplots(shown, 1, sharex=True, squeeze=False)[:, 0]
    for k, ax in enumerate(panels):
        ax.plot(lines[:, k], linewidth=0.6)
        ax.set_ylabel(f"code {k + 1}")
    panels[-1].set_xlabel("row" if np.isnan(lines[:-1]).sum() == 0 else "row, by sequence and time")
    ax, known = right.subplots(), rows[np.isfinite(rows).all(axis=1)]
    if rows.shape[1] == 1:
        plots.density(known, ax=ax)
    else:
        plots.codes(known, "time", ax=ax)
    return figure
