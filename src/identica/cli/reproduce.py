"""identica reproduce STUDY"""

from __future__ import annotations

import argparse
from pathlib import Path

from identica.cli.arguments import whole
from identica.cli.streams import say
from identica.errors import LostProcessError


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.description = (
        "Run the experiments of a study that are not finished, and write its table and report."
    )
    parser.add_argument(
        "study",
        metavar="STUDY",
        help="icml-table1, icml-table2, icml-table4, workshop-table1 to workshop-table5 or theorem1",
    )
    parser.add_argument("--rows", metavar="1,3", help="rows such as 1,3 or 1-4 (default: all)")
    parser.add_argument("--seeds", metavar="0,1", help="seeds such as 0,1 (default: 0-4)")
    parser.add_argument(
        "--preset",
        default="fast",
        help="fast, or paper for the published recipe (default: %(default)s)",
    )
    parser.add_argument(
        "--workers", type=whole, metavar="N", help="runs at a time (default: one per core)"
    )
    parser.add_argument(
        "--engine", default="local", help="local, ray or dask (default: %(default)s)"
    )
    parser.add_argument(
        "--address",
        metavar="HOST:PORT",
        help="of a Ray or Dask cluster that shares the folder (default: RAY_ADDRESS or "
        "DASK_SCHEDULER_ADDRESS, else a cluster on this machine)",
    )
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="folder of the study (default: identica-STUDY)"
    )
    parser.add_argument(
        "--list", action="store_true", help="list the runs and their state, without running any"
    )
    parser.set_defaults(run=_reproduce)


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
