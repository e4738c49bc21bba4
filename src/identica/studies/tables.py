"""The synthetic tables of the paper, row by row, beside the published figures (scores in [0, 1])."""

from __future__ import annotations

import math
from dataclasses import dataclass

from identica.errors import InputError
from identica.families import (
    Family,
    GeneralizedNormal,
    Laplace,
    Normal,
    Uniform,
    VonMisesFisher,
)
from identica.spaces import Box, Euclidean, Space, Sphere

KINDS = ("identity", "supervised", "contrastive")


@dataclass(frozen=True)
class Published:
    """A published score: mean and standard deviation (None if not known) over seeds."""

    mean: float
    std: float | None


@dataclass(frozen=True)
class Row:
    """A row of a table: the true process, the model, and what was published of it.

    `match` says whether the paper counts the model's assumptions as those of the process;
    `must_fail` marks the rows where theory forbids a high score.
    """

    row: int
    space: Space
    marginal: Family
    conditional: Family
    model_space: Space
    model: Family
    score: str
    match: bool
    published: dict[str, Published]
    must_fail: bool = False


def _row(
    number: int,
    process: tuple[Space, Family, Family],
    model: tuple[Space, Family],
    match: str,
    *percents: tuple[float, float],
    score: str = "r2",
) -> Row:
    published = {
        kind: Published(round(mean / 100, 6), round(std / 100, 6))
        for kind, (mean, std) in zip(KINDS, percents, strict=True)
    }
    return Row(number, *process, *model, score, match == "match", published)


S, B, R = Sphere(10), Box(10), Euclidean(10)
U = Uniform()
vMF, GN = VonMisesFisher, GeneralizedNormal
L05, N05, G05 = Laplace(0.05), Normal(0.05), GN(3.0, 0.05)
# a model scores by −‖a − b‖_p^p, so its normal has variance 1/2; the encoder finds its own scale
L1, N1, G1 = Laplace(1.0), Normal(math.sqrt(0.5)), GN(3.0)

# identity and supervised depend on the process alone
_sphere = (66.98, 2.79), (99.71, 0.05)
_box = (67.93, 7.40), (99.78, 0.06)
_bent = (63.37, 2.41), (99.70, 0.07)

ICML_TABLE1 = [
    _row(1, (S, U, vMF(1.0)), (S, vMF(1.0)), "match", *_sphere, (99.42, 0.05)),
    _row(2, (S, U, vMF(10.0)), (S, vMF(1.0)), "no", *_sphere, (99.86, 0.01)),
    _row(3, (S, U, L05), (S, vMF(1.0)), "no", *_sphere, (99.91, 0.01)),
    _row(4, (S, U, N05), (S, vMF(1.0)), "no", *_sphere, (99.86, 0.00)),
    _row(5, (B, U, N05), (R, N1), "no", *_box, (99.60, 0.02)),
    _row(6, (B, U, L05), (R, N1), "no", *_box, (99.64, 0.02)),
    _row(7, (B, U, L05), (R, G1), "no", *_box, (99.70, 0.02)),
    _row(8, (B, U, N05), (R, G1), "no", *_box, (99.69, 0.02)),
    _row(9, (S, Normal(1.0), L05), (S, vMF(1.0)), "no", *_bent, (99.02, 0.01)),
    _row(10, (S, Normal(1.0), N05), (S, vMF(1.0)), "no", *_bent, (99.02, 0.02)),
    _row(
        11,
        (R, Laplace(1.0), Normal(1.0)),
        (R, N1),
        "no",
        (62.49, 1.65),
        (99.65, 0.04),
        (98.13, 0.14),
    ),
    _row(
        12,
        (R, Normal(1.0), Normal(1.0)),
        (R, N1),
        "no",
        (63.57, 2.30),
        (99.61, 0.17),
        (98.76, 0.03),
    ),
]

_raw, _in_box, _free = (46.55, 1.34), (99.93, 0.03), (99.97, 0.03)


