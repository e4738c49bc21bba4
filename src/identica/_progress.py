"""Progress: widgets in a notebook, a line that is rewritten in a terminal, a plain line now and then in a
file."""

from __future__ import annotations

import sys
import warnings
from typing import Any, TextIO

SAY = 30.0  # seconds between two lines in a file


def progress_bar(*args: Any, **options: Any) -> Any:
    """A bar of `tqdm.auto`, which falls back to text where widgets are missing, without a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from tqdm.auto import tqdm
    if not sys.stderr.isatty() and "ipykernel.zmqshell" not in sys.modules:
        # with a delay, however short, there is no line before the first step
        often = {"mininterval": SAY, "maxinterval": SAY, "delay": 1e-9, "leave": True}
        options |= {**often, "file": Lines(sys.stderr)}
    return tqdm(*args, **options)


class Lines:
    """A stream on which what overwrites a line in a terminal is a line of its own."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> None:
        if shown := text.strip():
            self.stream.write(f"{shown}\n")

    def flush(self) -> None:
        self.stream.flush()
