"""Description of the density of the codes, and the guarantee for a model with a potential."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from identica.diagnosis.dimension import Dimensions, parts, varying
from identica.diagnosis.verdict import Finding
from identica.families import Family, Uniform
from identica.spaces import Space, Sphere
from identica.theory.theorems import Assumed, Believed, any_marginal

Matrix = NDArray[np.float64]

GATHERED = 0.2  # length of the mean direction: of a uniform sphere's N directions, about 1/√N
SKEWED = 0.5  # skewness; an exponential's is 2
PEAKED = 1.0  # excess kurtosis; a Laplace's is 3
FLAT = -0.7  # a uniform's is −1.2
CORRELATED = 0.3
VALLEY = 0.8  # density between two peaks, relative to the lower one, that counts as a valley
GAP = 0.03  # … that counts as a gap
GRID = 200  # points at which a density is evaluated

# Findings about the conditions of the propositions: the form of the conditional, which must be the same
# everywhere and for all factors, and as many factors as codes.
ASKED = ("conditional", "anisotropy", "bend", "dimension", "rows", "space")
RECOVERED = {
    "permutation": "each code is one factor",
    "orthogonal": "codes are a rotation of the factors",
    "affine": "codes are a linear map of the factors",
    "blocks": "codes are a rotation among factors that change alike",
}


@dataclass(frozen=True)
class Density:
    """A description of the density of codes.

    Attributes:
        words: the description, one sentence.
        gap: whether regions of high density are separated by regions that are nearly empty.
    """

    words: str
    gap: bool = False


def density(h: Matrix, space: Space, independent: float) -> Density:
    """Describe the density of codes h (N×n), of which `independent` rows are effectively independent."""
    features: dict[str, list[int]] = {}
    notes: list[str] = []
    gap = False
    for part, columns in parts(space):
        codes = h[:, columns]
        if isinstance(part, Sphere):
            mean = float(np.linalg.norm((codes / np.linalg.norm(codes, axis=1)[:, None]).mean(0)))
            where = "gather around one direction" if mean > GATHERED else "are uneven on the sphere"
            notes.append(where)
            continue
        for k in np.flatnonzero(varying(codes)):
            depth = valley(codes[:, k], independent)
            gap |= depth < GAP
            name = "have two modes or more" if depth < VALLEY else _shape(codes[:, k])
            features.setdefault(name, []).append(columns.start + int(k) + 1)
        if (most := _correlation(codes)) > CORRELATED:
            notes.append(f"are correlated (by up to {most:.2f})")
    alike = len(features) == 1 and not notes
    said = [
        name if alike else f"{name} (code{'s' * (len(which) > 1)} {', '.join(map(str, which))})"
        for name, which in features.items()
    ]
    return Density(f"They {_listed([*said, *notes] or ['do not vary'])}.", gap)


def _shape(values: Matrix) -> str:
    y = (values - values.mean()) / values.std()
    skewness, excess = float((y**3).mean()), float((y**4).mean()) - 3
    if abs(skewness) > SKEWED:
        return "are skewed"
    if excess > PEAKED:
        return "are peaked, with heavy tails"
    return "are flat" if excess < FLAT else "are bell-shaped"


def _correlation(codes: Matrix) -> float:
    live = codes[:, varying(codes)]
    if live.shape[1] < 2:
        return 0.0
    return float(np.abs(np.corrcoef(live.T) - np.eye(live.shape[1])).max())


def valley(values: Matrix, independent: float) -> float:
    """The lowest density between two peaks, relative to the lower peak; 1 if there is a single peak.

    The bandwidth follows Silverman's rule for the effective number of independent values.

    >>> x = np.linspace(-1, 1, 1000)
    >>> valley(x, 1000) > 0.8 > valley(np.r_[x - 1.5, x + 1.5], 2000)
    True
    """
    low, high = np.quantile(values, (0.001, 0.999))
    width = 1.06 * values.std() * max(independent, 10.0) ** -0.2
    counts, edges = np.histogram(values, GRID, (low - 3 * width, high + 3 * width))
    away = np.arange(GRID) * (edges[1] - edges[0]) / width
    kernel = np.exp(-0.5 * np.subtract.outer(away, away) ** 2)
    smooth = kernel @ counts
    lower = np.minimum(np.maximum.accumulate(smooth), np.maximum.accumulate(smooth[::-1])[::-1])
    deep = lower > 0.1 * smooth.max()  # a bump in a tail is not a peak
    return float((smooth[deep] / lower[deep]).min())


def _listed(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def finding(
    uneven: Finding,
    density: Density,
    others: Sequence[Finding],
    dimensions: Dimensions,
    space: Space,
    conditional: Family,
    learn_precision: bool,
) -> Finding:
    """Replace the finding about codes that are not uniform, for a model with a potential.

    Args:
        uneven: the finding for a model without a potential.
        others: all other findings, which show whether the conditions of the propositions hold.
        space: the space that the codes fill.
    """
    seen = f"{uneven.seen} {density.words}"
    revised = replace(uneven, seen=seen, means="", advice="")
    absorbs = "The potential allows for any density, but only"
    if density.gap:
        means = "There are regions that hardly any pair connects, so how they lie to each other is not known."
        return replace(revised, means=means, advice="pairs that are further apart (a longer lag).")
    violations, promise = any_marginal(
        Believed(space, Uniform(), conditional),
        Assumed(space, conditional, False, True, np.inf, True, learn_precision),
    )
    if promise is None:
        return replace(
            revised,
            means=f"No theorem applies: {violations[0]}.",
            advice="another conditional.",
        )
    failed = [other for other in others if other.check in ASKED and other.level != "fine"]
    if failed:
        means = f"{absorbs} if the rest of the model is right, see {_listed([f.check for f in failed])}."
        return replace(revised, means=means, advice=failed[0].advice)
    if dimensions.columns is not None and dimensions.columns <= dimensions.intrinsic.room:
        means = f"{absorbs} if there are no more factors than columns, which codes cannot show."
        return replace(revised, means=means, advice="more columns, if there are any.")
    means = (
        f"The potential allows for it: {RECOVERED[promise.up_to]} ({promise.theorem.split(' (')[0]}), if "
        "factors change alike wherever they are."
    )
    return replace(revised, level="caution", means=means)
