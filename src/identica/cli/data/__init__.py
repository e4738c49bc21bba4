"""identica data NAME build | check | show"""

from __future__ import annotations

import argparse
from importlib import import_module

# the module with the actions of each data set, and what it is
DATA_SETS = {
    "3dident": ("threedident", "renderings of a teapot, with ten factors"),
    "dsprites": ("dsprites", "a white shape, with five factors"),
    "kitti-masks": ("kitti_masks", "masks of pedestrians in real videos"),
    "natural-sprites": ("natural_sprites", "shapes that move as measured in videos"),
    "recordings": ("recordings", "spikes of neurons in rats on a track, and in a mouse"),
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the data sets, each with its own actions."""
    parser.description = "Build, check or show a data set, under IDENTICA_DATA by default."
    names = parser.add_subparsers(dest="name", required=True, metavar="NAME")
    for name, (home, summary) in DATA_SETS.items():
        module = import_module(f"identica.cli.data.{home}")
        module.configure(names.add_parser(name, help=summary, description=module.__doc__))
