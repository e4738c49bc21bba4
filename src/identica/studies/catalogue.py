"""The studies by name."""

from __future__ import annotations

from typing import Any

from identica._validate import one_of
from identica.studies import marginals, published
from identica.studies.kitti import KittiTable
from identica.studies.recordings import ROWS as RECORDINGS
from identica.studies.recordings import RecordingsTable
from identica.studies.sprites import DSpritesTable, SpritesTable
from identica.studies.study import Study
from identica.studies.synthetic import SyntheticTable
from identica.studies.theorem1 import ROWS, Theorem1
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
    "theorem1": "Theorem 1: the limit of many negatives",
    "recordings": "Recordings: noisy neurons, beside PCA, FastICA and CEBRA",
    "marginals": "Beyond uniform marginals: the published loss, and a potential",
}

_TABLES: list[tuple[str, type[Study[Any]], list[Any]]] = [
    ("icml-table1", SyntheticTable, published.ICML_TABLE1),
    ("icml-table2", SyntheticTable, published.ICML_TABLE2),
    ("icml-table4", ThreeDIdentTable, published.ICML_TABLE4),
    ("workshop-table1", SyntheticTable, published.WORKSHOP_TABLE1),
    ("workshop-table2", DSpritesTable, published.WORKSHOP_TABLE2),
    ("workshop-table3", SpritesTable, published.WORKSHOP_TABLE3),
    ("workshop-table4", SpritesTable, published.WORKSHOP_TABLE4),
    ("workshop-table5", KittiTable, published.WORKSHOP_TABLE5),
    ("theorem1", Theorem1, ROWS),
    ("recordings", RecordingsTable, RECORDINGS),
    ("marginals", marginals.Marginals, marginals.ROWS),
]
STUDIES: dict[str, Study[Any]] = {
    name: kind(name, TITLES[name], rows) for name, kind, rows in _TABLES
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
