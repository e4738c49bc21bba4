"""Small HTML for notebooks: cards and tables on any background, in which every text is escaped."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

# legible on white and on black
GOOD, WARN, BAD, PLAIN = "#15803d", "#b45309", "#dc2626", "#6b7280"


class Markup(str):
    """Text that is HTML already."""


def text(value: object) -> str:
    """The value as HTML: as it is if it is markup, escaped otherwise.

    >>> text("a < b"), text(Markup("<b>"))
    ('a &lt; b', '<b>')
    """
    return value if isinstance(value, Markup) else html.escape(str(value))


def tag(name: str, *content: object, style: str = "") -> Markup:
    """An element around its content.

    >>> tag("em", "<script>")
    '<em>&lt;script&gt;</em>'
    """
    look = f" style='{style}'" if style else ""
    return Markup(f"<{name}{look}>{''.join(map(text, content))}</{name}>")


def items(lines: Iterable[object]) -> Markup:
    """A list; nothing if it is empty."""
    elements = [tag("li", line) for line in lines]
    return tag("ul", *elements, style="margin:.2em 0;padding-left:1.4em") if elements else Markup()


def details(summary: str, *content: object) -> Markup:
    """Content that is collapsed under a summary."""
    return tag("details", tag("summary", summary, style="cursor:pointer"), *content)


def table(head: Sequence[object], rows: Iterable[Sequence[object]]) -> Markup:
    """A table; a long or wide one scrolls in its own frame. Numbers line up at the right."""
    cell = "padding:.15em .7em;border-bottom:1px solid rgba(128,128,128,.4);text-align:"

    def row(name: str, cells: Sequence[object]) -> Markup:
        sides = ["left", *["right"] * (len(cells) - 1)]
        both = zip(cells, sides, strict=True)
        return tag("tr", *(tag(name, value, style=cell + side) for value, side in both))

    lines = [row("th", head), *(row("td", cells) for cells in rows)]
    frame = "max-height:26em;overflow:auto"
    look = "border-collapse:collapse;font-variant-numeric:tabular-nums"
    return tag("div", tag("table", *lines, style=look), style=frame)


def card(title: str, *content: object, colour: str = PLAIN) -> Markup:
    """A card with a title, content and a coloured line at the left."""
    head = tag("strong", title, style=f"color:{colour}")
    style = f"border-left:4px solid {colour};padding:.4em .8em;max-width:60em"
    return tag("div", head, *content, style=style)
