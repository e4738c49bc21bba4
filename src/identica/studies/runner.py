"""Reproduction of a study: execute its unfinished runs, and write the table and the page."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

from identica import distributed
from identica._io import is_locked, write_json, write_text
from identica._validate import as_path, flag, instance
from identica.errors import InputError
from identica.runs import Job, engines, pool
from identica.runs import folder as runs
from identica.runs.monitor import Watch
from identica.studies import table
from identica.studies.catalogue import find
from identica.studies.study import Study, check_seeds

if TYPE_CHECKING:
    from identica.recipes import Preset

SEEDS = range(5)


@dataclass(frozen=True)
class Outcome:
    """The outcome of a study: its folder, the table as text, and error messages of failed runs by label.

    `kept` names the figures taken from an earlier table because some of their runs are missing.
    """

    folder: Path
    table: str
    failures: dict[str, str] = field(default_factory=dict)
    kept: str = ""

    def _repr_html_(self) -> str:
        return table.html(self.table, list(self.failures.items()))


class Planned(NamedTuple):
    """A planned run, the (row, kind, seed) triples that use it, and its state."""

    job: Job
    uses: list[tuple[int, str, int]]
    state: str

    @property
    def label(self) -> str:
        """Rows, kind and seed in words."""
        rows = ", ".join(str(row) for row, _, _ in self.uses)
        _, kind, seed = self.uses[0]
        return f"row{'s' if len(self.uses) > 1 else ''} {rows} {kind} seed {seed}"


def reproduce(
    study: str | Study[Any],
    *,
    rows: Iterable[int] | None = None,
    seeds: Iterable[int] | None = None,
    preset: Preset = "fast",
    workers: int | None = None,
    engine: str = "local",
    address: str | None = None,
    out: Path | None = None,
    stream: TextIO | None = None,
) -> Outcome:
    """Execute the unfinished runs of a study, and write table.json, table.md and report.html.

    An existing table is never replaced by less: a score with more seeds than there are runs, as in a clone
    of a repository without run folders, is kept.

    In a group of processes (see `identica.distributed`), all processes work on the same run, and a failed run
    ends the study. Only the first process writes; the outcome of the others has no table.

    Args:
        study: a name (see `STUDIES`) or a `Study`.
        rows: numbers of the rows, all by default.
        seeds: 0 to 4 by default.
        preset: "fast" or "paper", or a `Recipe`.
        workers: number of parallel runs; by default one per core.
        engine: "local", "ray" or "dask".
        address: of a Ray or Dask cluster.
        out: folder of the study, identica-STUDY by default.
        stream: stream for progress, stderr by default.
    """
    study = study if isinstance(study, Study) else find(study)
    folder = default_folder(study) if out is None else as_path("out", out)
    rank, size = distributed.group()
    if size > 1 and (workers is not None or engine != "local"):
        raise InputError(
            "workers and engine must be left out in a group: it does one run at a time"
        )
    planned = plan(study, folder, rows=rows, seeds=seeds, preset=preset)

    def unfinished() -> list[str]:
        table.recorded(folder, study)  # it may raise: better now than after hours of work
        return [item.job.name for item in planned if item.state != "done"]

    left = distributed.from_first(unfinished)  # other processes may see an outdated folder
    todo = [item.job for item in planned if item.job.name in left]
    labels = {item.job.name: item.label for item in planned}
    names = {use: item.job.name for item in planned for use in item.uses}
    store, before = (folder / table.RUNS).resolve(), len(planned) - len(todo)
    failed: dict[str, str] = {}
    if todo:
        study.ready(study.select(rows))
    if rank > 0:
        pool.follow(todo, store)
        return Outcome(folder, "")
    if todo:
        start = nullcontext() if size > 1 else engines.start(engine, workers, address)
        with start as started:  # it may fail: nothing is written
            table.register(folder, study, names)
            with Watch(study.name, todo, labels, before, store, stream or sys.stderr) as watch:
                if started is None:
                    pool.lead(todo, store)
                else:
                    failed = pool.run_all(started, todo, store, watch.say)
    else:
        table.register(folder, study, names)
    failures = {labels[name]: why for name, why in failed.items()}
    with runs.claim(folder):  # the last to finish writes what all have done
        known = table.recorded(folder, study)
        entries = table.collect(folder, study, keep=known)
        return Outcome(folder, _write(folder, study, entries), failures, table.more(known, entries))


def default_folder(study: Study[Any]) -> Path:
    """The default folder of a study."""
    return Path(f"identica-{study.name}")


def plan(
    study: Study[Any],
    folder: Path,
    *,
    rows: Iterable[int] | None = None,
    seeds: Iterable[int] | None = None,
    preset: Preset = "fast",
) -> list[Planned]:
    """The runs of a study and their states; a run that several rows share is listed once."""
    planned: dict[str, Planned] = {}
    wanted = check_seeds(SEEDS if seeds is None else seeds)
    for row in study.select(rows):
        for kind in dict.fromkeys(target.kind for target in study.targets(row)):
            for seed in [] if study.absent(kind) else wanted:
                job = study.experiment(row, kind, seed, preset)
                if job.name not in planned:
                    state = _state(folder / table.RUNS / job.name, job)
                    planned[job.name] = Planned(job, [], state)
                planned[job.name].uses.append((row.row, kind, seed))
    return list(planned.values())


def _state(folder: Path, job: Job) -> str:
    try:
        if runs.read_result(folder, job.config) is not None:
            runs.tidy(folder)
            return "done"
    except InputError as error:
        return f"to do again: {error}"
    if is_locked(folder / runs.LOCK):
        return "running"
    return "begun" if runs.begun(folder) else "to do"


def listing(planned: list[Planned]) -> str:
    """The runs and their states, one per line."""
    width = max(len(item.label) for item in planned)
    lines = [f"{item.label:{width}}  {item.job.name}  {item.state}" for item in planned]
    done = sum(item.state == "done" for item in planned)
    return "\n".join([*lines, f"{done} of {len(planned)} runs done"])


def report(folder: Path, study: Study[Any] | None = None, *, force: bool = False) -> str:
    """Rebuild table.json, table.md and report.html from the run folders, and return the table as text.

    A table with more rows, scores or seeds than there are runs is replaced only with `force`.
    """
    folder = as_path("folder", folder)
    instance("study", study, (Study, NoneType), "a Study")
    name, _ = table.registered(folder)
    study = find(name) if study is None else study
    with runs.claim(folder):
        entries = table.collect(folder, study)
        lost = "" if flag("force", force) else table.more(table.recorded(folder, study), entries)
        if lost:
            raise InputError(
                f"{folder / table.TABLE} has more than the runs in {folder / table.RUNS}, so it is "
                f"kept; force=True replaces it: {lost}"
            )
        return _write(folder, study, entries)


def _write(folder: Path, study: Study[Any], entries: list[table.Entry]) -> str:
    from identica.studies.page import write_study_page

    for left in folder.glob(".*.tmp"):  # of a writer that was killed
        left.unlink(missing_ok=True)
    text = table.markdown(study, entries)
    write_json(folder / table.TABLE, table.records(study, entries))
    write_text(folder / "table.md", text)
    write_study_page(folder / "report.html", study, entries)
    return text
