"""identica data dsprites check | show"""

from __future__ import annotations

import argparse
from pathlib import Path


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the commands for dSprites."""
    parser.description = (
        "dSprites: a white shape with its scale, orientation and position, from the original "
        "archive or re-rendered."
    )
    commands = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    check = commands.add_parser(
        "check",
        help="see whether an original archive is whole",
        description="Read every image of an original archive, and compare it with the re-rendered "
        "one. A bit-packed copy (377 MB) stays under IDENTICA_DATA.",
    )
    check.set_defaults(run=_check)
    show = commands.add_parser(
        "show",
        help="a picture of each factor in turn",
        description="A picture in which one factor after the other runs through its values; "
        "re-rendered where there is no original archive.",
    )
    for command in (check, show):
        command.add_argument(
            "file",
            type=Path,
            nargs="?",
            metavar="FILE",
            help="original npz archive (default: the one under IDENTICA_DATA)",
        )
    show.add_argument(
        "--out",
        type=Path,
        default=Path("dsprites.png"),
        metavar="PNG",
        help="the picture (default: %(default)s)",
    )
    show.set_defaults(run=_show)


def _check(args: argparse.Namespace) -> int:
    from identica.datasets import dsprites

    images, pixels = dsprites.compare(dsprites.load(args.file), progress=True)
    whole = f"{dsprites.TOTAL} images, in the order of dSprites and all whole"
    print(f"{whole}; {images} differ from re-rendered ones, in {pixels} pixels")
    return 0


def _show(args: argparse.Namespace) -> int:
    from identica.datasets import dsprites, pictures
    from identica.report import plots

    original = args.file is not None or dsprites.is_at_hand()
    name = "dSprites" if original else "dSprites, re-rendered"
    packed = dsprites.load(args.file) if original else None
    figure = plots.sheet(dsprites.picture(packed=packed), dsprites.FACTORS, title=name)
    pictures.save(plots.pixels(figure), args.out)
    print(f"{args.out}: {name}")
    return 0
