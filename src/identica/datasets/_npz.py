"""Reading npz archives that may be cut short, damaged or foreign."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from identica._check import InputError

# What NumPy and zipfile raise on such files.
DAMAGE = (ValueError, KeyError, EOFError, OSError, zipfile.BadZipFile, zlib.error)


def read_npz(path: str | Path, names: Sequence[str]) -> dict[str, NDArray[Any]]:
    """The arrays `names` of an npz archive; nothing is unpickled.

    Raises one `InputError` where the file is absent, damaged, foreign or lacks an array.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            missing = [name for name in names if f"{name}.npy" not in archive.namelist()]
        if not missing:
            with np.load(path, allow_pickle=False) as arrays:
                return {name: arrays[name] for name in names}
    except FileNotFoundError:
        raise InputError(f"{path} does not exist") from None
    except DAMAGE as error:
        raise InputError(f"{path} is damaged or not an npz archive: {error}") from None
    raise InputError(f"{path} must hold the arrays {', '.join(names)}; missing: {missing}")
