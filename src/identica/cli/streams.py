"""Standard output and standard error of the commands."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO


@contextmanager
def flushed(stream: TextIO) -> Iterator[None]:
    """Flush a stream at the end of the block; raise if that fails."""
    try:
        yield
    finally:
        try:
            stream.flush()
        except OSError as error:
            with suppress(OSError):  # otherwise Python tries again at exit, and prints an error
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
            raise OSError(error.errno, error.strerror, stream.name.strip("<>")) from error


def say(message: object) -> None:
    """A line on stderr."""
    with suppress(OSError), flushed(sys.stderr):  # there is nowhere else to report a failure
        print("identica:", " ".join(str(message).splitlines()), file=sys.stderr)
