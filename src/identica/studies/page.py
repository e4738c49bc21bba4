"""The page of a study: our figures beside the published ones, sortable, with pictures of every row."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from identica.report.pages import write_page

if TYPE_CHECKING:
    from identica.studies.study import Study
    from identica.studies.table import Entry


def write_study_page(path: Path, study: Study[Any], entries: Sequence[Entry]) -> None:
    """Write report.html of a study from the scores it has so far."""
    verdicts = [study.verdict(entry.target, entry.ours) for entry in entries]
    judged = [verdict.good for verdict in verdicts if verdict.good is not None]
    columns = list(study.cells(study.rows[0]))
    write_page(
        path,
        "study.html",
        title=study.title,
        name=study.name,
        date=time.strftime("%Y-%m-%d"),
        side_by_side=study.side_by_side,
        within=study.within,
        legend=study.legend,
        columns=columns,
        notes=list(dict.fromkeys(name for entry in entries for name in entry.notes)),
        scores=[
            _score(study, entry, verdict) for entry, verdict in zip(entries, verdicts, strict=True)
        ],
        good=sum(judged),
        judged=len(judged),
        rows=_rows(study, entries),
    )


def _score(study: Study[Any], entry: Entry, verdict: Any) -> dict[str, Any]:
    from identica.studies import table

    label = study.label(entry.target)
    factor, digits = (100, 2) if study.unit == "%" else (1, 4)
    # what was never published sorts below everything that was
    figure, unknown = entry.target.published, "-Infinity"
    difference = None if figure is None else factor * (entry.ours.mean - figure.mean)
    return {
        "row": entry.row.row,
        "cells": study.cells(entry.row),
        "label": f"{entry.target.kind}, {label}" if study.by_kind else label,
        "notes": entry.notes,
        "published": table.published(study, entry.target),
        "published_mean": unknown if figure is None else figure.mean,
        "ours": table.ours(study, entry),
        "ours_mean": entry.ours.mean,
        "difference": unknown if difference is None else difference,
        "shown": "–" if difference is None else f"{difference:+.{digits}f}",
        "verdict": verdict.word,
        "colour": {True: "good", False: "bad", None: "soft"}[verdict.good],
        "seconds": entry.seconds,
    }


def _rows(study: Study[Any], entries: Sequence[Entry]) -> list[dict[str, Any]]:
    rows = []
    for row in {entry.row.row: entry.row for entry in entries}.values():
        found = {e.target.kind: e.runs for e in entries if e.row is row}
        rows.append(
            {
                "number": row.row,
                "cells": study.cells(row),
                "words": study.words(row),
                "pictures": [picture._asdict() for picture in study.pictures(row, found)],
            }
        )
    return rows
