"""A run is a folder named by its configuration: config.json and result.json hold both.

Finished runs are found and never run twice, killed ones resume, and two processes never work on the
same one.
"""

from __future__ import annotations

import hashlib
import json
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
    """The folder of a run: its kind and a hash of everything that decides its result.

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
    path = folder / CONFIG
    if not path.exists():
        write_json(path, plain(config))
    elif read_json(path) != plain(config):
        raise InputError(
            f"out must be a folder of its own: {folder} holds another run (see {path})"
        )
    return folder


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
        raise InputError(f"{folder / CONFIG} is of another run")
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
    """Do a run unless it is done, and return its result.

    `work(folder)` returns the content of result.json; it may leave a checkpoint in the folder and resume
    from it when called again. A folder that is damaged or belongs to another run is cleared: its content
    is set aside, never deleted, with a note in notes.log. A `DamagedError` does the same to the checkpoint
    that the work resumed from, and the work begins again. All other errors are passed on and leave the
    checkpoint where it is.
    """
    for attempt in attempts(folder, config):
        with attempt as finish:
            finish(work(folder))
    result = read_result(folder, config)
    assert result is not None
    return result


Finish = Callable[[Mapping[str, Any]], None]


def attempts(folder: Path, config: Mapping[str, Any]) -> Iterator[AbstractContextManager[Finish]]:
    """Attempts at a run until it is done: none if it is, and further ones where one was damaged.

    The work is the body of a `with`, not a callback, so that few calls lead to it; see `execute`.
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
    """Whether a run has its result; if not, its folder is now ready for it."""
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
    """Set aside what an error refers to: the result or the checkpoint, or everything if the
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
    """Rename a file or folder so that it is out of the way, and return its new path."""
    number = 1
    while (aside := path.with_name(f"{path.name}.aside-{number}")).exists():
        number += 1
    return path.rename(aside)


def note(folder: Path, text: str) -> None:
    """Add a line to the notes of a run."""
    with (folder / NOTES).open("a", encoding="utf-8") as file:
        file.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {text}\n")


def tidy(folder: Path) -> None:
    """Remove what a finished run no longer needs."""
    for name in (CHECKPOINT, PROGRESS):
        (folder / name).unlink(missing_ok=True)
    shutil.rmtree(folder / PARTS, ignore_errors=True)


def claim(folder: Path) -> AbstractContextManager[None]:
    """Create a folder if needed, wait until no other process works in it, and lock it."""
    return locked(make_folder("out", folder) / LOCK)
