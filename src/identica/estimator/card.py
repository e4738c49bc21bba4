"""The HTML card that shows an estimator in a notebook."""

from __future__ import annotations

from typing import Any

from identica import _html


class Card:
    """Mixin that displays an estimator as a card instead of scikit-learn's diagram.

    It must precede `BaseEstimator` among the bases. `sklearn.set_config(display="text")` turns it off.
    Pipelines are displayed as usual.
    """

    _verdict: str | None = None  # of the last diagnosis since the last fit

    def _repr_html_inner(self) -> str:
        return card(self)

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**options)  # type: ignore[misc]
        return bundle | ({"text/html": card(self)} if "text/html" in bundle else {})


def card(ica: Any) -> str:
    """Summarise a `ContrastiveICA` as HTML: parameters, fit and verdict."""
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
