"""The table of a study, made from its run folders: table.json and table.md."""

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
    """Note in study.json which run belongs to each (row, kind, seed); later ones replace earlier."""
    _known(folder, study)  # it may raise: nothing is left behind
    make_folder("out", folder / RUNS)
    with claim(folder):
        entries = [
            {"row": row, "kind": kind, "seed": seed, "run": name}
            for (row, kind, seed), name in sorted((_known(folder, study) | dict(runs)).items())
        ]
        write_json(folder / MANIFEST, {"study": study.name, "runs": entries})


def _known(folder: Path, study: Study[Any]) -> dict[tuple[int, str, int], str]:
    """The runs of a study that a folder lists already; one that holds another study is refused."""
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
        found = [_fields(entry, **kinds) for entry in entries]
    except TypeError:
        raise InputError(f"{path} is not the list of a study's runs") from None
    return name, {(row, kind, seed): run for row, kind, seed, run in found}


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
    """The named values of a JSON object; a `TypeError` unless they are there and of these kinds."""
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
    found = {}
    try:
        for record in _fields({"table": read_json(path)}, table=list)[0]:
            row, kind, score = _fields(record, row=int, kind=str, score=str)
            ours = record.get("ours")
            mean, std, seeds = _fields(ours, mean=float, std=float, seeds=int)
            (error,) = _fields({"error": std / math.sqrt(max(seeds, 1))} | ours, error=float)
            (seconds,) = _fields(record, seconds=float)
            notes = record.get("notes", {})
            _fields(notes, **dict.fromkeys(notes, str))
            found[row, kind, score] = Ours(mean, std, seeds, error), seconds, notes
    except TypeError:
        raise InputError(f"{path} is not the table of a study") from None
    if foreign := sorted(found.keys() - known):
        row, kind, score = foreign[0]
        raise InputError(f"{path} has a score that {study.name} has not: row {row} {kind} {score}")
    return found


def collect(folder: Path, study: Study[Any], keep: Known = NONE) -> list[Entry]:
    """Every score that has at least one finished run, in the order of the table.

    Those of `keep` (see `recorded`) stay as they are where there are runs of fewer seeds.
    """
    _, runs = registered(folder)
    entries = []
    for row in study.rows:
        by_kind: dict[str, list[Finished]] = {}
        for (number, kind, seed), name in runs.items():
            if number == row.row and (run := finished(folder, name, seed)):
                by_kind.setdefault(kind, []).append(run)
        for target in study.targets(row):
            found = [r for r in by_kind.get(target.kind, []) if target.score in r.result["scores"]]
            known = keep.get((row.row, target.kind, target.score))
            if known and known[0].seeds > len(found):
                entries.append(Entry(row, target, *known, found))
            elif found:
                results = [run.result for run in found]
                seconds = float(np.mean([result["seconds"] for result in results]))
                ours = pooled(results, target.score, study.summary)
                entries.append(Entry(row, target, ours, seconds, study.notes(found), found))
    return entries


def more(table: Known, entries: Sequence[Entry]) -> str:
    """In words, the scores of a table (see `recorded`) with more seeds than there are runs; empty if none."""
    runs = {(e.row.row, e.target.kind, e.target.score): len(e.runs) for e in entries}
    found = [
        f"row {row} {kind} {score} ({ours.seeds} seeds, {runs.get((row, kind, score), 0)} here)"
        for (row, kind, score), (ours, *_) in table.items()
        if ours.seeds > runs.get((row, kind, score), 0)
    ]
    rest = f" and {len(found) - 3} more" if len(found) > 3 else ""
    return ", ".join(found[:3]) + rest


def pooled(results: Sequence[Mapping[str, Any]], score: str, summary: str = "mean") -> Ours:
    """Mean and standard deviation of a score over seeds, and the standard error of the mean.

    With `summary="median"`, the median and the mean absolute deviation from it instead.

    >>> pooled([{"scores": {"r2": 0.75}}, {"scores": {"r2": 1.0}}], "r2")
    Ours(mean=0.875, std=0.1767..., seeds=2, error=0.12...)
    """
    values = [result["scores"][score] for result in results]
    n = len(values)
    std = float(np.std(values, ddof=1)) if n > 1 else 0.0
    own = [result.get("errors", {}).get(score) for result in results]  # if runs know theirs
    error = std / math.sqrt(n) if None in own else math.sqrt(sum(e**2 for e in own)) / n
    if summary == "median":
        middle = float(np.median(values))
        return Ours(middle, float(np.abs(np.subtract(values, middle)).mean()), n, error)
    return Ours(float(np.mean(values)), std, n, error)


