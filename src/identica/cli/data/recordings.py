"""identica data recordings check"""

from __future__ import annotations

import argparse


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the commands for recordings."""
    parser.description = "Recordings of neurons in rats on a track and in a mouse, binned."
    commands = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    check = commands.add_parser(
        "check",
        help="see that the files are whole, and what they hold",
        description="Read recordings, and print what they hold in numbers.",
    )
    check.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help="achilles, gatsby or head-direction (default: all)",
    )
    check.set_defaults(run=_check)


def _check(args: argparse.Namespace) -> int:
    from identica.datasets import recordings

    for name in args.names or recordings.SOURCES:
        found = recordings.check(recordings.load(name))
        told = ", ".join(f"{value:g} {what}" for what, value in found.items())
        print(f"{name}: {told}")
    return 0
