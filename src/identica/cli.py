"""The command line: identica demo | fit | reproduce | report | …"""

from __future__ import annotations

import argparse
import io
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import NoReturn, TextIO

from identica import __version__, fit_command
from identica._check import InputError

# the modules that add the commands of each data set
DATA_SETS: dict[str, str] = {
    "3dident": "threedident",
    "dsprites": "dsprites",
    "kitti-masks": "kitti_masks",
    "natural-sprites": "natural_sprites",
}


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

    fit_command.configure(commands.add_parser("fit", help="find the codes of your own data"))

    reproduce = commands.add_parser(
        "reproduce",
        help="run a study of the paper again, and compare",
        description="Do the runs of a study that are not done yet, and write its table and report.",
    )
    reproduce.add_argument(
        "study",
        metavar="STUDY",
        help="icml-table1, icml-table2, icml-table4, workshop-table1 to workshop-table5 or theorem1",
    )
    reproduce.add_argument("--rows", metavar="1,3", help="rows such as 1,3 or 1-4 (default: all)")
    reproduce.add_argument("--seeds", metavar="0,1", help="seeds such as 0,1 (default: 0-4)")
    reproduce.add_argument(
        "--preset",
        default="fast",
        help="fast, or paper for the published recipe (default: %(default)s)",
    )
    reproduce.add_argument(
        "--workers", type=whole, metavar="N", help="runs at a time (default: one per core)"
    )
    reproduce.add_argument(
        "--engine", default="local", help="local, ray or dask (default: %(default)s)"
    )
    reproduce.add_argument(
        "--address",
        metavar="HOST:PORT",
        help="of a Ray or Dask cluster that shares the folder (default: RAY_ADDRESS or "
        "DASK_SCHEDULER_ADDRESS, else a cluster on this machine)",
    )
    reproduce.add_argument(
        "--out", type=Path, metavar="DIR", help="folder of the study (default: identica-STUDY)"
    )
    reproduce.add_argument(
        "--list", action="store_true", help="say what would run and what is done, and stop"
    )
    reproduce.set_defaults(run=_reproduce)

    report = commands.add_parser(
        "report",
        help="make the table and report of a study anew",
        description="Make table.json, table.md and report.html of a study anew from its runs.",
    )
    report.add_argument("folder", type=Path, metavar="DIR", help="folder of a study")
    report.add_argument(
        "--force",
        action="store_true",
        help="replace a table that has more rows, scores or seeds than there are runs",
    )
    report.set_defaults(run=_report)

    data = commands.add_parser(
        "data",
        help="build, check or look at a data set",
        description="Build, check or look at a data set, under IDENTICA_DATA unless told otherwise.",
    )
    names = data.add_subparsers(dest="name", required=True, metavar="NAME")
    for name, module in DATA_SETS.items():
        configure = import_module(f"identica.datasets.commands.{module}").configure
        configure(names.add_parser(name))
    return top


def whole(text: str) -> int:
    """A whole number of at least 0, as typed on the command line."""
    if not text.isdecimal() or len(text) > 100:
        raise argparse.ArgumentTypeError(
            f"must be a whole number of at least 0, got {text[:100]!r}"
        )
    return int(text)


def _demo(args: argparse.Namespace) -> int:
    import torch

    from identica.demo import demo

    # a network this small gains little from a second thread, and loses much where others want the core
    torch.set_num_threads(1)
    demo(args.out, seed=args.seed)
    return 0


def _reproduce(args: argparse.Namespace) -> int:
    from identica import distributed
    from identica.studies import runner
    from identica.studies.catalogue import find
    from identica.studies.study import numbers

    study = find(args.study)
    rows = None if args.rows is None else numbers("rows", args.rows)
    seeds = None if args.seeds is None else numbers("seeds", args.seeds)
    out = runner.default_folder(study) if args.out is None else args.out
    if args.list:
        planned = runner.plan(study, out, rows=rows, seeds=seeds, preset=args.preset)
        print(runner.listing(planned))
        return 0
    try:
        with distributed.processes() as (rank, _):
            outcome = runner.reproduce(
                study,
                rows=rows,
                seeds=seeds,
                preset=args.preset,
                workers=args.workers,
                engine=args.engine,
                address=args.address,
                out=out,
            )
    except distributed.LostProcessError as error:
        _say(error)
        return 1
    if rank > 0:  # the first process speaks for all
        return 0
    print(f"{outcome.table}\nreport: {outcome.folder / 'report.html'}")
    if outcome.kept:
        _say(f"kept from the earlier table, as not all of their runs are here: {outcome.kept}")
    for label, why in outcome.failures.items():
        _say(f"{label} failed: {why}")
    return 1 if outcome.failures else 0


