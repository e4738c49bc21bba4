"""dSprites: a white shape with its scale, orientation and position, from the original archive or
re-rendered."""

from __future__ import annotations

import argparse

from identica.cli.arguments import add_actions, add_file, add_picture


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the actions and their options."""
    parsers = add_actions(parser, check, show)
    for action in parsers:
        add_file(action, "original npz archive")
    add_picture(parsers[1], "dsprites.png")


def check(args: argparse.Namespace) -> int:
    """see whether an original archive is whole

    Read every image of an original archive, and compare it with the re-rendered one. A bit-packed copy
    (377 MB) stays under IDENTICA_DATA.
    """
    from identica.datasets import dsprites

    images, pixels = dsprites.compare(dsprites.load(args.file), progress=not args.quiet)
    whole = f"{dsprites.TOTAL} images, in the order of dSprites and all whole"
    print(f"{whole}; {images} differ from re-rendered ones, in {pixels} pixels")
    return 0


def show(args: argparse.Namespace) -> int:
    """a picture of each factor in turn

    A picture in which one factor after the other runs through its values; re-rendered where there is no
    original archive.
    """
    from identica.datasets import dsprites, pictures
    from identica.report import plots

    original = args.file is not None or dsprites.is_at_hand()
    name = "dSprites" if original else "dSprites, re-rendered"
    packed = dsprites.load(args.file) if original else None
    figure = plots.sheet(dsprites.picture(packed=packed), dsprites.FACTORS, title=name)
    pictures.save(plots.pixels(figure), args.out)
    print(f"{args.out}: {name}")
    return 0
