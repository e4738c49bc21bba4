"""What the theory guarantees: which factors are recovered, up to what, and which assumption fails."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from identica._bessel import log_mean_exp_gap, mean_cosine
from identica._validate import as_matrix, count, instance, nonnegative, positive, same_rows
from identica.encoders import ContrastiveModel
from identica.errors import InputError
from identica.families import (
    Coordinatewise,
    Family,
    Uniform,
    VonMisesFisher,
)
from identica.heads import EuclideanHead
from identica.metrics.columns import unit_size
from identica.process import GenerativeProcess
from identica.spaces import Box, Space, Sphere

SPHERE = "Theorem 2 (sphere, uniform marginal, von Mises–Fisher conditional)"
AFFINE = "Theorem 5 (convex body, uniform marginal, conditional from a norm)"
PERMUTATION = "Theorem 6 (convex body, uniform marginal, L^α conditional with α ≥ 1, α ≠ 2)"

PAIRS = 20_000  # whose distances are compared

_MEANING = {
    "orthogonal": "all factors are recovered up to a rotation or reflection and a common scale",
    "affine": "all factors are recovered up to an affine map (a mixture of the factors)",
    "permutation": "each factor is recovered by itself, up to order, sign and scale",
}


@dataclass(frozen=True)
class Guarantee:
    """What `guarantee` found.

    Attributes:
        up_to: "orthogonal", "affine" or "permutation"; None if nothing is guaranteed.
        theorem: the theorem behind it, or None.
        violations: the assumptions that fail, one sentence each.
        expect: what to expect in practice, in words.
    """

    up_to: str | None
    theorem: str | None
    violations: tuple[str, ...]
    expect: str

    def __bool__(self) -> bool:
        return self.up_to is not None

    def __str__(self) -> str:
        if self.up_to is not None:
            return f"Guaranteed by {self.theorem}: {_MEANING[self.up_to]}. {self.expect}".strip()
        failed = "".join(f"\n  - {violation}" for violation in self.violations)
        return f"Not guaranteed:{failed}\nWhat to expect: {self.expect}"


def guarantee(
    process: GenerativeProcess, model: ContrastiveModel, *, tau: float | None = 1.0
) -> Guarantee:
    """Up to what the model recovers the factors of the process, and by which theorem.

    All theorems assume in addition that the mixing is injective and smooth, the encoder flexible
    enough to reach the minimum of the loss, and the negatives many (M → ∞).

    Args:
        process: the true process, or what is believed about it.
        model: the model to be trained on its pairs.
        tau: temperature of the loss; None if it is learnt.

    >>> from identica import InvertibleMLP, MLP
    >>> g = InvertibleMLP(10, seed=0, draws=10)
    >>> process = GenerativeProcess(Sphere(10), Uniform(), VonMisesFisher(10.0), g)
    >>> guarantee(process, ContrastiveModel(Sphere(10), VonMisesFisher(10.0), MLP(10, 10))).up_to
    'orthogonal'
    >>> print(guarantee(process, ContrastiveModel(Sphere(10), VonMisesFisher(1.0), MLP(10, 10))))
    Not guaranteed:
      - the conditional has concentration κ = 10, but the model implies κ = 1 (κ·radius²/τ); ...
    """
    instance("process", process, GenerativeProcess, "a GenerativeProcess")
    instance("model", model, ContrastiveModel, "a ContrastiveModel")
    tau = None if tau is None else positive("tau", tau)
    truth, assumed = process.conditional, model.conditional
    free = tau is None or model.head.learnable
    violations = [
        *_space_violations(process.space, model),
        *_marginal_violations(process),
        *_conditional_violations(process, model, math.inf if tau is None else tau, free),
    ]
    if violations:
        return Guarantee(None, None, tuple(violations), _expectation(process, model))
    if isinstance(truth, VonMisesFisher):
        return Guarantee("orthogonal", SPHERE, (), "")
    assert assumed.p is not None
    if assumed.p >= 1 and assumed.p != 2:
        return Guarantee("permutation", PERMUTATION, (), "")
    return Guarantee(
        "affine",
        AFFINE,
        (),
        "An affine map of a box onto a box can only permute, flip and stretch the axes, so the "
        "factors are usually recovered one by one all the same.",
    )


def _space_violations(truth: Space, model: ContrastiveModel) -> Iterable[str]:
    space = model.space
    if space.dim != truth.dim:
        yield f"there are {truth.dim} factors, but the model has {space.dim} codes"
    if not math.isfinite(truth.log_volume):
        yield f"the factors live in {truth}, which is not bounded"
    elif isinstance(model.head, EuclideanHead):
        yield f"the factors live in {truth}, but the codes are unbounded"
    elif type(space) is not type(truth):
        yield f"the factors live in {truth}, but the codes live in {space}"
    if not isinstance(truth, (Sphere, Box)) and math.isfinite(truth.log_volume):
        yield f"the theorems cover a sphere or a box, not {truth}"


def _marginal_violations(process: GenerativeProcess) -> Iterable[str]:
    if not isinstance(process.marginal, Uniform):
        yield f"the marginal is {process.marginal}, not uniform"


def _conditional_violations(
    process: GenerativeProcess, model: ContrastiveModel, tau: float, free: bool
) -> Iterable[str]:
    truth, assumed = process.conditional, model.conditional
    if isinstance(truth, VonMisesFisher) and isinstance(assumed, VonMisesFisher):
        radius = getattr(model.space, "radius", 1.0)
        implied = assumed.kappa * radius**2 / tau
        if not free and not math.isclose(implied, truth.kappa, rel_tol=1e-6):
            yield (
                f"the conditional has concentration κ = {truth.kappa:g}, but the model implies "
                f"κ = {implied:g} (κ·radius²/τ); learn the radius or set τ accordingly"
            )
    elif isinstance(truth, Coordinatewise) and isinstance(assumed, Coordinatewise):
        if isinstance(process.space, Sphere):
            yield f"on the sphere the conditional must be von Mises–Fisher, not {truth}"
        elif truth.p != assumed.p:
            yield f"the conditional has exponent {truth.p:g}, but the model assumes {assumed.p:g}"
        elif truth.p is not None and truth.p < 1:
            yield f"the conditional has exponent {truth.p:g} < 1, which is not from a norm"
        elif isinstance(process.space, Box) and isinstance(model.space, Box) and not free:
            yield from _scale_violations(process.space, model.space, truth, assumed, tau)
    else:
        yield f"the conditional is {truth}, but the model assumes {assumed}"


def _scale_violations(
    space: Box, codes: Box, truth: Coordinatewise, assumed: Coordinatewise, tau: float
) -> Iterable[str]:
    """With fixed bounds a code spans its side as the factor spans its own: scales must agree too."""
    low, high = space.bounds()
    code_low, code_high = codes.bounds()
    sides, code_sides = (high - low).sort().values, (code_high - code_low).sort().values
    needed = truth.width / sides
    implied = assumed.width * tau ** (1 / assumed.p) / code_sides
    if len(sides) == len(code_sides) and not torch.allclose(needed, implied, rtol=1e-3):
        yield (
            f"the conditional's scale is {float(needed[0]):.3g} of a side of {space}, but the model "
            f"implies {float(implied[0]):.3g} of a side of {codes}; learn the bounds or set τ"
        )


def _expectation(process: GenerativeProcess, model: ContrastiveModel) -> str:
    """Words for a violated row, after the experiments of the paper (tables 1 and 2)."""
    if model.space.dim < process.space.dim:
        return "too few codes to hold all factors; some will be lost or merged."
    spheres = isinstance(process.space, Sphere), isinstance(model.space, Sphere)
    if spheres[0] != spheres[1]:
        return (
            "the geometry of the codes differs from that of the factors, so the map must bend: "
            "expect a clearly lower R² and no factor by itself."
        )
    if spheres[0]:
        return (
            "in practice still a nearly linear map of the factors (R² about 0.99) if positives are "
            "close and the marginal covers the sphere; never more than up to a rotation."
        )
    bounded = isinstance(model.space, Box) and isinstance(process.space, Box)
    rotation_free = _same_under_rotation(model.conditional, process.conditional)
    if bounded:
        return (
            "in practice each factor by itself (MCC about 0.98 or more), because an affine map of "
            "a box onto a box can only permute, flip and stretch the axes."
        )
    if rotation_free or model.conditional.p != process.conditional.p:
        return (
            "in practice a nearly affine map (R² about 0.98 or more), but nothing fixes the axes: "
            "codes mix the factors like a random rotation (MCC about 0.6 for 10 factors), so do not "
            "interpret single codes."
        )
    return (
        "in practice each factor by itself (MCC about 0.98 or more), since the model's exponent "
        "agrees with the conditional's and singles out the axes."
    )


def _same_under_rotation(*families: Family) -> bool:
    return any(family.p == 2 for family in families)


# --- Theorem 1: the limit of many negatives ---------------------------------------------------------


def vmf_cross_entropy(
    dim: int, kappa: float, kappa_model: float | None = None, *, radius: float = 1.0
) -> float:
    """E H(p(·|z), q(·|z)) of von Mises–Fisher conditionals with concentrations κ and κ_model on S^{n−1}.

        H = log|Z| + log E e^{κ_model cos} − κ_model·A_n(κ)

    with A_n the mean cosine. For equal concentrations this is the entropy of p(·|z), the value
    that L − log M + log|Z| approaches at the best encoder (Theorem 1).

    >>> limit = vmf_cross_entropy(10, 10.0) - Sphere(10).log_volume + math.log(6144)
    >>> round(limit, 4)
    6.2388
    """
    count("dim", dim, at_least=2)
    nonnegative("kappa", kappa)
    model = kappa if kappa_model is None else nonnegative("kappa_model", kappa_model)
    volume = Sphere(dim, radius).log_volume
    return volume + log_mean_exp_gap(dim, model) + model * _mean_gap(dim, kappa)


def _mean_gap(dim: int, kappa: float) -> float:
    """E[1 − cos∠(z, μ)] = 1 − A_n(κ), which keeps its digits however large κ is."""
    if kappa <= 100 * dim:
        return 1 - mean_cosine(dim, kappa)
    # A' = 1 − A² − (n − 1) A/κ (Mardia & Jupp, 2000) gives the coefficients of A = Σ_k a_k κ^−k
    a = [1.0]
    for k in range(1, 12):
        products = sum(a[i] * a[k - i] for i in range(1, k))
        a.append(((k - dim) * a[k - 1] - products) / 2)
    total = 0.0
    for coefficient in reversed(a[1:]):
        total = (total + coefficient) / kappa
    return -total


# --- what a fitted h = f∘g looks like ---------------------------------------------------------------


def isometry(z: Any, h: Any, *, random_state: int = 0) -> float:
    """How far a fitted map is from preserving distances: the relative spread of ‖h−h'‖/‖z−z'‖.

    The root mean square deviation of that ratio from its best constant, over random pairs, divided
    by the constant: 0 for a rotation with a scale, and growing with every stretch or bend.

    Args:
        z: true factors, N×n.
        h: codes, N×k.

    >>> z = np.random.default_rng(0).normal(size=(100, 3))
    >>> isometry(z, -2 * z) < 1e-12, isometry(z, z * [1, 1, 3]) > 0.2
    (True, True)
    """
    z, h = as_matrix("z", z), as_matrix("h", h)
    same_rows(z=z, h=h)
    z, h = unit_size(z)[0], unit_size(h)[0]
    i, j = np.random.default_rng(random_state).integers(len(z), size=(2, PAIRS))
    true, coded = np.linalg.norm(z[i] - z[j], axis=1), np.linalg.norm(h[i] - h[j], axis=1)
    apart = true > 1e-9 * true.max()
    if not apart.any():
        raise InputError("z must vary: all its rows are equal")
    ratio = coded[apart] / true[apart]
    mean = ratio.mean()
    return float(ratio.std() / mean) if mean > 0 else math.inf


def distance_from_uniform(h: Any, space: Space, *, random_state: int = 0) -> float:
    """How far codes are from uniform on the space: the energy distance, relative to its size.

        D² = 2E‖h − u‖ − E‖h − h'‖ − E‖u − u'‖,  u uniform;  the result is D²/2E‖h − u‖

    which is 0 for a uniform pushforward (up to sampling error, about 1/N) and at most 1
    (Székely & Rizzo, "Energy statistics", 2013).

    >>> distance_from_uniform(Box(2).sample(1000, generator=0), Box(2)) < 0.01
    True
    """
    from scipy.spatial.distance import cdist

    codes = as_matrix("h", h)[:5000]
    if codes.shape[1] != space.dim:
        raise InputError(f"h must have {space.dim} columns for {space}, got {codes.shape[1]}")
    uniform = space.sample(len(codes), generator=random_state, dtype=torch.float64).numpy()
    unbiased = len(codes) / (len(codes) - 1)  # the mean over different points
    across = cdist(codes, uniform).mean()
    within = (cdist(codes, codes).mean() + cdist(uniform, uniform).mean()) * unbiased
    return float(max(0.0, (2 * across - within) / (2 * across)))


__all__ = [
    "Guarantee",
    "distance_from_uniform",
    "guarantee",
    "isometry",
    "vmf_cross_entropy",
]
