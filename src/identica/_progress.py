"""Progress bars: widgets in a notebook, one updated line in a terminal, occasional lines in a file."""

from __future__ import annotations

import sys
import warnings
from typing import Any, TextIO

SAY = 30.0  # seconds between two lines in a file


def progress_bar(*args: Any, **options: Any) -> Any:
    """A bar of `tqdm.auto`, without its warning if widgets are missing and it falls back to text."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from tqdm.auto import tqdm
    if not sys.stderr.isatty() and "ipykernel.zmqshell" not in sys.modules:
        # any delay suppresses the line before the first step
        often = {"mininterval": SAY, "maxinterval": SAY, "delay": 1e-9, "leave": True}
        options |= {**often, "file": Lines(sys.stderr)}
    return tqdm(*args, **options)


class Lines:
    """A stream that writes each update of a progress bar as a separate line."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> None:
        if shown := text.strip():
            self.stream.write(f"{shown}\n")

    def flush(self) -> None:
        self.stream.flush()
