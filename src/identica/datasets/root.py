"""The folder of the data sets: `$IDENTICA_DATA`, or the user's cache folder."""

from __future__ import annotations

import os
from pathlib import Path

from identica.errors import InputError


def data_root() -> Path:
    """The folder that holds the data sets.

    `$IDENTICA_DATA` if set, else `$XDG_CACHE_HOME/identica`, else `~/.cache/identica`.
    """
    chosen = os.environ.get("IDENTICA_DATA")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or "")
    try:
        if chosen:
            return Path(chosen).expanduser()
        # According to the XDG specification, relative paths are ignored.
        return (cache if cache.is_absolute() else Path.home() / ".cache") / "identica"
    except RuntimeError as error:
        raise InputError(f"IDENTICA_DATA must be a folder, as there is no home: {error}") from None


def find(*parts: str, get: str) -> Path:
    """The file `parts` under the data root.

    Args:
        parts: Folder and file names below `data_root()`.
        get: A clause saying how to get the file, for the error where it is absent.
    """
    path = data_root().joinpath(*parts)
    if not os.path.exists(path):  # unlike Path.exists, never raises
        raise InputError(f"{path} does not exist: {get}, or point IDENTICA_DATA to your data")
    return path
