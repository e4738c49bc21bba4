"""An estimator in a notebook: whether it is fitted, how, and how far it can be trusted."""

from __future__ import annotations

from typing import Any

from identica import _html


class Card:
    """Shows an estimator as a small card, where scikit-learn would show a diagram.

    It comes before `BaseEstimator` among the bases. `sklearn.set_config(display="text")` turns it off, and a
    pipeline shows its steps as usual.
    """

    _verdict: str | None = None  # of the last diagnosis since the last fit

    def _repr_html_inner(self) -> str:
        return card(self)

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        found: dict[str, str] = super()._repr_mimebundle_(**options)  # type: ignore[misc]
        return found | ({"text/html": card(self)} if "text/html" in found else {})


def card(ica: Any) -> str:
    """What there is to know of a `ContrastiveICA`, in a few lines."""
    name, settings = type(ica).__name__, _html.tag("code", repr(ica))
    if not hasattr(ica, "model_"):
        return _html.card(f"{name}: not fitted", _html.tag("div", settings))
    space, conditional = ica.model_.space, ica.model_.conditional
    steps = ica.history_[-1]["step"] if ica.history_ else 0
    lines = [
        f"{space.dim} codes of {ica.n_features_in_} columns, {conditional} on {space}",
        f"{ica.bits_:.2f} held-out bits per pair after {steps:,.0f} steps, the best of "
        f"{len(ica.starts_)} starts",
    ]
    if ica.lag_ is not None:
        lines.append(
            f"a sequence: lag {ica.lag_}, window {ica.window_}, worth about "
            f"{ica.independent_pairs_:,.0f} independent pairs"
        )
    lines.append(f"verdict: {ica._verdict}" if ica._verdict else "not diagnosed yet")
    content = _html.tag("div", settings), _html.items(lines)
    return _html.card(f"{name}: fitted", *content, colour=_html.GOOD)
