"""The studies by name."""

from __future__ import annotations

from typing import Any

from identica._validate import one_of
from identica.studies.kitti import ROWS as KITTI_ROWS
from identica.studies.kitti import KittiTable
from identica.studies.sprites import (
    CONTINUOUS_ROWS,
    DISCRETE_ROWS,
    DSPRITES_ROWS,
    DSpritesTable,
    SpritesTable,
)
from identica.studies.study import Study
from identica.studies.synthetic import SyntheticTable
from identica.studies.tables import TABLES
from identica.studies.theorem1 import ROWS, Theorem1
from identica.studies.threedident import ROWS as IMAGE_ROWS
from identica.studies.threedident import ThreeDIdentTable

TITLES = {
    "icml-table1": "ICML 2021, table 1: identifiability up to affine maps",
    "icml-table2": "ICML 2021, table 2: identifiability up to permutations",
    "icml-table4": "ICML 2021, table 4: the factors behind rendered images (3DIdent)",
    "workshop-table1": "Workshop version, table 1: identifiability up to affine maps",
    "workshop-table2": "Workshop version, table 2: sprites and how their factors change (dSprites)",
    "workshop-table3": "Workshop version, table 3: sprites in natural motion, discrete factors",
    "workshop-table4": "Workshop version, table 4: sprites in natural motion, continuous factors",
    "workshop-table5": "Workshop version, table 5: real masks in motion (KITTI Masks)",
}

STUDIES: dict[str, Study[Any]] = {
    **{name: SyntheticTable(name, TITLES[name], rows) for name, rows in TABLES.items()},
    "icml-table4": ThreeDIdentTable("icml-table4", TITLES["icml-table4"], IMAGE_ROWS),
    "workshop-table2": DSpritesTable("workshop-table2", TITLES["workshop-table2"], DSPRITES_ROWS),
    "workshop-table3": SpritesTable("workshop-table3", TITLES["workshop-table3"], DISCRETE_ROWS),
    "workshop-table4": SpritesTable("workshop-table4", TITLES["workshop-table4"], CONTINUOUS_ROWS),
    "workshop-table5": KittiTable("workshop-table5", TITLES["workshop-table5"], KITTI_ROWS),
    "theorem1": Theorem1("theorem1", "Theorem 1: the limit of many negatives", ROWS),
}


def find(study: str) -> Study[Any]:
    """The study of a name.

    >>> find("theorem1").title
    'Theorem 1: the limit of many negatives'
    """
    return STUDIES[one_of("study", study, STUDIES)]


def load(study: str) -> list[Any]:
    """The records of a study, one for each row of its table.

    >>> row = load("icml-table1")[1]
    >>> row.conditional, row.model, row.published["contrastive"].mean
    (VonMisesFisher(kappa=10.0), VonMisesFisher(kappa=1.0), 0.9986)
    """
    return find(study).rows
