"""The theorems: their assumptions about a process and a model, and their conclusions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch

from identica.encoders import ContrastiveModel
from identica.families import Coordinatewise, Family, Joint, Uniform, VonMisesFisher
from identica.heads import EuclideanHead
from identica.spaces import Box, Euclidean, Product, Space, Sphere

SPHERE = "Theorem 2 (sphere, uniform marginal, von Mises–Fisher conditional)"
AFFINE = "Theorem 5 (convex body, uniform marginal, conditional from a norm)"
PERMUTATION = "Theorem 6 (convex body, uniform marginal, L^α conditional with α ≥ 1, α ≠ 2)"
BLOCKS = "AnInfoNCE (Rusak et al., 2024: sphere, uniform marginal, learnt precisions)"
RIGID = "Proposition A (ours: potential, any marginal of full support, squared distance)"
AXES = "Proposition B (ours: potential, any marginal of full support, L^α with α ≥ 1, α ≠ 2)"

BOX_ONTO_BOX = (
    "An affine map of a box onto a box can only permute, flip and stretch the axes, so the "
    "factors are usually recovered one by one all the same."
)


@dataclass(frozen=True)
class Assumed:
    """The assumptions of a model, as far as the theorems need them.

    Attributes:
        space, conditional: of the model.
        unbounded: whether its codes fill R^n.
        free: whether the size of the codes, or the temperature, is learnt.
        tau: the temperature.
        potential: whether a learnt potential absorbs the marginal.
        precisions: whether a precision is learnt for each code.
    """

    space: Space
    conditional: Family
    unbounded: bool
    free: bool
    tau: float
    potential: bool
    precisions: bool

    @classmethod
    def of(cls, model: ContrastiveModel, tau: float | None, precisions: bool) -> Assumed:
        """The assumptions of a model and its loss."""
        return cls(
            model.space,
            model.conditional,
            isinstance(model.head, EuclideanHead),
            tau is None or model.head.learnable,
            math.inf if tau is None else tau,
            model.potential is not None,
            precisions,
        )


@dataclass(frozen=True)
class Believed:
    """The assumed process, as far as the theorems need it; `precisions` are those of the factors relative
    to each other, if they differ."""

    space: Space
    marginal: Family
    conditional: Family
    precisions: tuple[float, ...] | None = None

    @property
    def uneven(self) -> bool:
        """Whether factors change by different amounts."""
        return self.precisions is not None and len(set(self.precisions)) > 1


@dataclass(frozen=True)
class Promise:
    """The conclusion of a theorem: up to which map the factors are recovered, and a remark."""

    up_to: str
    theorem: str
    expect: str = ""


# --- the paper's theorems ---------------------------------------------------------------------------


def paper(truth: Believed, model: Assumed) -> tuple[list[str], Promise | None]:
    """Theorems 2, 5 and 6: uniform marginal, codes in the space of the factors."""
    if model.potential:  # codes need not fill their space
        return ["the loss has a potential"], None
    if model.precisions and isinstance(truth.space, Sphere):
        return ["the loss has a precision for each code"], None
    violations = [
        *_space(truth.space, model),
        *_uniform(truth),
        *_even(truth),
        *_conditional(truth, model),
    ]
    if violations:
        return violations, None
    if isinstance(truth.conditional, VonMisesFisher):
        return [], Promise("orthogonal", SPHERE)
    assert model.conditional.p is not None
    if model.conditional.p != 2:
        return [], Promise("permutation", PERMUTATION)
    return [], Promise("affine", AFFINE, BOX_ONTO_BOX)


def _space(truth: Space, model: Assumed) -> Iterable[str]:
    space = model.space
    yield from _number(truth, space)
    if not math.isfinite(truth.log_volume):
        yield f"the factors live in {truth}, which is not bounded"
    elif model.unbounded:
        yield f"the factors live in {truth}, but the codes are unbounded"
    elif type(space) is not type(truth):
        yield f"the factors live in {truth}, but the codes live in {space}"
    if not isinstance(truth, (Sphere, Box)) and math.isfinite(truth.log_volume):
        yield f"the theorems cover a sphere or a box, not {truth}"


def _number(truth: Space, codes: Space) -> Iterable[str]:
    if codes.dim != truth.dim:
        yield f"there are {truth.dim} factors, but the model has {codes.dim} codes"


def _uniform(truth: Believed) -> Iterable[str]:
    if not isinstance(truth.marginal, Uniform):
        yield f"the marginal is {truth.marginal}, not uniform"


def _even(truth: Believed) -> Iterable[str]:
    if truth.uneven:
        yield "factors change by different amounts, but the model has one precision for all"


def _conditional(truth: Believed, model: Assumed) -> Iterable[str]:
    true, assumed = truth.conditional, model.conditional
    if isinstance(true, VonMisesFisher) and concentration(model) is not None:
        yield from _concentration(true, model)
    elif isinstance(true, Coordinatewise) and isinstance(assumed, Coordinatewise):
        if isinstance(truth.space, Sphere):
            yield f"on the sphere the conditional must be von Mises–Fisher, not {true}"
        elif true.p != assumed.p:
            yield f"the conditional has exponent {true.p:g}, but the model assumes {assumed.p:g}"
        elif true.p < 1:
            yield f"the conditional has exponent {true.p:g} < 1, which is not from a norm"
        elif (widths := _fixed_widths(truth, model)) and not torch.allclose(*widths, rtol=1e-3):
            needed, implied = (float(width[0]) for width in widths)
            yield (
                f"the conditional's scale is {needed:.3g} of a side of {truth.space}, but the model "
                f"implies {implied:.3g} of a side of {model.space}; learn the bounds or set τ"
            )
    else:
        yield f"the conditional is {true}, but the model assumes {assumed}"


def concentration(model: Assumed) -> float | None:
    """The concentration that codes on a sphere imply; None if they imply none.

    −λ‖a − b‖² is 2λ⟨a, b⟩ there, up to a constant.
    """
    if not isinstance(model.space, Sphere):
        return None
    assumed, factor = model.conditional, model.space.radius**2 / model.tau
    if isinstance(assumed, VonMisesFisher):
        return assumed.kappa * factor
    return 2 * assumed.precision * factor if exponent(assumed) == 2 else None


def _concentration(truth: VonMisesFisher, model: Assumed) -> Iterable[str]:
    implied = concentration(model)
    if implied is None or model.free or model.precisions:
        return
    if not math.isclose(implied, truth.kappa, rel_tol=1e-6):
        yield (
            f"the conditional has concentration κ = {truth.kappa:g}, but the model implies "
            f"κ = {implied:g} (κ·radius²/τ); learn the radius or set τ accordingly"
        )


def _fixed_widths(truth: Believed, model: Assumed) -> tuple[torch.Tensor, torch.Tensor] | None:
    """Widths of the conditional and of the model as parts of the sides, from the shortest side on.

    With fixed bounds a code spans its side as the factor spans its own, so that they can be compared; None
    if the bounds are learnt, or if these are not boxes with as many sides.
    """
    space, codes, true, assumed = truth.space, model.space, truth.conditional, model.conditional
    if model.free or model.precisions or space.dim != codes.dim:
        return None
    if not (isinstance(space, Box) and isinstance(codes, Box)):
        return None
    assert isinstance(true, Coordinatewise)
    assert isinstance(assumed, Coordinatewise)
    sides, code_sides = (
        (high - low).sort().values for low, high in (space.bounds(), codes.bounds())
    )
    return true.width / sides, assumed.width * model.tau ** (1 / assumed.p) / code_sides


# --- learnt precisions ------------------------------------------------------------------------------


def precisions(truth: Believed, model: Assumed) -> tuple[list[str], Promise | None]:
    """AnInfoNCE: a sphere, a uniform marginal, and a precision that is learnt for each code."""
    violations = [*_space(truth.space, model), *_uniform(truth), *_conditional(truth, model)]
    if not model.precisions:
        violations.append("the model has one precision for all codes")
    if not isinstance(truth.space, Sphere):
        violations.append(f"learnt precisions are covered on a sphere, not on {truth.space}")
    if violations:
        return violations, None
    return [], Promise(_blocks(truth), BLOCKS)


def _blocks(truth: Believed) -> str:
    """What rotations that preserve the precisions leave open."""
    if truth.precisions is None or not truth.uneven:
        return "orthogonal"
    return "permutation" if len(set(truth.precisions)) == len(truth.precisions) else "blocks"


# --- any marginal -----------------------------------------------------------------------------------


def any_marginal(truth: Believed, model: Assumed) -> tuple[list[str], Promise | None]:
    """Ours: with a potential, distances of codes are those of the factors, whatever the marginal."""
    violations = [] if model.potential else ["the model has no potential"]
    violations += _number(truth.space, model.space)
    true, assumed = exponent(truth.conditional), exponent(model.conditional)
    projected = [
        f
        for s, f in _parts(truth.space, truth.conditional)
        if isinstance(s, Sphere) and not isinstance(f, VonMisesFisher)
    ]
    if projected:
        violations.append(
            f"on the sphere the conditional must be von Mises–Fisher, not {projected[0]}"
        )
    elif true is None:
        violations.append(f"{truth.conditional} has no common exponent")
    elif assumed is None or true != assumed:
        violations.append(
            f"the conditional is {truth.conditional}, but the model assumes {model.conditional}"
        )
    elif true < 1:
        violations.append(f"the conditional has exponent {true:g} < 1, which is not from a norm")
    else:
        violations += _room(truth, model)
    if violations:
        return violations, None
    if true != 2:
        return [], Promise("permutation", AXES)
    if isinstance(truth.conditional, Joint) or isinstance(model.conditional, Joint):
        return [], Promise("affine", RIGID)  # parts have scales of their own
    if not _unbounded(model) and isinstance(truth.space, Sphere):
        return [], Promise(_blocks(truth), RIGID)
    return [], Promise("affine" if truth.uneven or model.precisions else "orthogonal", RIGID)


def _parts(space: Space, family: Family) -> list[tuple[Space, Family]]:
    if isinstance(space, Product) and isinstance(family, Joint):
        return [(s, f) for s, (f, _) in zip(space.spaces, family.parts, strict=True)]
    return [(space, family)]


def exponent(family: Family) -> float | None:
    """The exponent of the distance behind a conditional; 2 on the sphere. None if parts differ."""
    if isinstance(family, Joint):
        exponents = {exponent(part) for part, _ in family.parts}
        return exponents.pop() if len(exponents) == 1 else None
    if isinstance(family, VonMisesFisher):
        return 2.0
    return family.p if isinstance(family, Coordinatewise) else None


def _room(truth: Believed, model: Assumed) -> Iterable[str]:
    """Whether the codes have room for the factors at the scale that the conditional asks for."""
    if _unbounded(model):
        return
    space, codes = truth.space, model.space
    if not model.precisions:
        yield from _even(truth)
    if type(space) is not type(codes):
        yield f"the factors live in {space}, but the codes live in {codes}"
    elif isinstance(truth.conditional, VonMisesFisher):
        yield from _concentration(truth.conditional, model)
    elif isinstance(space, Product) and not model.free:
        yield f"the size of the codes in {codes} is fixed; learn it"
    elif (widths := _fixed_widths(truth, model)) and bool((widths[1] > widths[0] * 1.001).any()):
        yield (
            f"at the scale of the conditional the factors do not fit into {codes}; learn the bounds "
            "or set τ"
        )


def _unbounded(model: Assumed) -> bool:
    return model.unbounded or isinstance(model.space, Euclidean)


ARGUMENTS: tuple[Callable[[Believed, Assumed], tuple[list[str], Promise | None]], ...] = (
    paper,
    precisions,
    any_marginal,
)
