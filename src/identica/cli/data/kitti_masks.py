"""identica data kitti-masks build | check | show"""

from __future__ import annotations

import argparse
from pathlib import Path

PUBLISHED = {
    "sequences": 2120,
    "frames": 84_626,
    "pairs": 82_506,
    "kurtosis_y": 65.39,
    "kurtosis_x": 38.50,
    "kurtosis_area": 68.92,
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the commands for KITTI Masks."""
    parser.description = (
        "KITTI Masks: real pedestrian masks in motion, with their position and area."
    )
    commands = parser.add_subparsers(dest="action", required=True, metavar="ACTION")

    build = commands.add_parser(
        "build",
        help="make it from the public annotations",
        description="Make KITTI Masks from the annotations of KITTI-MOTS, MOTSChallenge or both "
        "(the published data set has both). A folder holds text files (instances_txt) or a folder "
        "of id-map PNGs for each video (instances).",
    )
    build.add_argument("--kitti", type=Path, metavar="DIR", help="annotations of KITTI-MOTS")
    build.add_argument("--mots", type=Path, metavar="DIR", help="annotations of MOTSChallenge")
    build.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="npz archive to write (default: kitti_masks/kitti_masks.npz under IDENTICA_DATA)",
    )
    build.set_defaults(run=_build)

    check = commands.add_parser(
        "check",
        help="compare it with the published figures",
        description="See that masks and factors agree, and print counts and kurtoses beside the "
        "published ones.",
    )
    show = commands.add_parser(
        "show", help="a picture of some sequences", description="A picture of random sequences."
    )
    for command in (check, show):
        command.add_argument(
            "file",
            type=Path,
            nargs="?",
            metavar="FILE",
            help="npz archive, or the original pickle (default: the one under IDENTICA_DATA)",
        )
    check.set_defaults(run=_check)
    show.add_argument("--out", type=Path, required=True, metavar="PNG", help="the picture")
    show.set_defaults(run=_show)


def _build(args: argparse.Namespace) -> int:
    from identica.datasets import kitti_masks
    from identica.datasets.root import data_root

    data = kitti_masks.build(args.kitti, args.mots)
    path = data_root() / "kitti_masks" / "kitti_masks.npz" if args.out is None else args.out
    data.save(path)
    print(f"{len(data.seq_lengths)} sequences, {len(data)} frames in {path}")
    return 0


def _check(args: argparse.Namespace) -> int:
    from identica.datasets import kitti_masks

    found = kitti_masks.check(kitti_masks.load(args.file))
    print(f"{'':13} {'found':>9} {'published':>10}")
    for name, value in found.items():
        digits = 2 if name.startswith("kurtosis") else 0
        print(f"{name:13} {value:9.{digits}f} {PUBLISHED[name]:10.{digits}f}")
    return 0


def _show(args: argparse.Namespace) -> int:
    from identica.datasets import kitti_masks, pictures

    pictures.save(kitti_masks.picture(kitti_masks.load(args.file)), args.out)
    print(args.out)
    return 0
