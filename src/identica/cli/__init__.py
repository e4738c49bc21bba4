"""The command line: identica demo | fit | reproduce | report | data | completion"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module

from identica import __version__
from identica.cli.arguments import Parser, add_quiet
from identica.cli.signals import Terminated, stoppable
from identica.cli.streams import flushed, say
from identica.cli.words import in_shell
from identica.errors import InputError

# each command is a module of this package
COMMANDS = {
    "demo": "invert a hidden mixing of 10 factors in about a minute",
    "fit": "find codes for your own data, and check how far to trust them",
    "reproduce": "run a study of the paper, and compare with the published figures",
    "report": "rebuild the table and report of a study from its runs",
    "data": "build, check or show a data set",
    "completion": "print a script that completes commands in a shell",
}


def parser() -> Parser:
    """All commands with their options."""
    top = Parser(
        prog="identica",
        description="Recover the hidden factors behind data by contrastive learning.",
    )
    top.add_argument("--version", action="version", version=f"identica {__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, summary in COMMANDS.items():
        import_module(f"identica.cli.{name}").configure(commands.add_parser(name, help=summary))
    add_quiet(top)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command.

    Its exit code is 0 when done, 1 if something failed, 2 on bad input or files that cannot be
    read or written, 130 on Ctrl-C, 143 on SIGTERM and 141 on a broken pipe.
    """
    if sys.stderr is None:  # closed by the caller
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    if sys.stdout is None:
        say("standard output is closed: redirect it to /dev/null if it is not wanted")
        return 2
    words: dict[str, str] = {}
    try:
        if isinstance(sys.stdout, io.TextIOWrapper):  # a file name may not be in its encoding
            sys.stdout.reconfigure(errors="backslashreplace")
        with stoppable(), flushed(sys.stdout):
            args = parser().parse_args(argv)
            words = args.words
            code: int = args.run(args)
            return code
    except InputError as error:
        say(in_shell(error, words))
        return 2
    except ArithmeticError as error:  # a loss that is not finite
        say(in_shell(error, words))
        return 1
    except BrokenPipeError:
        with suppress(OSError), flushed(sys.stderr):  # it may be the same pipe
            pass
        return 141
    except OSError as error:
        where = "" if error.filename is None else f"{os.fsdecode(error.filename)}: "
        say(f"{where}{error.strerror or error}")
        return 2
    except MemoryError as error:
        say(f"not enough memory: {error}")
        return 2
    except KeyboardInterrupt as stop:
        say("stopped; the same command resumes from here")
        return 143 if isinstance(stop, Terminated) else 130
