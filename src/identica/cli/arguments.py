"""How arguments are parsed: one line for what is wrong, the types of numbers, and common options."""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Callable
from pathlib import Path
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


def add_actions(
    parser: argparse.ArgumentParser, *functions: Callable[[argparse.Namespace], int]
) -> list[argparse.ArgumentParser]:
    """Add the actions of a data set, named and described by functions and their docstrings."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    parsers = []
    for function in functions:
        summary, _, more = (inspect.getdoc(function) or "").partition("\n\n")
        made = actions.add_parser(function.__name__, help=summary, description=more or summary)
        made.set_defaults(run=function)
        parsers.append(made)
    return parsers


def add_file(parser: argparse.ArgumentParser, what: str) -> None:
    """Add FILE, by default the one under IDENTICA_DATA."""
    told = f"{what} (default: the one under IDENTICA_DATA)"
    parser.add_argument("file", type=Path, nargs="?", metavar="FILE", help=told)


def add_picture(parser: argparse.ArgumentParser, default: str | None = None) -> None:
    """Add --out PNG, which is required unless there is a default."""
    if default is None:
        parser.add_argument("--out", type=Path, required=True, metavar="PNG", help="the picture")
    else:
        told = "the picture (default: %(default)s)"
        parser.add_argument("--out", type=Path, default=Path(default), metavar="PNG", help=told)
