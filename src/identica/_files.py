"""Writing files so that a reader never sees half of one."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from identica._check import InputError


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary name beside `path` that takes its place when the block ends well."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text file in one step."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path, data: Any) -> None:
    """Write a JSON file in one step."""
    write_text(path, json.dumps(data, indent=2, ensure_ascii=False) + "\n")


def make_folder(name: str, path: Path) -> Path:
    """Make a folder for output (with its parents) and return it; `name` is the argument's."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise InputError(f"{name} must be a folder, but {path} is or lies below a file") from None
    except OSError as error:
        raise InputError(f"{name}: cannot make the folder {path}: {error.strerror}") from None
    return path
