"""Progress display of a study: one line with the remaining time, and one for each active run."""

from __future__ import annotations

import shutil
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple, TextIO

from identica._io import is_locked
from identica.runs import Job
from identica.runs import folder as runs
from identica.runs.pool import read_progress

LOOK, SAY = 0.5, 30.0  # seconds between polls of the folders, and between plain lines


class Seen(NamedTuple):
    """Observed progress of a run: times of the first and the last poll, and the fraction done at each."""

    first: float
    last: float
    before: float
    done: float
    shown: str = ""


class Watch:
    """Watches the run folders of a study in a thread, and reports on a stream.

    In a terminal, lines are updated in place; other streams get a plain line at intervals. Notes that runs
    write to their folders are repeated.

    Args:
        title: name of the study.
        jobs: the runs to execute.
        labels: their display names, by name.
        before: number of runs of the study that were already finished.
        folder: parent of the run folders.
        stream: output stream, usually stderr.
    """

    def __init__(
        self,
        title: str,
        jobs: Iterable[Job],
        labels: Mapping[str, str],
        before: int,
        folder: Path,
        stream: TextIO,
    ) -> None:
        self.title, self.labels, self.before = title, labels, before
        self.jobs = {job.name: job for job in jobs}
        self.folder, self.stream = folder, stream
        self.live = stream.isatty()
        self.seen: dict[str, Seen] = {}
        self.notes = dict.fromkeys(self.jobs, 0)
        self._new_notes()  # earlier notes are not repeated
        self.said, self.drawn = time.monotonic(), 0
        self.lock, self.stop = threading.RLock(), threading.Event()
        self.thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Watch:
        self.look(plainly=not self.live)
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop.set()
        self.thread.join()
        self.look(plainly=True)

    def say(self, text: str) -> None:
        """Print a line above the progress."""
        with self.lock:
            self._clear()
            print(f"identica: {text}", file=self.stream, flush=True)

    def _watch(self) -> None:
        while not self.stop.wait(LOOK):
            self.look()

    def look(self, *, plainly: bool = False) -> None:
        """Poll the folders and update the display."""
        for text in self._new_notes():
            self.say(text)
        active = self._active()
        now = time.monotonic()
        if not self.live and not plainly and now - self.said < SAY:
            return
        self.said = now
        done = sum(seen.done == 1 for seen in self.seen.values())
        line = f"{self.title}: {self.before + done} of {self.before + len(self.jobs)} runs done"
        left = self._seconds_left(max(1, len(active)))
        line += f", about {duration(left)} left" if left else ""
        labels = [f"{self.labels[name]} {seen.shown}" for name, seen in active.items()]
        with self.lock:
            self._clear()
            if self.live and not plainly:
                width = shutil.get_terminal_size().columns - 1
                lines = [line, *(f"  {label}" for label in labels)]
                print("\n".join(text[:width] for text in lines), file=self.stream, flush=True)
                self.drawn = len(lines)
            else:
                print("; ".join([line, *labels]), file=self.stream, flush=True)

    def _clear(self) -> None:
        if self.drawn:
            self.stream.write(f"\x1b[{self.drawn}F\x1b[J")
            self.drawn = 0

    def _new_notes(self) -> Iterable[str]:
        notes = []
        for name, start in self.notes.items():
            path = self.folder / name / runs.NOTES
            if path.exists():
                text = path.read_bytes()
                self.notes[name] = len(text)
                lines = text[start:].decode("utf-8", "replace").splitlines()
                notes += [line.split(" ", 2)[-1] for line in lines]  # without the time
        return notes

    def _active(self) -> dict[str, Seen]:
        """The runs under way; finished ones are marked as such."""
        active = {}
        now = time.monotonic()
        for name in self.jobs:
            seen = self.seen.get(name)
            if seen and seen.done == 1:
                continue
            folder = self.folder / name
            progress = read_progress(folder)
            if progress is None and (folder / runs.RESULT).exists():
                self.seen[name] = (seen or Seen(now, now, 1, 1))._replace(last=now, done=1)
            elif progress and is_locked(self.folder / progress["session"]):
                step, steps = progress["step"], progress["steps"]
                done = min(step / steps, 0.999) if steps else 0.0
                at = progress.get("doing") or f"step {step} of {steps}"
                shown = f"{100 * done:.0f} % ({at})" if steps else "starting"
                if seen is None or done <= seen.before:  # the clock starts with the first step
                    seen = Seen(now, now, done, done)
                active[name] = self.seen[name] = seen._replace(last=now, done=done, shown=shown)
        return active

    def _seconds_left(self, width: int) -> float | None:
        """Estimate the remaining time from the remaining pairs of each kind and the pace so far.

        A kind that has not started is assumed to run at the slowest observed pace; None without any.
        """
        todo: defaultdict[str, float] = defaultdict(float)
        seconds: defaultdict[str, float] = defaultdict(float)
        pairs: defaultdict[str, float] = defaultdict(float)
        for name, job in self.jobs.items():
            kind = job.config["kind"]
            seen = self.seen.get(name, Seen(0, 0, 0, 0))
            todo[kind] += job.pairs * (1 - seen.done)
            seconds[kind] += seen.last - seen.first
            pairs[kind] += job.pairs * (seen.done - seen.before)
        paces = {kind: seconds[kind] / done for kind, done in pairs.items() if done > 0}
        if not paces:
            return None
        slowest = max(paces.values())
        return sum(left * paces.get(kind, slowest) for kind, left in todo.items()) / width


def duration(seconds: float) -> str:
    """A duration in words.

    >>> duration(42), duration(600), duration(7300)
    ('42 s', '10 min', '2 h 2 min')
    """
    minutes = round(seconds / 60)
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"
