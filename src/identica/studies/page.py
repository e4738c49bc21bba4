"""The HTML page of a study: a sortable table of our figures and the published ones, and plots per row."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from identica.report.pages import write_page

if TYPE_CHECKING:
    from identica.studies.study import Study
    from identica.studies.table import Entry

EXPECTED = {  # where figures may lie, by what a target accepts
    ("within",): "Expected: within.",
    ("within", "above"): "Expected: within or above.",
    ("within", "below"): "Where the theory forbids a high score: within or below.",
}


def write_study_page(path: Path, study: Study[Any], entries: Sequence[Entry]) -> None:
    """Write report.html of a study from the scores it has so far."""
    verdicts = [study.verdict(entry.target, entry.ours) for entry in entries]
    judged = [verdict.good for verdict in verdicts if verdict.good is not None]
    accepted = {entry.target.accepted for entry in entries}
    runs: dict[int, dict[str, Any]] = {}
    for entry in entries:
        runs.setdefault(entry.row.row, {})[entry.target.kind] = entry.runs
    rows = {entry.row.row: entry.row for entry in entries}
    write_page(
        path,
        "study.html",
        title=study.title,
        study=study,
        date=time.strftime("%Y-%m-%d"),
        notes=list(dict.fromkeys(name for entry in entries for name in entry.notes)),
        scores=[_score(study, *both) for both in zip(entries, verdicts, strict=True)],
        good=sum(judged),
        judged=len(judged),
        expected=" ".join(words for kinds, words in EXPECTED.items() if kinds in accepted),
        rows=[
            (row, words := study.words(row), tone(words), study.pictures(row, runs[number]))
            for number, row in rows.items()
        ],
    )


def tone(words: str) -> str:
    """The colour of a remark about a row: guaranteed, not guaranteed, or neutral."""
    starts = {"Guaranteed": "yes", "Not guaranteed": "unsure"}
    return next((colour for start, colour in starts.items() if words.startswith(start)), "")


def _score(study: Study[Any], entry: Entry, verdict: Any) -> dict[str, Any]:
    from identica.studies import table

    label = study.label(entry.target)
    factor, digits = (100, 2) if study.unit == "%" else (1, 4)
    # unpublished scores sort last
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
        "shown": "–" if difference is None else f"{difference:+.{digits}f}".replace("-", "−"),
        "verdict": verdict.word,
        "mark": {True: "✓ ", False: "✗ ", None: ""}[verdict.good],
        "colour": {True: "good", False: "bad", None: "soft"}[verdict.good],
        "seconds": entry.seconds,
    }
