"""identica report DIR"""

from __future__ import annotations

import argparse
from pathlib import Path


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.description = "Rebuild table.json, table.md and report.html of a study from its runs."
    parser.add_argument("folder", type=Path, metavar="DIR", help="folder of a study")
    parser.add_argument(
        "--force",
        action="store_true",
        help="overwrite a table that has more rows, scores or seeds than there are runs now",
    )
    parser.set_defaults(run=_report)


def _report(args: argparse.Namespace) -> int:
    from identica.studies.runner import report

    print(f"{report(args.folder, force=args.force)}\nreport: {args.folder / 'report.html'}")
    return 0
