"""All the runs of a study on an engine, with results in a folder that is shared by all workers.

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

DEATHS = 2  # runs that were under way this often when a worker died are retried once more, alone
TICK = 1.0  # seconds between two progress reports


def run_all(
    engine: Engine, jobs: Sequence[Job], folder: Path, say: Callable[[str], None] = print
) -> dict[str, str]:
    """Do all jobs, each in its own folder below `folder`; return why jobs failed, by name.

    A run that raises has failed. When a worker dies, the runs under way are retried; those that were
    under way twice are retried one by one, so that a run that kills its worker fails alone.
    """
    from joblib import delayed

    # the longest first, so that none of them is left for the end
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
            except Exception as error:  # whatever the back end raises when a worker dies
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
    """How far a run is: {"session": …, "step": …, "steps": …, "doing": …}, None if unknown."""
    with suppress(OSError, ValueError):
        found: dict[str, Any] = json.loads((folder / runs.PROGRESS).read_text(encoding="utf-8"))
        return found
    return None


# --- in the worker ----------------------------------------------------------------------------------


class StoppedError(Exception):
    """The study of this run has ended."""


def do(job: Job, folder: Path, session: Path, threads: int) -> tuple[str, str | None]:
    """Do one job in a worker, unless it is done; return its name, and why it failed if it did."""
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
    """A callback that writes progress.json at intervals, and stops the run once its study has ended."""
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
    """Do jobs in turn as the first process of a group, while the others `follow`.

    If a run raises, all processes end, since none can know how far the others have come.
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
    """Take part in the jobs that the first process of a group does, as often as it begins them."""
    keep_freed_memory()
    for job in jobs:
        while _begins():
            with suppress(DamagedError):  # the first process sets it aside
                job.run(folder / job.name, lambda *_: None)


def _begins(yes: bool = False) -> bool:
    """Whether the first process starts or restarts a run, as it announces to the group."""
    from identica.distributed import from_first

    return from_first(lambda: yes)
