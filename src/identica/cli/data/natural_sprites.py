"""Natural Sprites: rendered shapes that move and grow like objects in real videos."""

from __future__ import annotations

import argparse

from identica.cli.arguments import add_actions, add_file, add_picture


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the action and its options."""
    (action,) = add_actions(parser, show)
    add_file(action, "measured motion, comma-separated")
    add_picture(action, "natural-sprites.png")


def show(args: argparse.Namespace) -> int:
    """a picture of some pairs

    A picture of random pairs, side by side; driven by KITTI Masks (natural-sprites-kitti) where there is
    no file of measured motion.
    """
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