def records(study: Study[Any], entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """The content of table.json; figures that are not in [0, 1] come with their unit and error,
    and those that are not means with the word for what they are."""
    found = []
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
        found.append(record)
    return found


def markdown(study: Study[Any], entries: Sequence[Entry]) -> str:
    """The table in words: a line for each row, as the paper prints it, or for each kind of a row."""
    if not entries:
        return f"# {study.title}\n\nNo run is finished yet.\n"
    lines = _by_kind(study, entries) if study.by_kind else _by_row(study, entries)
    escaped = [[cell.replace("|", r"\|") for cell in line] for line in lines]
    head, *body = (f"| {' | '.join(line)} |" for line in escaped)
    text = "\n".join([head, f"|{' --- |' * len(lines[0])}", *body])
    seconds = "Seconds: one seed." if study.by_kind else "Seconds: one seed of all kinds."
    return f"# {study.title}\n\n{text}\n\n{study.legend} {seconds}\n"


def html(text: str, failures: Sequence[tuple[str, str]] = ()) -> str:
    """The table of `markdown` for a notebook, and which runs failed."""
    title, *lines = text.splitlines() or [""]
    cut = [re.split(r"(?<!\\)\|", line)[1:-1] for line in lines if line.startswith("|")]
    cells = [[cell.strip().replace(r"\|", "|") for cell in line] for line in cut]
    said = [line for line in lines if line and not line.startswith("|")]
    return _html.card(
        title.removeprefix("# "),
        _html.table(cells[0], cells[2:]) if cells else "",
        *(_html.tag("div", line, style="opacity:.75;font-size:.9em") for line in said),
        _html.items(f"failed: {name}: {why}" for name, why in failures),
        colour=_html.BAD if failures else _html.PLAIN,
    )


def _by_row(study: Study[Any], entries: Sequence[Entry]) -> list[list[str]]:
    """A line for each row, our figures beside the published; the first names the columns."""
    columns = list(dict.fromkeys(study.label(entry.target) for entry in entries))
    head = ["#", *study.cells(entries[0].row)]
    for column in columns:
        head += [f"{column}, published", "ours"] if study.side_by_side else [column]
    lines = [[*head, "seconds"]]
    for row in {entry.row.row: entry.row for entry in entries}.values():
        found = {study.label(e.target): e for e in entries if e.row is row}
        line = [str(row.row), *study.cells(row).values()]
        for column in columns:
            entry = found.get(column)
            if study.side_by_side:
                line.append(published(study, entry.target) if entry else "–")
            line.append(ours(study, entry) if entry else "–")
        seconds = {entry.target.kind: entry.seconds for entry in found.values()}
        lines.append([*line, f"{sum(seconds.values()):.0f}"])
    return lines


def _by_kind(study: Study[Any], entries: Sequence[Entry]) -> list[list[str]]:
    """A line for each kind of each row, with its notes; the first names the columns."""
    columns = list(dict.fromkeys(study.label(entry.target) for entry in entries))
    notes = list(dict.fromkeys(name for entry in entries for name in entry.notes))
    lines = [["#", *study.cells(entries[0].row), "model", *columns, *notes, "seconds"]]
    for row in {entry.row.row: entry.row for entry in entries}.values():
        for kind in dict.fromkeys(target.kind for target in study.targets(row)):
            found = {
                study.label(e.target): e for e in entries if (e.row, e.target.kind) == (row, kind)
            }
            if not found and not study.absent(kind):
                continue
            cells = [ours(study, found[name]) if name in found else "–" for name in columns]
            said = next((entry.notes for entry in found.values()), {})
            seconds = next((f"{entry.seconds:.1f}" for entry in found.values()), "–")
            model = kind if found else f"{kind}: {study.absent(kind)}"
            cells += [said.get(name, "–") for name in notes]
            lines.append([str(row.row), *study.cells(row).values(), model, *cells, seconds])
    return lines


def published(study: Study[Any], target: Target) -> str:
    """A published figure in words, a dash if there is none."""
    figure = target.published
    if figure is None or figure.std is None:
        return "–" if figure is None else study.show(figure.mean, target.score)
    return f"{study.show(figure.mean, target.score)} ± {study.show(figure.std, target.score)}"


def ours(study: Study[Any], entry: Entry) -> str:
    """Our figure in words, with the number of seeds; one seed has no spread."""
    figure, score = entry.ours, entry.target.score
    spread = f" ± {study.show(study.spread(figure), score)}" if figure.seeds > 1 else ""
    return f"{study.show(figure.mean, score)}{spread} ({figure.seeds})"