def _report(args: argparse.Namespace) -> int:
    from identica.studies.runner import report

    print(f"{report(args.folder, force=args.force)}\nreport: {args.folder / 'report.html'}")
    return 0


class Terminated(KeyboardInterrupt):
    """SIGTERM, which is cleaned up after as Ctrl-C is."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command.

    Its exit code is 0 when done, 1 if something failed on the way, 2 on bad input and where files
    cannot be read or written, 130 on Ctrl-C, 143 on SIGTERM and 141 if nobody reads the output.
    """
    if sys.stderr is None:  # closed by the caller
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    if sys.stdout is None:
        _say("standard output is closed: redirect it to /dev/null if it is not wanted")
        return 2
    try:
        if isinstance(sys.stdout, io.TextIOWrapper):  # a file name may not be in its encoding
            sys.stdout.reconfigure(errors="backslashreplace")
        with _stoppable(), _flushed(sys.stdout):
            args = parser().parse_args(argv)
            code: int = args.run(args)
            return code
    except InputError as error:
        _say(error)
        return 2
    except ArithmeticError as error:  # a loss that is not finite
        _say(error)
        return 1
    except BrokenPipeError:
        return 141
    except OSError as error:
        where = "" if error.filename is None else f"{os.fsdecode(error.filename)}: "
        _say(f"{where}{error.strerror or error}")
        return 2
    except MemoryError as error:
        _say(f"not enough memory: {error}")
        return 2
    except KeyboardInterrupt as stop:
        _say("stopped; the same command goes on from here")
        return 143 if isinstance(stop, Terminated) else 130


@contextmanager
def _stoppable() -> Iterator[None]:
    """Raise `KeyboardInterrupt` on Ctrl-C and `Terminated` on SIGTERM, and see that neither gets lost.

    Python drops what is raised in the callback of a weak reference: the signal is then sent again.
    Compiled code may raise an error of its own instead. matplotlib has many of both.
    """
    main_thread = threading.main_thread().ident
    if threading.get_ident() != main_thread:  # which alone has handlers
        yield
        return
    kinds = {signal.SIGINT: KeyboardInterrupt, signal.SIGTERM: Terminated}
    received: list[int] = []
    again: list[threading.Timer] = []

    def stop(number: int, _: object) -> None:
        if number == signal.SIGTERM and number in received:
            return  # a second one must not stop the clean-up
        received.append(number)
        raise kinds[signal.Signals(number)]

    def dropped(what: sys.UnraisableHookArgs) -> None:
        if received and issubclass(what.exc_type, KeyboardInterrupt):
            again.append(threading.Timer(0.01, signal.pthread_kill, [main_thread, received.pop()]))
            again[-1].start()
        else:
            hook(what)

    hook, sys.unraisablehook = sys.unraisablehook, dropped
    before = {number: signal.getsignal(number) for number in kinds}
    handlers = {
        n: handler for n, handler in before.items() if handler not in (signal.SIG_IGN, None)
    }
    for number in handlers:  # what is ignored, as in the background of a script, stays so
        signal.signal(number, stop)
    try:
        yield
    except Exception:
        if received:
            raise kinds[signal.Signals(received[-1])] from None
        raise
    finally:
        for timer in again:
            timer.cancel()
        for number, handler in handlers.items():
            signal.signal(number, handler)
        sys.unraisablehook = hook


@contextmanager
def _flushed(stream: TextIO) -> Iterator[None]:
    """Write what a stream still holds at the end of the block; raise if that is impossible."""
    try:
        yield
    finally:
        try:
            stream.flush()
        except OSError as error:
            with suppress(OSError):  # or Python would try again at exit, and complain
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
            raise OSError(error.errno, error.strerror, stream.name.strip("<>")) from error


def _say(message: object) -> None:
    """A line on stderr."""
    with suppress(OSError), _flushed(sys.stderr):  # if that fails, there is nobody left to tell
        print("identica:", " ".join(str(message).splitlines()), file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
