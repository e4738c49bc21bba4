"""Parsing of arguments: errors in one line, types of numbers, and common options."""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Callable, Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NoReturn

from identica.cli.words import words_of


class Parser(argparse.ArgumentParser):
    """An argparse parser that reports an error in one line, and lists each command in one line."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.formatter_class = _Wide

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Unknown options are an error of the command that they were given to; a near miss is pointed out."""
        found, rest = super().parse_known_args(args, namespace)
        if rest and self._subparsers is None:
            near = get_close_matches(rest[0].partition("=")[0], self._option_string_actions, 1)
            hint = f", did you mean {near[0]}?" if near else ""
            self.error(f"unrecognized arguments: {' '.join(rest)}{hint}")
        return found, rest

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


class _Wide(argparse.HelpFormatter):
    """Help begins in the same column everywhere, with room for a name of 18 letters before it."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog)
        self._action_max_length = self._max_help_position


def whole(text: str) -> int:
    """A whole number of at least 0, as typed on the command line."""
    if not text.isdecimal() or len(text) > 100:
        raise argparse.ArgumentTypeError(
            f"must be a whole number of at least 0, got {text[:100]!r}"
        )
    return int(text)


def add_seed(parser: argparse.ArgumentParser) -> None:
    """Add --seed N."""
    text = "random seed; the same seed gives the same result (default: %(default)s)"
    parser.add_argument("--seed", type=whole, default=0, metavar="N", help=text)


def suggest(action: argparse.Action, words: Sequence[str]) -> None:
    """Let a shell suggest values of an argument; others remain possible."""
    vars(action)["words"] = tuple(words)


def suggested(action: argparse.Action) -> tuple[str, ...]:
    """The values that a shell suggests for an argument."""
    found: tuple[str, ...] = vars(action).get("words", tuple(action.choices or ()))
    return found


def subcommands(
    parser: argparse.ArgumentParser,
) -> Iterator[tuple[str, str, argparse.ArgumentParser]]:
    """Name, summary and parser of each subcommand, if there are any."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            summaries = {choice.dest: choice.help or "" for choice in action._choices_actions}
            for name, made in action.choices.items():
                yield name, summaries[name], made


def add_quiet(parser: argparse.ArgumentParser) -> None:
    """Add --quiet to every command without subcommands, after all its other options."""
    below = [made for _, _, made in subcommands(parser)]
    for made in below:
        add_quiet(made)
    if not below:
        text = "show results and errors only, no progress"
        parser.add_argument("-q", "--quiet", action="store_true", help=text)
        parser.set_defaults(words=words_of(parser))


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
    text = f"{what} (default: the one under IDENTICA_DATA)"
    parser.add_argument("file", type=Path, nargs="?", metavar="FILE", help=text)


def add_picture(parser: argparse.ArgumentParser, default: str | None = None) -> None:
    """Add --out PNG, which is required unless there is a default."""
    if default is None:
        parser.add_argument("--out", type=Path, required=True, metavar="PNG", help="the picture")
    else:
        text = "the picture (default: %(default)s)"
        parser.add_argument("--out", type=Path, default=Path(default), metavar="PNG", help=text)
