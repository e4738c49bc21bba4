"""Recordings of neurons in rats on a track and in a mouse, binned."""

from __future__ import annotations

import argparse

from identica.cli.arguments import add_actions


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the action and its argument."""
    (action,) = add_actions(parser, check)
    known = "achilles, gatsby or head-direction (default: all)"
    action.add_argument("names", nargs="*", metavar="NAME", help=known)


def check(args: argparse.Namespace) -> int:
    """see that the files are whole, and what they hold

    Read recordings, and print what they hold in numbers.
    """
    from identica.datasets import recordings

    for name in args.names or recordings.SOURCES:
        found = recordings.check(recordings.load(name))
        told = ", ".join(f"{value:g} {what}" for what, value in found.items())
        print(f"{name}: {told}")
    return 0
