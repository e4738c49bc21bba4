"""Run folders, named by a hash of the configuration, with config.json and result.json.

Finished runs are never repeated, interrupted ones resume, and two processes never work on the same run.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from identica._io import locked, make_folder, read_json, write_json
from identica.errors import DamagedError, InputError

CONFIG, RESULT, METRICS = "config.json", "result.json", "metrics.jsonl"
WEIGHTS = "model.safetensors"
CHECKPOINT, PROGRESS, NOTES, LOCK = "checkpoint.safetensors", "progress.json", "notes.log", ".lock"
PARTS = "parts"  # a folder for each part of a run that is trained in several


def run_name(config: Mapping[str, Any]) -> str:
    """The folder name of a run: its kind and a hash of everything that determines its result.

    >>> run_name({"kind": "supervised", "seed": 0}) == run_name({"seed": 0, "kind": "supervised"})
    True
    >>> run_name({"kind": "supervised", "seed": 1})
    'supervised-54b7ebf5c0f4'
    """
    text = json.dumps(config, sort_keys=True, ensure_ascii=False)
    return f"{config['kind']}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def open_run(folder: Path, config: Mapping[str, Any]) -> Path:
    """Create the folder of a run, or reopen it; raise if it belongs to another run."""
    make_folder("out", folder)
    if not (folder / CONFIG).exists():
        write_json(folder / CONFIG, plain(config))
    refuse_another(folder, config)
    return folder


def refuse_another(
    folder: Path, config: Mapping[str, Any], usual: Mapping[str, Any] | None = None
) -> None:
    """Raise if a folder holds a run with other settings.

    Args:
        usual: defaults of settings that config.json may leave out; if given, only the settings in
            `config` are compared.
    """
    if not os.path.exists(path := folder / CONFIG):
        return
    before, now = read_json(path), plain(config)
    if not isinstance(before, dict):
        raise InputError(f"{path} must hold the settings of a run")
    if usual is not None:
        before = {name: before.get(name, usual.get(name)) for name in now}
    if before != now:
        found = _changes(before, now)
        more = f" and {len(found) - 3} more" if len(found) > 3 else ""
        raise InputError(
            f"out must be a folder of its own: {folder} holds another run, with other settings "
            f"({', '.join(found[:3])}{more}); choose another folder, or delete this one to start over"
        )


def _changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What differs between two configurations, as "lag= 1 → 2"."""
    found = []
    for name in dict.fromkeys([*before, *now]):
        old, new = before.get(name), now.get(name)
        if old == new:
            continue
        if isinstance(old, dict) and isinstance(new, dict):
            same = "sha256" in old  # of a file
            found += [f"other content of {name}"] if same else _changes(old, new)
        else:
            found.append(f"{name}= {_setting(old)} → {_setting(new)}")
    return found


def _setting(value: Any) -> str:
    return "default" if value is None else "…" if isinstance(value, dict) else str(value)


