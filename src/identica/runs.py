"""A run is a folder: config.json says what it is, result.json what came of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from identica._check import InputError
from identica._files import make_folder, write_json

CONFIG, RESULT = "config.json", "result.json"


def open_run(folder: Path, config: dict[str, Any]) -> Path:
    """Make the folder of a run, or find it again; one that belongs to another run is refused."""
    make_folder("out", folder)
    path = folder / CONFIG
    wanted = json.loads(json.dumps(config))
    if not path.exists():
        write_json(path, wanted)
    elif read_json(path) != wanted:
        raise InputError(
            f"out must be a folder of its own: {folder} holds another run (see {path})"
        )
    return folder


def read_json(path: Path) -> Any:
    """What a JSON file holds; a damaged one gives one clear error."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read: {error}") from None