def _mcc(
    number: int,
    conditional: Family,
    model: tuple[Space, Family],
    match: str,
    mean: float,
    std: float,
) -> Row:
    supervised = _in_box if isinstance(model[0], Box) else _free
    return _row(
        number, (B, U, conditional), model, match, _raw, supervised, (mean, std), score="mcc"
    )


ICML_TABLE2 = [
    _mcc(1, L05, (B, L1), "match", 98.62, 0.05),
    _mcc(2, G05, (B, G1), "match", 99.90, 0.06),
    _mcc(3, N05, (B, N1), "no", 99.77, 0.01),
    _mcc(4, L05, (B, N1), "no", 99.76, 0.02),
    _mcc(5, G05, (B, L1), "no", 98.80, 0.02),
    _mcc(6, L05, (R, L1), "no", 98.57, 0.02),
    _mcc(7, G05, (R, G1), "no", 99.85, 0.01),
    _mcc(8, N05, (R, N1), "no", 58.26, 3.00),
    _mcc(9, L05, (R, N1), "no", 59.67, 2.33),
    _mcc(10, N05, (R, G1), "no", 43.80, 2.15),
]

# GenNorm(1; λ) is Laplace(λ), and the models are those of the ICML tables: runs are shared
_g1, _g2, _wide1, _wide2 = L05, GN(2.0, 0.05), Laplace(1.0), GN(2.0, 1.0)
_p2, _p3 = N1, G1
_cube = (87.71, 4.64)
WORKSHOP_TABLE1 = [
    _row(1, (S, U, vMF(1.0)), (S, vMF(1.0)), "match", (77.58, 3.06), (99.82, 0.03), (99.42, 0.05)),
    _row(2, (B, U, _g2), (R, _p2), "match", _cube, (99.80, 0.03), (99.52, 0.02)),
    _row(3, (S, U, vMF(10.0)), (S, vMF(1.0)), "no", (77.58, 3.06), (99.81, 0.03), (99.86, 0.01)),
    _row(4, (S, U, _g1), (S, vMF(1.0)), "no", (77.98, 2.97), (99.81, 0.03), (99.88, 0.03)),
    _row(5, (S, U, _g2), (S, vMF(1.0)), "no", (77.58, 3.06), (99.80, 0.04), (99.86, 0.00)),
    _row(6, (B, U, _g1), (R, _p2), "no", _cube, (99.81, 0.03), (99.53, 0.02)),
    _row(7, (B, U, _g1), (R, _p3), "no", _cube, (99.81, 0.03), (99.70, 0.02)),
    _row(8, (B, U, _g2), (R, _p3), "no", _cube, (99.83, 0.03), (99.69, 0.02)),
    _row(9, (S, _wide2, _g1), (S, vMF(1.0)), "no", (78.34, 3.83), (99.78, 0.04), (98.94, 0.03)),
    _row(10, (S, _wide2, _g2), (S, vMF(1.0)), "no", (78.05, 3.17), (99.78, 0.05), (98.94, 0.02)),
    _row(11, (R, _wide1, _wide2), (R, _p2), "no", (73.28, 2.35), (99.76, 0.02), (97.57, 0.37)),
    _row(12, (R, _wide2, _wide2), (R, _p2), "no", (75.43, 2.68), (99.80, 0.04), (98.70, 0.04)),
]

TABLES: dict[str, list[Row]] = {
    "icml-table1": ICML_TABLE1,
    "icml-table2": [
        *ICML_TABLE2[:7],
        *(Row(**{**vars(row), "must_fail": True}) for row in ICML_TABLE2[7:]),
    ],
    "workshop-table1": WORKSHOP_TABLE1,
}


def load(study: str) -> list[Row]:
    """The records of a study, one for each row of its table.

    >>> row = load("icml-table1")[1]
    >>> row.conditional, row.model, row.published["contrastive"].mean
    (VonMisesFisher(kappa=10.0), VonMisesFisher(kappa=1.0), 0.9986)
    """
    if study not in TABLES:
        raise InputError(f"study must be one of {', '.join(TABLES)}; got {study!r}")
    return TABLES[study]
