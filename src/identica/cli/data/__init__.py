"""identica data NAME build | check | show"""

from __future__ import annotations

import argparse
from importlib import import_module

# the modules that add the commands of each data set
DATA_SETS = {
    "3dident": "threedident",
    "dsprites": "dsprites",
    "kitti-masks": "kitti_masks",
    "natural-sprites": "natural_sprites",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the data sets, each with its own commands."""
    parser.description = (
        f"Build, check or show a data set ({', '.join(DATA_SETS)}), under IDENTICA_DATA by default."
    )
    names = parser.add_subparsers(dest="name", required=True, metavar="NAME")
    for name, module in DATA_SETS.items():
        import_module(f"identica.cli.data.{module}").configure(names.add_parser(name, help=name))
