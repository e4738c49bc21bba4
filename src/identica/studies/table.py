"""The table of a study, computed from its run folders: table.json and table.md."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from identica import _html
from identica._io import make_folder, read_json, write_json
from identica.errors import InputError
from identica.runs.folder import CONFIG, claim, read_result, run_name
from identica.studies.study import Finished, Ours, Study, Target

MANIFEST, TABLE, RUNS = "study.json", "table.json", "runs"


class Entry(NamedTuple):
    """A score of a row, our figure, and the finished runs behind it."""

    row: Any
    target: Target
    ours: Ours
    seconds: float
    notes: dict[str, str]
    runs: list[Finished]


Known = Mapping[tuple[int, str, str], tuple[Ours, float, dict[str, str]]]
NONE: Known = MappingProxyType({})


# --- which runs belong to a study -------------------------------------------------------------------


def register(folder: Path, study: Study[Any], runs: Mapping[tuple[int, str, int], str]) -> None:
    """Write the run of each (row, kind, seed) to study.json; later runs replace earlier ones."""
    _known(folder, study)  # raises for another study, before anything is written
    make_folder("out", folder / RUNS)
    with claim(folder):
        entries = [
            {"row": row, "kind": kind, "seed": seed, "run": name}
            for (row, kind, seed), name in sorted((_known(folder, study) | dict(runs)).items())
        ]
        write_json(folder / MANIFEST, {"study": study.name, "runs": entries})


def _known(folder: Path, study: Study[Any]) -> dict[tuple[int, str, int], str]:
    """The runs of a study that are listed in a folder; raise if it holds another study."""
    if not (folder / MANIFEST).exists():
        return {}
    name, runs = registered(folder)
    if name != study.name:
        raise InputError(f"out must be a folder of its own: {folder} holds the study {name}")
    return runs


def registered(folder: Path) -> tuple[str, dict[tuple[int, str, int], str]]:
    """The name of the study in a folder, and its runs."""
    path = folder / MANIFEST
    if not path.is_file():
        raise InputError(f"{folder} does not hold a study: it has no {MANIFEST}")
    try:
        name, entries = _fields(read_json(path), study=str, runs=list)
        kinds = {"row": int, "kind": str, "seed": int, "run": str}
        rows = [_fields(entry, **kinds) for entry in entries]
    except TypeError:
        raise InputError(f"{path} is not the list of a study's runs") from None
    return name, {(row, kind, seed): run for row, kind, seed, run in rows}


def finished(folder: Path, name: str, seed: int) -> Finished | None:
    """A finished run; None if it is missing, damaged, of another name or still running."""
    path = folder / RUNS / name
    try:
        config = read_json(path / CONFIG)
        _fields(config, kind=str, seed=int)
        same = run_name(config) == name and config["seed"] == seed
        result = read_result(path, config) if same else None
        if result is not None:
            _fields(result.get("errors", {}), **dict.fromkeys(result.get("errors", {}), float))
    except (InputError, TypeError):
        return None
    return None if result is None else Finished(seed, path, config, result)


def _fields(data: Any, **kinds: type) -> list[Any]:
    """The named values of a JSON object; a `TypeError` if one is missing or of another type."""
    if not isinstance(data, dict):
        raise TypeError("must be an object")
    for name, kind in kinds.items():
        value = data.get(name)
        number = isinstance(value, (int, float)) and abs(value) <= sys.float_info.max
        fits = number if kind is float else isinstance(value, kind)
        if not fits or isinstance(value, bool):
            raise TypeError(f"{name} must be of type {kind.__name__}")
    return [data[name] for name in kinds]


# --- the figures ------------------------------------------------------------------------------------


def recorded(folder: Path, study: Study[Any]) -> Known:
    """Figures, seconds and notes of table.json, by row, kind and score; none if there is no table."""
    path = folder / TABLE
    if not path.exists():
        return {}
    known = {(row.row, t.kind, t.score) for row in study.rows for t in study.targets(row)}
    figures = {}
    try:
        for record in _fields({"table": read_json(path)}, table=list)[0]:
            row, kind, score = _fields(record, row=int, kind=str, score=str)
            ours = record.get("ours")
            mean, std, seeds = _fields(ours, mean=float, std=float, seeds=int)
            (error,) = _fields({"error": std / math.sqrt(max(seeds, 1))} | ours, error=float)
            (seconds,) = _fields(record, seconds=float)
            notes = record.get("notes", {})
            _fields(notes, **dict.fromkeys(notes, str))
            figures[row, kind, score] = Ours(mean, std, seeds, error), seconds, notes
    except TypeError:
        raise InputError(f"{path} is not the table of a study") from None
    if foreign := sorted(figures.keys() - known):
        row, kind, score = foreign[0]
        raise InputError(
            f"{path} has a score that {study.name} does not have: row {row} {kind} {score}"
        )
    return figures


def collect(folder: Path, study: Study[Any], keep: Known = NONE) -> list[Entry]:
    """Every score that has at least one finished run, in the order of the table.

    A score in `keep` (see `recorded`) is used as it is if there are runs of fewer seeds.
    """
    _, runs = registered(folder)
    entries = []
    for row in study.rows:
        by_kind: dict[str, list[Finished]] = {}
        for (number, kind, seed), name in runs.items():
            if number == row.row and (run := finished(folder, name, seed)):
                by_kind.setdefault(kind, []).append(run)
        for target in study.targets(row):
            matching = [
                r for r in by_kind.get(target.kind, []) if target.score in r.result["scores"]
            ]
            known = keep.get((row.row, target.kind, target.score))
            if known and known[0].seeds > len(matching):
                entries.append(Entry(row, target, *known, matching))
            elif matching:
                results = [run.result for run in matching]
                seconds = float(np.mean([result["seconds"] for result in results]))
                ours = pooled(results, target.score, study.summary)
                entries.append(Entry(row, target, ours, seconds, study.notes(matching), matching))
    return entries


def more(table: Known, entries: Sequence[Entry]) -> str:
    """Describe the scores of a table (see `recorded`) with more seeds than runs; empty if there are none."""
    runs = {(e.row.row, e.target.kind, e.target.score): len(e.runs) for e in entries}
    lost = [
        f"row {row} {kind} {score} ({ours.seeds} seeds, {runs.get((row, kind, score), 0)} here)"
        for (row, kind, score), (ours, *_) in table.items()
        if ours.seeds > runs.get((row, kind, score), 0)
    ]
    rest = f" and {len(lost) - 3} more" if len(lost) > 3 else ""
    return ", ".join(lost[:3]) + rest


def pooled(results: Sequence[Mapping[str, Any]], score: str, summary: str = "mean") -> Ours:
    """Mean and standard deviation of a score over seeds, and the standard error of the mean.

    With `summary="median"`, the median and the mean absolute deviation from it instead.

    >>> pooled([{"scores": {"r2": 0.75}}, {"scores": {"r2": 1.0}}], "r2")
    Ours(mean=0.875, std=0.1767..., seeds=2, error=0.12...)
    """
    values = [result["scores"][score] for result in results]
    n = len(values)
    std = float(np.std(values, ddof=1)) if n > 1 else 0.0
    own = [result.get("errors", {}).get(score) for result in results]  # standard errors of the runs
    error = std / math.sqrt(n) if None in own else math.sqrt(sum(e**2 for e in own)) / n
    if summary == "median":
        middle = float(np.median(values))
        return Ours(middle, float(np.abs(np.subtract(values, middle)).mean()), n, error)
    return Ours(float(np.mean(values)), std, n, error)


def records(study: Study[Any], entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """The content of table.json. Figures that are not in [0, 1] have a unit and an error, and those that
    are not means have a "summary"."""
    table = []
    for row, target, ours, seconds, notes, _ in entries:
        known = target.published
        record: dict[str, Any] = {
            "row": row.row,
            "kind": target.kind,
            "score": target.score,
            "published": None if known is None else {"mean": known.mean, "std": known.std},
            "ours": {"mean": ours.mean, "std": ours.std, "seeds": ours.seeds},
            "seconds": round(seconds, 3),
        }
        if study.unit != "%":
            record["ours"]["error"] = ours.error
            record["unit"] = study.unit
        if study.summary != "mean":
            record["summary"] = study.summary
        if notes:
            record["notes"] = notes
        table.append(record)
    return table


def markdown(study: Study[Any], entries: Sequence[Entry]) -> str:
    """The table as Markdown, with a line for each row, as in the paper, or for each row and kind."""
    if not entries:
        return f"# {study.title}\n\nNo run is finished yet.\n"
    lines = _by_kind(study, entries) if study.by_kind else _by_row(study, entries)
    escaped = [[cell.replace("|", r"\|") for cell in line] for line in lines]
    head, *body = (f"| {' | '.join(line)} |" for line in escaped)
    text = "\n".join([head, f"|{' --- |' * len(lines[0])}", *body])
    together = "" if study.by_kind else ", for all models of a row together"
    return f"# {study.title}\n\n{text}\n\n{study.legend} Seconds: per seed{together}.\n"


def html(text: str, failures: Sequence[tuple[str, str]] = ()) -> str:
    """The table of `markdown` as HTML for a notebook, with the failed runs."""
    title, *lines = text.splitlines() or [""]
    cut = [re.split(r"(?<!\\)\|", line)[1:-1] for line in lines if line.startswith("|")]
    cells = [[cell.strip().replace(r"\|", "|") for cell in line] for line in cut]
    notes = [line for line in lines if line and not line.startswith("|")]
    return _html.card(
        title.removeprefix("# "),
        _html.table(cells[0], cells[2:]) if cells else "",
        *(_html.tag("div", line, style="opacity:.75;font-size:.9em") for line in notes),
        _html.items(f"failed: {name}: {why}" for name, why in failures),
        colour=_html.BAD if failures else _html.PLAIN,
    )


def _by_row(study: Study[Any], entries: Sequence[Entry]) -> list[list[str]]:
    """A header and a line for each row, with our figures and the published ones."""
    columns = list(dict.fromkeys(study.label(entry.target) for entry in entries))
    head = ["#", *study.cells(entries[0].row)]
    for column in columns:
        head += [f"{column}, published", "ours"] if study.side_by_side else [column]
    lines = [[*head, "seconds"]]
    for row in {entry.row.row: entry.row for entry in entries}.values():
        by_label = {study.label(e.target): e for e in entries if e.row is row}
        line = [str(row.row), *study.cells(row).values()]
        for column in columns:
            entry = by_label.get(column)
            if study.side_by_side:
                line.append(published(study, entry.target) if entry else "–")
            line.append(ours(study, entry) if entry else "–")
        seconds = {entry.target.kind: entry.seconds for entry in by_label.values()}
        lines.append([*line, f"{sum(seconds.values()):.0f}"])
    return lines


def _by_kind(study: Study[Any], entries: Sequence[Entry]) -> list[list[str]]:
    """A header and a line for each row and kind, with its notes."""
    columns = list(dict.fromkeys(study.label(entry.target) for entry in entries))
    notes = list(dict.fromkeys(name for entry in entries for name in entry.notes))
    lines = [["#", *study.cells(entries[0].row), "model", *columns, *notes, "seconds"]]
    for row in {entry.row.row: entry.row for entry in entries}.values():
        for kind in dict.fromkeys(target.kind for target in study.targets(row)):
            by_label = {
                study.label(e.target): e for e in entries if (e.row, e.target.kind) == (row, kind)
            }
            if not by_label and not study.absent(kind):
                continue
            cells = [ours(study, by_label[name]) if name in by_label else "–" for name in columns]
            remarks = next((entry.notes for entry in by_label.values()), {})
            seconds = next((f"{entry.seconds:.1f}" for entry in by_label.values()), "–")
            model = kind if by_label else f"{kind}: {study.absent(kind)}"
            cells += [remarks.get(name, "–") for name in notes]
            lines.append([str(row.row), *study.cells(row).values(), model, *cells, seconds])
    return lines


def published(study: Study[Any], target: Target) -> str:
    """Format a published figure; a dash if there is none."""
    figure = target.published
    if figure is None:
        return "–"
    mean = study.show(figure.mean, target.score)
    return mean if figure.std is None else _with_spread(mean, study.show(figure.std, target.score))


def ours(study: Study[Any], entry: Entry) -> str:
    """Format our figure with the number of seeds; a single seed has no spread."""
    figure, score = entry.ours, entry.target.score
    shown = study.show(figure.mean, score)
    if figure.seeds > 1:
        shown = _with_spread(shown, study.show(study.spread(figure), score))
    return f"{shown} ({figure.seeds})"


def _with_spread(mean: str, spread: str) -> str:
    """Two formatted figures as one, with their unit once: 4.97 ± 0.45 cm."""
    return f"{mean.partition(' ')[0]} ± {spread}"
