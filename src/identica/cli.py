"""The command line: identica demo | …"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from identica import __version__
from identica._check import InputError


class Parser(argparse.ArgumentParser):
    """argparse that says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


def parser() -> Parser:
    """All commands with their options."""
    top = Parser(
        prog="identica",
        description="Recover the hidden factors behind data by contrastive learning.",
    )
    top.add_argument("--version", action="version", version=f"identica {__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")

    demo = commands.add_parser(
        "demo",
        help="invert a hidden mixing of 10 factors in about a minute",
        description="Invert a hidden mixing of 10 factors on the sphere, and write a report.",
    )
    demo.add_argument(
        "--out",
        type=Path,
        default=Path("identica-demo"),
        metavar="DIR",
        help="folder for the run and its report.html (default: %(default)s)",
    )
    demo.add_argument(
        "--seed", type=whole, default=0, metavar="N", help="makes everything random (default: 0)"
    )
    demo.set_defaults(run=_demo)
    return top


def whole(text: str) -> int:
    """A whole number of at least 0, as typed on the command line."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 0, got {text!r}")
    return int(text)


def _demo(args: argparse.Namespace) -> int:
    import torch

    from identica.demo import demo

    # a network this small gains little from a second thread, and loses much where others want the core
    torch.set_num_threads(1)
    demo(args.out, seed=args.seed)
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; its exit code is 0 when done, 2 on bad input, 130 on Ctrl-C."""
    args = parser().parse_args(argv)
    try:
        code: int = args.run(args)
        return code
    except InputError as error:
        print(f"identica: {error}", file=sys.stderr)
        return 2
    except ArithmeticError as error:  # a loss that is not finite
        print(f"identica: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("identica: stopped; the same command goes on from here", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
