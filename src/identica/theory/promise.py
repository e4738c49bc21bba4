"""The guarantee: up to which map the factors are recovered, or which assumption fails."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from identica import _html
from identica._validate import flag, instance, members, positive
from identica.encoders import ContrastiveModel
from identica.errors import InputError
from identica.families import Coordinatewise, Family, Joint, Uniform
from identica.process import GenerativeProcess
from identica.spaces import Box, Euclidean, Sphere
from identica.theory.theorems import (
    AFFINE,
    ARGUMENTS,
    Assumed,
    Believed,
    Promise,
    any_marginal,
    exponent,
    paper,
)

MEANING = {  # from the weakest to the strongest
    "affine": "all factors are recovered up to an affine map (a mixture of the factors)",
    "orthogonal": "all factors are recovered up to a rotation or reflection and a common scale",
    "blocks": "factors are recovered up to rotations among those that change by the same amount",
    "permutation": "each factor is recovered individually, up to order, sign and scale",
}
_ORDER = list(MEANING)


@dataclass(frozen=True)
class Change:
    """A change of the model that would give a stronger guarantee.

    Attributes:
        what: description of the change, such as "add a potential".
        up_to, theorem: as in `Guarantee`.
    """

    what: tuple[str, ...]
    up_to: str
    theorem: str

    def __str__(self) -> str:
        return f"{' and '.join(self.what)}: {self.up_to} ({self.theorem.partition(' (')[0]})"


@dataclass(frozen=True)
class Guarantee:
    """The result of `guarantee`.
    Attributes:
        up_to: "affine", "orthogonal", "blocks" or "permutation"; None if nothing is guaranteed.
        theorem: the theorem behind it, or None.
        violations: the violated assumptions, one sentence each.
        expect: what to expect in practice.
        changes: the smallest changes of the model that would give stronger guarantees.
    """

    up_to: str | None
    theorem: str | None
    violations: tuple[str, ...]
    expect: str
    changes: tuple[Change, ...] = ()

    def __bool__(self) -> bool:
        return self.up_to is not None

    def __str__(self) -> str:
        if self.up_to is not None:
            text = f"Guaranteed by {self.theorem}: {MEANING[self.up_to]}. {self.expect}".strip()
        else:
            failed = "".join(f"\n  - {violation}" for violation in self.violations)
            text = f"Not guaranteed:{failed}\nWhat to expect: {self.expect}"
        more = "".join(f"\n  - {change}" for change in self.changes)
        return text + (f"\nFor a stronger guarantee:{more}" if more else "")

    def _repr_html_(self) -> str:
        title = "Not guaranteed" if self.up_to is None else f"Guaranteed: {self.up_to}"
        said = self.violations if self.up_to is None else (f"{MEANING[self.up_to]}.",)
        more = "For a stronger guarantee:", _html.items(self.changes)
        return _html.card(
            title,
            _html.tag("div", self.theorem or ""),
            _html.items(said),
            _html.tag("div", _html.tag("em", self.expect)),
            _html.tag("div", *more) if self.changes else _html.Markup(),
            colour=_html.GOOD if self else _html.WARN,
        )


def guarantee(
    process: GenerativeProcess,
    model: ContrastiveModel,
    *,
    tau: float | None = 1.0,
    learn_precision: bool = False,
    precisions: Sequence[float] | None = None,
) -> Guarantee:
    """Up to what the model recovers the factors of the process, and by which theorem.

    All theorems assume in addition that the mixing is injective and smooth, the encoder (and the
    potential) flexible enough to reach the minimum of the loss, and the number of negatives large (M → ∞).
    Propositions are ours and proved in docs/marginals.md. If several theorems apply, the strongest one
    is returned, with changes of the model that would give a stronger one.

    Args:
        process: the true process, or an assumption about it.
        model: the model to be trained on its pairs.
        tau: temperature of the loss; None if it is learnt.
        learn_precision: whether the loss learns a precision for each code.
        precisions: of the factors relative to each other, if they change by different amounts: the
            conditional is then ∝ e^{−Σ_k λ_k (z_k − z̃_k)²}, on a sphere.

    >>> from identica import InvertibleMLP, MLP, Sphere, Uniform, VonMisesFisher
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
    uneven = _check_precisions(process, precisions)
    truth = Believed(process.space, process.marginal, process.conditional, uneven)
    assumed = Assumed.of(model, tau, flag("learn_precision", learn_precision))
    best = strongest(truth, assumed)
    changes = tuple(_changes(truth, assumed, best))
    if best is not None:
        return Guarantee(best.up_to, best.theorem, (), best.expect, changes)
    violations, _ = (any_marginal if assumed.potential else paper)(truth, assumed)
    return Guarantee(None, None, tuple(violations), _expectation(process, model), changes)


