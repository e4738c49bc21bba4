"""Modules of this folder that tests start as programs of their own."""

import os
import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]


def command(module, *arguments):
    return [sys.executable, "-m", f"helpers.{module}", *map(str, arguments)]


def environment(**more):
    """The environment of a program that imports `helpers`, with one thread."""
    path = [str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path), "OMP_NUM_THREADS": "1", **more}
