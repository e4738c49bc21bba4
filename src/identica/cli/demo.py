"""identica demo"""

from __future__ import annotations

import argparse
from pathlib import Path

from identica.cli.arguments import add_seed


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.description = "Invert a hidden mixing of 10 factors on the sphere, and write a report."
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("identica-demo"),
        metavar="DIR",
        help="folder for the run and its report.html (default: %(default)s)",
    )
    add_seed(parser)
    parser.set_defaults(run=_demo)


def _demo(args: argparse.Namespace) -> int:
    import torch

    from identica.studies.demo import demo

    # a network this small gains little from a second thread, and loses much where others want the core
    torch.set_num_threads(1)
    demo(args.out, seed=args.seed, progress=not args.quiet)
    return 0
