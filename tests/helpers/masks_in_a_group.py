"""One process of a group that reproduces a study of masks twice: python -m helpers.masks_in_a_group OUT PORT

The first time, data cannot be read at the third step. What both commands came to, and how many batches
each training drew, go to OUT and the number of the process. (One process for both commands: most of the
time goes into imports.)
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

from helpers.masks import TINY
from identica import InputError, cli
from identica.studies import catalogue, kitti
from identica.studies.published import WORKSHOP_TABLE5


class Masks(kitti.KittiTable):
    """Short trainings, and no pictures."""

    def experiment(self, row, kind, seed, preset):
        return super().experiment(row, kind, seed, TINY)

    def pictures(self, row, runs):
        return []


def main(out, port):
    codes: list[Any] = []
    drawn: list[Any] = []
    sampler = kitti.sampler

    def counted(data, max_lag):
        draw, number = sampler(data, max_lag), len(drawn)
        drawn.append(0)

        def sample(size, /, *, generator):
            if len(codes) == 0 and drawn[number] == 2:
                raise InputError("an image is cut short")
            drawn[number] += 1
            return draw(size, generator=generator)

        return sample

    kitti.sampler = counted
    rows = [WORKSHOP_TABLE5[2], WORKSHOP_TABLE5[6]]
    catalogue.STUDIES["masks"] = Masks("masks", "Masks", rows)
    for _ in range(2):
        codes.append(cli.main(["reproduce", "masks", "--seeds", "0", "--out", out]))
        os.environ["MASTER_PORT"] = port
    Path(out + os.environ["RANK"]).write_text(json.dumps([codes, drawn]))


if __name__ == "__main__":
    main(*sys.argv[1:])
