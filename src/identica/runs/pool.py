"""Execution of all runs of a study on an engine, with results in a folder shared by all workers.

If a worker dies, its run is retried.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from identica._io import is_locked, locked, write_text
from identica.errors import DamagedError, InputError
from identica.runs import Job, Tick
from identica.runs import folder as runs
from identica.runs.engines import Engine, one_line
from identica.runs.memory import keep_freed_memory

DEATHS = 2  # a run that was active at this many worker deaths is retried once more, alone
TICK = 1.0  # seconds between two progress reports


def run_all(
    engine: Engine, jobs: Sequence[Job], folder: Path, say: Callable[[str], None] = print
) -> dict[str, str]:
    """Execute all jobs, each in its own subfolder of `folder`; return error messages of failed jobs by name.

    A run that raises has failed. When a worker dies, all active runs are retried; those that were active at
    two deaths are retried one at a time, so that a run that kills its worker fails alone.
    """
    from joblib import delayed

    # longest first, which shortens the total time
    todo = {job.name: job for job in sorted(jobs, key=lambda job: -job.pairs)}
    failures: dict[str, str] = {}
    deaths: Counter[str] = Counter()
    vain = 0
    while todo:
        crowd = [job for job in todo.values() if deaths[job.name] < DEATHS]
        batch = crowd or list(todo.values())[:1]
        width = min(engine.width(), len(batch)) if crowd else 1
        with _session(folder) as session:
            tasks = [delayed(do)(job, folder / job.name, session, engine.threads) for job in batch]
            try:
                with engine.places(width) as parallel:
                    outcome = dict(parallel(tasks))
            except Exception as error:  # depends on the back end
                outcome = {job.name: None for job in batch if _is_done(folder / job.name, job)}
                lost = [
                    job.name
                    for job in batch
                    if job.name not in outcome and _under_way(folder / job.name, session)
                ]
                deaths.update(lost)
                vain = 0 if lost or outcome else vain + 1
                if not crowd or vain > DEATHS:
                    why = f"its worker died: {one_line(error)}"
                    outcome = {job.name: outcome.get(job.name, why) for job in batch}
                else:
                    say(f"a worker died; runs under way are tried again: {len(lost)}")
        failures |= {name: why for name, why in outcome.items() if why is not None}
        todo = {name: job for name, job in todo.items() if name not in outcome}
    return failures


@contextmanager
def _session(folder: Path) -> Iterator[Path]:
    """A file that exists, and is locked, for as long as the study runs."""
    session = folder / f".session-{socket.gethostname()}-{os.getpid()}-{time.time_ns()}"
    with ExitStack() as stack:
        with runs.claim(folder):
            for old in folder.glob(".session-*"):
                if not is_locked(old):  # of a study that was killed
                    old.unlink(missing_ok=True)
            stack.callback(session.unlink, missing_ok=True)
            stack.enter_context(locked(session))
        yield session


def _is_done(folder: Path, job: Job) -> bool:
    with suppress(InputError):
        return runs.read_result(folder, job.config) is not None
    return False


def _under_way(folder: Path, session: Path) -> bool:
    return (read_progress(folder) or {}).get("session") == session.name


def read_progress(folder: Path) -> dict[str, Any] | None:
    """Progress of a run: {"session": …, "step": …, "steps": …, "doing": …}; None if unknown."""
    with suppress(OSError, ValueError):
        progress: dict[str, Any] = json.loads((folder / runs.PROGRESS).read_text(encoding="utf-8"))
        return progress
    return None


# --- in the worker ----------------------------------------------------------------------------------


class StoppedError(Exception):
    """The study of this run has ended."""


def do(job: Job, folder: Path, session: Path, threads: int) -> tuple[str, str | None]:
    """Execute one job in a worker unless it is finished; return its name and, if it failed, the reason."""
    if not session.exists():
        return job.name, f"{folder.parent} is not shared with {socket.gethostname()}"
    if torch := sys.modules.get("torch"):  # it is there if the job needs it
        torch.set_num_threads(threads)
    keep_freed_memory()
    tick = _reporter(folder, session)
    try:
        for attempt in runs.attempts(folder, job.config):
            with attempt as finish:
                tick(0, 0)
                finish(job.run(folder, tick))
    except Exception as error:
        (folder / runs.PROGRESS).unlink(missing_ok=True)
        return job.name, f"{type(error).__name__}: {one_line(error)}"
    return job.name, None


def _reporter(folder: Path, session: Path) -> Tick:
    """A progress callback that writes progress.json at intervals, and stops the run if its study ended."""
    said = -TICK

    def tick(step: int, steps: int, doing: str = "", /) -> None:
        nonlocal said
        now = time.monotonic()
        if now - said < TICK:
            return
        said = now
        if not session.exists():
            raise StoppedError
        progress = {"session": session.name, "step": step, "steps": steps, "doing": doing}
        write_text(folder / runs.PROGRESS, json.dumps(progress))

    return tick


# --- in a group of processes ------------------------------------------------------------------------


def lead(jobs: Sequence[Job], folder: Path) -> None:
    """Execute jobs in order as the first process of a group, while the others `follow`.

    If a run raises, all processes end, as none knows the state of the others.
    """
    keep_freed_memory()
    with _session(folder) as session:
        for job in jobs:
            own = folder / job.name
            for attempt in runs.attempts(own, job.config):
                with attempt as finish:
                    _begins(True)
                    finish(job.run(own, _reporter(own, session)))
            _begins(False)


def follow(jobs: Sequence[Job], folder: Path) -> None:
    """Take part in the jobs of the first process of a group, whenever it starts one."""
    keep_freed_memory()
    for job in jobs:
        while _begins():
            with suppress(DamagedError):  # the first process sets it aside
                job.run(folder / job.name, lambda *_: None)


def _begins(yes: bool = False) -> bool:
    """Whether the first process starts or restarts a run, as it announces to the group."""
    from identica.distributed import from_first

    return from_first(lambda: yes)