def _check_precisions(
    process: GenerativeProcess, precisions: Sequence[float] | None
) -> tuple[float, ...] | None:
    if precisions is None:
        return None
    values = tuple(positive("precisions", x) for x in members("precisions", precisions, "a list"))
    if len(values) != process.space.dim or not isinstance(process.space, Sphere):
        raise InputError(
            f"precisions must be {process.space.dim} numbers for factors on a sphere, got "
            f"{len(values)} on {process.space}"
        )
    return values


def strongest(truth: Believed, assumed: Assumed) -> Promise | None:
    """The strongest conclusion of all theorems that apply; of equals, the first."""
    promises = [promise for argue in ARGUMENTS if (promise := argue(truth, assumed)[1]) is not None]
    return max(promises, key=_rank, default=None)


def _rank(promise: Promise | None) -> int:
    """The strength of a conclusion. An affine map onto a box ranks like a rotation, as walls fix the axes."""
    if promise is None:
        return -1
    return _ORDER.index("orthogonal" if promise.theorem == AFFINE else promise.up_to)


# --- changes of the model ---------------------------------------------------------------------------


def _changes(truth: Believed, assumed: Assumed, best: Promise | None) -> Iterator[Change]:
    """The fewest changes that give each stronger conclusion; of two for the same changes, the stronger."""
    steps = dict(_steps(truth, assumed))
    rank = _rank(best)
    for number in range(1, len(steps) + 1):
        earned = []
        for names in combinations(steps, number):
            options = {key: value for name in names for key, value in steps[name].items()}
            changed = replace(assumed, **options)
            possible = changed.conditional.supports(changed.space)
            promise = strongest(truth, changed) if possible else None
            if promise is not None and _rank(promise) > rank:
                earned.append((names, promise))
        if earned:
            rank = max(_rank(promise) for _, promise in earned)
            best_of_them = [(names, p) for names, p in earned if _rank(p) == rank][:2]
            yield from (Change(names, p.up_to, p.theorem) for names, p in best_of_them)


def _steps(truth: Believed, assumed: Assumed) -> Iterator[tuple[str, dict[str, Any]]]:
    """Possible changes of a model, by description."""
    if not assumed.free and not assumed.unbounded:
        size = {Sphere: "radius", Box: "bounds"}.get(type(assumed.space), "size of the codes")
        yield f"learn the {size}", {"free": True}
    if not assumed.potential:
        yield "add a potential", {"potential": True}
    if not assumed.precisions and truth.uneven:
        yield "learn a precision for each code", {"precisions": True}
    family = truth.conditional
    if type(family) is not type(assumed.conditional) or _other(family, assumed.conditional):
        yield f"assume {family}", {"conditional": family}
    space = truth.space
    if type(space) is not type(assumed.space) or space.dim != assumed.space.dim:
        flat = isinstance(space, Euclidean)
        size = "" if flat else ", of learnt size"
        moved: dict[str, Any] = {
            "space": space,
            "unbounded": flat,
            "free": assumed.free or not flat,
        }
        yield f"put the codes into {space}{size}", moved
    if not assumed.unbounded and not isinstance(space, Euclidean):
        yield "leave the codes unbounded", {"space": Euclidean(space.dim), "unbounded": True}


def _other(family: Family, assumed: Family) -> bool:
    """Whether two families of a kind have different forms."""
    if isinstance(family, Joint):
        return family != assumed
    return isinstance(family, Coordinatewise) and family.p != assumed.p


# --- in practice ------------------------------------------------------------------------------------


def _expectation(process: GenerativeProcess, model: ContrastiveModel) -> str:
    """The expected outcome if an assumption is violated, from the experiments of the paper (tables 1, 2)."""
    if model.space.dim < process.space.dim:
        return "too few codes to hold all factors; some will be lost or merged."
    spheres = isinstance(process.space, Sphere), isinstance(model.space, Sphere)
    if spheres[0] != spheres[1]:
        return (
            "the geometry of the codes differs from that of the factors, so the map must bend: "
            "expect a clearly lower R² and no single factor."
        )
    if spheres[0]:
        return (
            "in practice still a nearly linear map of the factors (R² about 0.99) if positives are "
            "close and the marginal covers the sphere; never more than up to a rotation."
        )
    bounded = isinstance(model.space, Box) and isinstance(process.space, Box)
    exponents = exponent(model.conditional), exponent(process.conditional)
    if bounded:
        return (
            "in practice each factor individually (MCC about 0.98 or more), because an affine map of "
            "a box onto a box can only permute, flip and stretch the axes."
        )
    if not isinstance(process.marginal, Uniform) and model.potential is None:
        return (
            "the marginal bends the map: R² from 0.9, if positives are as far apart as the factors "
            "themselves, to 0.99, if they are close."
        )
    if 2 in exponents or exponents[0] != exponents[1]:
        return (
            "in practice a nearly affine map (R² about 0.98 or more), but nothing fixes the axes: "
            "codes mix the factors like a random rotation (MCC about 0.6 for 10 factors), so do not "
            "interpret single codes."
        )
    return (
        "in practice each factor individually (MCC about 0.98 or more), since the model's exponent "
        "agrees with the conditional's and singles out the axes."
    )
