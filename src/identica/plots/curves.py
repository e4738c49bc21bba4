"""Learning curves, and the held-out evidence behind the selection by "auto"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from identica._validate import as_floats, finite, instance, kind_of, members, one_of
from identica.errors import InputError
from identica.plots.style import (
    BLUE,
    COLOURS,
    DASHES,
    GREY,
    ORANGE,
    ink,
    legend,
    one_axes,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LOSS = "loss in training"
SCORES = {  # between 0 and 1, as tables and axes print them
    "r2": "R²",
    "mcc": "MCC",
    "beta_vae": "BetaVAE",
    "factor_vae": "FactorVAE",
    "mig": "MIG",
    "dci": "DCI",
    "modularity": "Modularity",
    "sap": "SAP",
}
NAMES = {"bits": "held-out bits per pair", "loss": LOSS, **SCORES}
CHOICES = {
    "n_components": "number of codes",
    "window": "window, in rows",
    "lag": "lag, in rows",
}
TICKS = (0, 0.5, 0.9, 0.95, 0.99, 0.995, 0.999, 0.9995, 0.9999)
FINEST = 2e-5  # distance from 1 that can still be seen


def history(
    source: Any,
    score: str = "bits",
    *,
    on: str = "held-out pairs",
    published: float | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Plot a score during training; for "bits", held-out evidence with the training loss.

    Overfitting shows as evidence that falls while the loss keeps decreasing. The dot marks the best evidence,
    whose weights are kept. The axis of scores from 0 to 1, such as "r2" and "mcc", is stretched near 1.

    Args:
        source: a fitted `ContrastiveICA`, the result of `train`, its records (dictionaries with "step" and
            scores), or a dictionary of several of these by name.
        score: the score to plot; "loss" for the loss alone.
        on: the data that scores other than "bits" and "loss" are measured on, for the label.
        published: a published figure, for comparison.
        ax: Axes to draw into; a new figure by default.

    >>> ax = history([{"step": 1, "loss": 3.0, "bits": 0.1}, {"step": 2, "loss": 2.0, "bits": 0.5}])
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('step', 'held-out bits per pair')
    """
    instance("score", score, str, "the name of a score")
    instance("on", on, str, "text")
    runs = _runs(source)
    drawn = {name: _columns(records, "step", score) for name, records in runs.items()}
    published = None if published is None else finite("published", published)
    ax = one_axes(ax)
    share = score not in ("bits", "loss")
    for number, (name, (steps, values)) in enumerate(drawn.items()):
        if share:  # every colour once before the dashes change
            round_, number = divmod(number, len(COLOURS))
            colour, dashes = COLOURS[number], DASHES[round_ % len(DASHES)]
        else:
            colour, dashes = (ORANGE if score == "bits" else BLUE), DASHES[number % len(DASHES)]
        ax.plot(steps, values, color=colour, ls=dashes, marker="." if share else None, label=name)
        if score == "bits" and len(values):
            best = values.argmax()
            ax.plot(steps[best], values[best], "o", ms=5, color=ink(), zorder=3)
    if published is not None:
        ax.axhline(published, color=GREY, ls="--", lw=1, label=f"published ({published:.4g})")
    ax.set(xlabel="step", ylabel=NAMES.get(score, score) + (f" on {on}" if share else ""))
    if share:
        _expand_near_one(ax, [values for _, values in drawn.values()])
    right = 1.0
    if score == "bits":
        ax.axhline(0, color=GREY, lw=0.8, zorder=0)
        if any("loss" in record for records in runs.values() for record in records):
            _loss_beside(ax, runs)
            right = 1.18
    if len(runs) > 1 or published is not None:
        legend(ax, right)
    return ax


def _loss_beside(ax: Axes, runs: Mapping[str, Sequence[Mapping[str, float]]]) -> None:
    """The loss on an axis of its own, to the right and behind."""
    right = ax.twinx()
    for number, records in enumerate(runs.values()):
        steps, loss = _columns([r for r in records if "loss" in r], "step", "loss")
        right.plot(steps, loss, color=BLUE, ls=DASHES[number % len(DASHES)], lw=1, label=LOSS)
    right.set_ylabel(LOSS, color=BLUE)
    right.spines[["top", "left"]].set_visible(False)
    right.spines["right"].set_visible(True)
    right.tick_params(axis="y", colors=BLUE)
    ax.yaxis.label.set_color(ORANGE)
    ax.tick_params(axis="y", colors=ORANGE)
    ax.set_zorder(right.get_zorder() + 1)  # evidence in front of the loss
    ax.patch.set_visible(False)


def _expand_near_one(ax: Axes, scores: Sequence[NDArray[np.float64]]) -> None:
    def spread(value: Any) -> Any:
        return -np.log10(np.maximum(1 - np.asarray(value), 1e-9))

    def gather(place: Any) -> Any:
        return 1 - 10 ** -np.asarray(place)

    highest = max((float(values.max()) for values in scores if len(values)), default=0.9)
    top = 1 - max((1 - highest) / 2, FINEST)
    ax.set_yscale("function", functions=(spread, gather))
    ax.set_ylim(0, top)
    ticks = [tick for tick in TICKS if tick <= max(top, 0.5)]
    ax.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.minorticks_off()


