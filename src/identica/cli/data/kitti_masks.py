"""KITTI Masks: real pedestrian masks in motion, with their position and area."""

from __future__ import annotations

import argparse
from pathlib import Path

from identica.cli.arguments import add_actions, add_file, add_picture

PUBLISHED = {
    "sequences": 2120,
    "frames": 84_626,
    "pairs": 82_506,
    "kurtosis_y": 65.39,
    "kurtosis_x": 38.50,
    "kurtosis_area": 68.92,
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the actions and their options."""
    builder, *readers = add_actions(parser, build, check, show)
    builder.add_argument("--kitti", type=Path, metavar="DIR", help="annotations of KITTI-MOTS")
    builder.add_argument("--mots", type=Path, metavar="DIR", help="annotations of MOTSChallenge")
    written = "npz archive to write (default: kitti_masks/kitti_masks.npz under IDENTICA_DATA)"
    builder.add_argument("--out", type=Path, metavar="FILE", help=written)
    for reader in readers:
        add_file(reader, "npz archive, or the original pickle")
    add_picture(readers[1])


def build(args: argparse.Namespace) -> int:
    """make it from the public annotations

    Make KITTI Masks from the annotations of KITTI-MOTS, MOTSChallenge or both (the published data set has
    both). A folder holds text files (instances_txt) or a folder of id-map PNGs for each video (instances).
    """
    from identica.datasets import kitti_masks
    from identica.datasets.root import data_root

    data = kitti_masks.build(args.kitti, args.mots)
    path = data_root() / "kitti_masks" / "kitti_masks.npz" if args.out is None else args.out
    data.save(path)
    print(f"{len(data.seq_lengths)} sequences, {len(data)} frames in {path}")
    return 0


def check(args: argparse.Namespace) -> int:
    """compare it with the published figures

    See that masks and factors agree, and print counts and kurtoses next to the published ones.
    """
    from identica.datasets import kitti_masks

    found = kitti_masks.check(kitti_masks.load(args.file))
    print(f"{'':13} {'found':>9} {'published':>10}")
    for name, value in found.items():
        digits = 2 if name.startswith("kurtosis") else 0
        print(f"{name:13} {value:9.{digits}f} {PUBLISHED[name]:10.{digits}f}")
    return 0


def show(args: argparse.Namespace) -> int:
    """a picture of random sequences"""
    from identica.datasets import kitti_masks, pictures

    pictures.save(kitti_masks.picture(kitti_masks.load(args.file)), args.out)
    print(args.out)
    return 0
