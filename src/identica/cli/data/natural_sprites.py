"""identica data natural-sprites show"""

from __future__ import annotations

import argparse
from pathlib import Path


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the commands for Natural Sprites."""
    parser.description = "Natural Sprites: drawn shapes that move and grow as objects in films do."
    commands = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    show = commands.add_parser(
        "show",
        help="a picture of some pairs",
        description="A picture of random pairs, side by side; driven by KITTI Masks "
        "(natural-sprites-kitti) where there is no file of measured motion.",
    )
    show.add_argument(
        "file",
        type=Path,
        nargs="?",
        metavar="FILE",
        help="measured motion, comma-separated (default: the file under IDENTICA_DATA)",
    )
    show.add_argument(
        "--out",
        type=Path,
        default=Path("natural-sprites.png"),
        metavar="PNG",
        help="the picture (default: %(default)s)",
    )
    show.set_defaults(run=_show)


def _show(args: argparse.Namespace) -> int:
    from identica.datasets import kitti_masks, natural_sprites, pictures
    from identica.datasets.root import data_root

    measured = data_root() / "natural_sprites" / natural_sprites.MEASURED
    if args.file is not None or measured.is_file():
        sprites = natural_sprites.load(args.file)
    else:
        sprites = natural_sprites.from_kitti(kitti_masks.load())
    pictures.save(natural_sprites.picture(sprites), args.out)
    print(f"{args.out}: {sprites.name}")
    return 0
