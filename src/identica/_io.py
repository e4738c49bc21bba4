"""Atomic writing of files, and file locks."""

from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from identica.errors import InputError


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path next to `path`, which replaces it if the block succeeds.

    A symbolic link is kept and its target is replaced. A device or pipe is refused. Errors name `path`, and
    the temporary file is always removed.
    """
    target = Path(os.path.realpath(_checked("path", path)))
    if target.exists() and not target.is_file() and not target.is_dir():
        raise InputError(f"{path} cannot be replaced: it is not a regular file")
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        os.replace(temporary, target)
    except OSError as error:
        if error.filename is not None and Path(error.filename) != temporary:
            raise
        # a full disk names no file, and some libraries give no number either
        number, words = error.errno or errno.EIO, error.strerror or str(error)
        raise OSError(number, words, str(path)) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


@contextmanager
def writing(name: str, path: Path) -> Iterator[Path]:
    """`replacing`, with the folder made first and one `InputError` that names the argument `name`."""
    make_folder(name, path.parent)
    try:
        with replacing(path) as temporary:
            yield temporary
    except OSError as error:
        raise InputError(f"{name}: cannot write {path}: {error.strerror or error}") from None


def write_text(path: Path, text: str) -> None:
    """Write a text file in one step.

    The bytes of a file name that is not UTF-8 are escaped as in JSON, which reads them back.
    """
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", errors="backslashreplace")


def write_json(path: Path, data: Any) -> None:
    """Write a JSON file in one step."""
    write_text(path, json.dumps(data, indent=2, ensure_ascii=False) + "\n")


def make_folder(name: str, path: Path) -> Path:
    """Make a folder for output (with its parents) and return it; `name` is the argument's."""
    try:
        _checked(name, path).mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise InputError(f"{name} must be a folder, but {path} is or lies below a file") from None
    except OSError as error:
        raise InputError(f"{name}: cannot make the folder {path}: {error.strerror}") from None
    return path


def _checked(name: str, path: Path) -> Path:
    if "\0" in str(path):
        raise InputError(f"{name} must not contain a null character, got {str(path)!r}")
    return path


def read_json(path: Path) -> Any:
    """Read a JSON file; raise a clear error if it is damaged."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path} cannot be read: {error}") from None


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Wait for the lock of a file, and hold it.

    The lock is released when its process ends, even if it is killed, so no stale lock remains.
    """
    import fcntl

    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def first_free(paths: Sequence[Path]) -> Iterator[int]:
    """Hold the lock of one of several files and yield its index; wait while all are locked."""
    import fcntl

    while True:
        for number, path in enumerate(paths):
            with path.open("a") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    continue
                yield number
                return
        time.sleep(0.5)


def is_locked(path: Path) -> bool:
    """Whether some process holds the lock of a file."""
    import fcntl

    try:
        with path.open("r+") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return False
    except (FileNotFoundError, NotADirectoryError):
        return False
    except BlockingIOError:
        return True
