"""identica reproduce STUDY"""

from __future__ import annotations

import argparse
import os
from contextlib import ExitStack
from pathlib import Path

from identica.cli.arguments import suggest, whole
from identica.cli.streams import say
from identica.errors import InputError, LostProcessError

STUDIES = (
    *("icml-table1", "icml-table2", "icml-table4"),
    *(f"workshop-table{k}" for k in range(1, 6)),
    *("theorem1", "recordings", "marginals"),
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.description = (
        "Run the unfinished experiments of a study, and write its table and report."
    )
    study = parser.add_argument(
        "study",
        nargs="?",
        metavar="STUDY",
        help="icml-table1, icml-table2, icml-table4, workshop-table1 to workshop-table5, theorem1, "
        "recordings or marginals; --list describes them",
    )
    suggest(study, STUDIES)
    parser.add_argument("--rows", metavar="1,3", help="rows such as 1,3 or 1-4 (default: all)")
    parser.add_argument("--seeds", metavar="0,1", help="seeds such as 0,1 (default: 0-4)")
    preset = parser.add_argument(
        "--preset",
        default="fast",
        metavar="NAME",
        help="fast, or paper for the published settings (default: %(default)s)",
    )
    suggest(preset, ("fast", "paper"))
    parser.add_argument(
        "--workers", type=whole, metavar="N", help="number of parallel runs (default: one per core)"
    )
    engine = parser.add_argument(
        "--engine",
        default="local",
        metavar="NAME",
        help="where to run: local, ray or dask (default: %(default)s)",
    )
    suggest(engine, ("local", "ray", "dask"))
    parser.add_argument(
        "--address",
        metavar="HOST:PORT",
        help="address of a Ray or Dask cluster that can access the folder (default: RAY_ADDRESS or "
        "DASK_SCHEDULER_ADDRESS, else a cluster on this machine)",
    )
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="folder of the study (default: identica-STUDY)"
    )
    parser.add_argument(
        "--list",
        action="store_true",
        help="list the runs and their state, or without STUDY all studies, and exit",
    )
    parser.set_defaults(run=_reproduce)


def _reproduce(args: argparse.Namespace) -> int:
    from identica import distributed
    from identica.studies import runner
    from identica.studies.catalogue import STUDIES, find
    from identica.studies.study import numbers

    if args.study is None:
        if not args.list:
            raise InputError("STUDY must be given; identica reproduce --list shows all studies")
        for study in STUDIES.values():
            print(f"{study.name:16}{len(study.rows):3} rows  {study.title}")
        return 0
    study = find(args.study)
    rows = None if args.rows is None else numbers("rows", args.rows)
    seeds = None if args.seeds is None else numbers("seeds", args.seeds)
    out = runner.default_folder(study) if args.out is None else args.out
    if args.list:
        planned = runner.plan(study, out, rows=rows, seeds=seeds, preset=args.preset)
        print(runner.listing(planned))
        return 0
    try:
        with ExitStack() as stack:
            nowhere = stack.enter_context(open(os.devnull, "w")) if args.quiet else None
            rank, _ = stack.enter_context(distributed.processes())
            outcome = runner.reproduce(
                study,
                rows=rows,
                seeds=seeds,
                preset=args.preset,
                workers=args.workers,
                engine=args.engine,
                address=args.address,
                out=out,
                stream=nowhere,
            )
    except LostProcessError as error:
        say(error)
        return 1
    if rank > 0:  # the first process speaks for all
        return 0
    print(f"{outcome.table}\nreport: {outcome.folder / 'report.html'}")
    if outcome.kept:
        say(f"kept from the earlier table, as not all of their runs are here: {outcome.kept}")
    for label, why in outcome.failures.items():
        say(f"{label} failed: {why}")
    return 1 if outcome.failures else 0
