"""Codes on disk: as an array, as a table and as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from identica.estimator.files import Index

CODES, TABLE, PICTURE = "codes.npy", "codes.csv", "codes.png"
MOST = 12  # codes that are drawn over time


def write_codes(folder: Path, codes: Any, index: Index | None = None) -> None:
    """Write codes N×n, or trials × time × n.

    The first columns of the table are the index as it was read, or the numbers of trial and time.
    """
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
    elif index is not None:
        cells = np.array([_cell(cell) for cell in index.cells], object)
        rows, names = np.column_stack([cells, rows]), [_cell(index.name), *names]
        formats = ["%s", *formats]
    with replacing(folder / TABLE) as temporary:
        head: dict[str, Any] = {"header": ",".join(names), "comments": "", "encoding": "utf-8"}
        np.savetxt(temporary, rows, formats, delimiter=",", **head)


def _cell(value: Any) -> str:
    """A cell of a csv, quoted if necessary."""
    text = str(value)
    return '"' + text.replace('"', '""') + '"' if set(text) & set(',"\n\r') else text


def draw_codes(path: Path, codes: Any, groups: Any = None, index: Index | None = None) -> None:
    """Write a picture of codes: each over time, and two of them against each other, coloured by time."""
    import numpy as np

    from identica._io import replacing
    from identica.estimator.sequences import sequences

    if codes.ndim == 3:
        groups = np.repeat(np.arange(len(codes)), codes.shape[1])
    rows = codes.reshape(-1, codes.shape[-1])
    within = sequences(len(rows), 1, groups)
    time = np.arange(len(rows))
    # a blank after each sequence, so that its line does not continue into the next
    gaps = np.where(np.isin(time + 1, within.ends)[:, None], np.nan, rows[within.rows(time)])
    times, label = time, "row" if len(within.ends) == 1 else "row, by sequence and time"
    if index is not None and len(index.times) == len(rows):
        times, label = index.times[within.rows(time)], index.name
    with replacing(path) as temporary:
        _figure(rows[within.rows(time)], gaps, times, label).savefig(
            temporary, format="png", dpi=120
        )


def _figure(rows: Any, lines: Any, times: Any, label: str) -> Figure:
    import numpy as np
    from matplotlib.figure import Figure

    from identica import plots
    from identica.plots.style import date_ticks

    shown = min(rows.shape[1], MOST)
    figure = Figure((11, max(4.0, 0.9 * shown + 1)), layout="constrained")
    parts: Any = figure.subfigures(1, 2, width_ratios=(2, 1))
    left, right = parts
    panels = left.subplots(shown, 1, sharex=True, squeeze=False)[:, 0]
    for k, ax in enumerate(panels):
        ax.plot(times, lines[:, k], linewidth=0.6)
        ax.set_ylabel(f"code {k + 1}")
    panels[-1].set_xlabel(label)
    if times.dtype.kind == "M":
        locator, formatter = date_ticks()
        panels[-1].xaxis.set_major_locator(locator)
        panels[-1].xaxis.set_major_formatter(formatter)
    ax, finite = right.subplots(), np.isfinite(rows).all(axis=1)
    known = rows[finite]
    if rows.shape[1] == 1:
        plots.density(known, ax=ax)
    else:
        plots.codes(known, times[finite], name=label, ax=ax)
    return figure