def _runs(source: Any) -> dict[str, Sequence[Mapping[str, float]]]:
    if isinstance(source, Mapping):
        if not source:
            raise InputError("source must name at least one history")
        return {str(name): _records(each) for name, each in source.items()}
    return {"": _records(source)}


def _records(source: Any) -> Sequence[Mapping[str, float]]:
    for attribute in ("history_", "records"):
        source = getattr(source, attribute, source)
    what = "a fitted ContrastiveICA, a history of training, or its records"
    records = members("source", source, what)
    if isinstance(source, (str, bytes)) or not all(isinstance(r, Mapping) for r in records):
        raise InputError(f"source must be {what}, got {kind_of(source)}")
    return records


def _columns(records: Sequence[Mapping[str, float]], *names: str) -> list[NDArray[np.float64]]:
    for name in names:
        if known := next((sorted(record) for record in records if name not in record), None):
            raise InputError(f"score must be one of {', '.join(known)}; got {name!r}")
    return [as_floats("source", [record[name] for record in records]) for name in names]


# --- selection by "auto" ------------------------------------------------------------------------------


def evidence(source: Any, choice: str | None = None, *, ax: Axes | None = None) -> Axes:
    """Plot the held-out evidence behind a selection by "auto", with the selected value marked.

    Numbers of codes, windows and lags are shown as a curve; the fewest codes, the shortest lag and the widest
    window with nearly the best evidence are selected. Spaces and families are shown as bars, best first.

    Args:
        source: a fitted `ContrastiveICA`, its `selection_`, or bits by value, as in its `evidence_`.
            Bits of different choices come from different models and pairs and cannot be compared.
        choice: "n_components", "window", "lag" or "selection", if the estimator selected several.
        ax: Axes to draw into; a new figure by default.

    >>> ax = evidence({1: 0.8, 2: 1.9, 3: 1.9})
    >>> ax.get_lines()[0].get_ydata().tolist()
    [0.8, 1.9, 1.9]
    """
    chosen: Any = None
    if hasattr(source, "evidence_"):
        known: dict[str, Any] = dict(source.evidence_)
        if hasattr(source, "selection_"):
            known["selection"] = source.selection_
        if not known:
            raise InputError('source must have selected something: nothing was "auto" in its fit')
        if choice is None and len(known) > 1:
            raise InputError(
                f"choice must be one of {', '.join(known)}, as the fit selected all of them"
            )
        choice = next(iter(known)) if choice is None else one_of("choice", choice, known)
        chosen = {
            "n_components": source.model_.space.dim,
            "window": source.window_,
            "lag": source.lag_,
        }.get(choice)
        source = known[choice]
    if hasattr(source, "table"):
        return _bars(one_axes(ax), source)
    what = "a fitted ContrastiveICA, its selection_, or a dictionary of bits by value"
    instance("source", source, Mapping, what)
    if not source:
        raise InputError("source must have the bits of at least one value")
    values, bits = as_floats("source", list(source)), as_floats("source", list(source.values()))
    if choice is not None:
        one_of("choice", choice, CHOICES)
    ax = one_axes(ax)
    ax.plot(values, bits, "o-", color=BLUE, label="evidence")
    if chosen in source:
        label = f"chosen: {chosen}"
        ax.plot(chosen, source[chosen], "o", ms=11, mfc="none", mec=ORANGE, mew=2, label=label)
        legend(ax)
    ax.locator_params(axis="x", integer=True)
    ax.set(xlabel=CHOICES.get(choice or "", "value"), ylabel=NAMES["bits"])
    ax.margins(0.08)  # room for the mark
    ax.set_ylim(bottom=min(0.0, float(bits.min())))
    return ax


def _bars(ax: Axes, selection: Any) -> Axes:
    """The candidates of a selection, with the standard errors of their differences from the best."""
    table = list(selection.table)
    names = [f"{record['space']}, {record['conditional']}" for record in table]
    bits = [record["bits"] for record in table]
    # the table has the best first, which need not be the choice
    conditional = repr(selection.conditional)
    space = type(selection.space).__name__.lower().replace("euclidean", "unbounded")
    chosen = [r["space"] == space and r["conditional"] == conditional for r in table]
    errors = [record["error"] for record in table]
    colours = [ORANGE if is_chosen else BLUE for is_chosen in chosen]
    ax.barh(names, bits, xerr=errors, color=colours, ecolor=ink(), height=0.7)
    ax.invert_yaxis()
    ax.tick_params(axis="y", length=0)
    ax.set(xlabel=f"{NAMES['bits']} (the choice in orange)")
    return ax
