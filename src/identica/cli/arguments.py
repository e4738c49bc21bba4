"""How arguments are parsed: one line for what is wrong, and the types of numbers."""

from __future__ import annotations

import argparse
from typing import NoReturn


class Parser(argparse.ArgumentParser):
    """argparse that says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


def whole(text: str) -> int:
    """A whole number of at least 0, as typed on the command line."""
    if not text.isdecimal() or len(text) > 100:
        raise argparse.ArgumentTypeError(
            f"must be a whole number of at least 0, got {text[:100]!r}"
        )
    return int(text)