def plain(config: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration as read back from JSON, where tuples become lists."""
    back: dict[str, Any] = json.loads(json.dumps(config))
    return back


def read_result(folder: Path, config: Mapping[str, Any]) -> dict[str, Any] | None:
    """The result of a run, None if there is none yet.

    A result.json that is damaged or cannot come from this configuration raises.
    """
    path = folder / RESULT
    if not path.exists():
        return None
    if read_json(folder / CONFIG) != plain(config):
        raise InputError(f"{folder / CONFIG} belongs to another run")
    result = read_json(path)
    if not _is_result(result, config):
        raise InputError(f"{path} is not the result of this run")
    return dict(result)


def _is_result(data: Any, config: Mapping[str, Any]) -> bool:
    if not isinstance(data, dict) or not isinstance(data.get("scores"), dict):
        return False
    numbers = [*data["scores"].values(), data.get("seconds"), data.get("pairs"), data.get("seed")]
    finite = all(isinstance(n, (int, float)) and abs(n) <= sys.float_info.max for n in numbers)
    return finite and bool(data["scores"]) and data["seed"] == config["seed"]


def execute(
    folder: Path, config: Mapping[str, Any], work: Callable[[Path], Mapping[str, Any]]
) -> dict[str, Any]:
    """Execute a run unless it is finished, and return its result.

    `work(folder)` returns the content of result.json; it may write a checkpoint to the folder and resume from
    it when called again. If the folder is damaged or belongs to another run, its content is renamed, never
    deleted, with a note in notes.log. On a `DamagedError`, the checkpoint is renamed and the work starts
    again. All other errors propagate and leave the checkpoint in place.
    """
    for attempt in attempts(folder, config):
        with attempt as finish:
            finish(work(folder))
    result = read_result(folder, config)
    assert result is not None
    return result


Finish = Callable[[Mapping[str, Any]], None]


def attempts(folder: Path, config: Mapping[str, Any]) -> Iterator[AbstractContextManager[Finish]]:
    """Yield attempts at a run until it is finished: none if it already is, more if a checkpoint was damaged.

    The work is the body of a `with` statement instead of a callback, which keeps the call chain short; see
    `execute`.
    """
    with claim(folder):
        while not _is_done(folder, config):
            yield _attempt(folder, config)
        tidy(folder)


@contextmanager
def _attempt(folder: Path, config: Mapping[str, Any]) -> Iterator[Finish]:
    resumes = begun(folder)
    try:
        yield partial(_finish, folder, config)
    except DamagedError as error:
        if not resumes:
            raise
        _start_over(folder, config, error)


def _is_done(folder: Path, config: Mapping[str, Any]) -> bool:
    """Whether a run is finished; if not, prepare its folder."""
    try:
        done = read_result(folder, config) is not None
        open_run(folder, config)
    except InputError as error:
        done = False
        _start_over(folder, config, error)
    if not done:
        for left in folder.glob(".*.tmp"):  # of a writer that was killed
            left.unlink(missing_ok=True)
    return done


def _finish(folder: Path, config: Mapping[str, Any], result: Mapping[str, Any]) -> None:
    """Write the result of a run; one that could not be read back is an error of the run."""
    if not _is_result(plain(result), config):
        raise ArithmeticError(f"the run has no finite scores, or another seed: {result}")
    write_json(folder / RESULT, result)


def begun(folder: Path) -> bool:
    """Whether a run, or a part of it, has a checkpoint to resume from."""
    return (folder / CHECKPOINT).exists() or any((folder / PARTS).rglob(CHECKPOINT))


def _start_over(folder: Path, config: Mapping[str, Any], error: InputError) -> None:
    """Set aside the file that caused an error: the result or the checkpoint, or all files if the
    configuration differs."""
    names = [RESULT] if (folder / RESULT).exists() else [CHECKPOINT, PARTS, METRICS]
    try:
        same = read_json(folder / CONFIG) == plain(config)
    except InputError:
        same = False
    if not same:
        names = [CONFIG, RESULT, CHECKPOINT, PARTS, METRICS, WEIGHTS]
    moved = [set_aside(folder / name).name for name in names if (folder / name).exists()]
    note(folder, f"{error}; set aside as {', '.join(moved)}, and the run is done again")
    open_run(folder, config)


def set_aside(path: Path) -> Path:
    """Rename a file or folder to an unused name, and return the new path."""
    number = 1
    while (aside := path.with_name(f"{path.name}.aside-{number}")).exists():
        number += 1
    return path.rename(aside)


def note(folder: Path, text: str) -> None:
    """Add a line to the notes of a run."""
    with (folder / NOTES).open("a", encoding="utf-8") as file:
        file.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {text}\n")


def tidy(folder: Path) -> None:
    """Remove files that a finished run no longer needs."""
    for name in (CHECKPOINT, PROGRESS):
        (folder / name).unlink(missing_ok=True)
    shutil.rmtree(folder / PARTS, ignore_errors=True)


def claim(folder: Path) -> AbstractContextManager[None]:
    """Create a folder if needed, wait until no other process works in it, and lock it."""
    return locked(make_folder("out", folder) / LOCK)
