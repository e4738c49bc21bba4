"""Formulas of pages and docstrings as MathML, which browsers draw without scripts or fonts of ours.

A formula is written as it is read in a terminal, close to LaTeX: `e^{−‖h − h̃‖_p^p}`, `Σ_j z_ij`, `max_π`. It
stands in a block ```math, or indented in a docstring; in running text, indices and exponents are set as such.
As a hook of MkDocs, this module teaches both to Markdown.
"""

from __future__ import annotations

import re
import unicodedata
from html import escape
from typing import Any
from xml.etree.ElementTree import Element, SubElement

from markdown import Extension, Markdown
from markdown.inlinepatterns import InlineProcessor
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import event_priority

RAISED = {"²": "2", "ᵀ": "T", "⁻": "−", "′": "′"}
LOWERED = {"₁": "1"}
UNDER = {"Σ", "max", "min", "argmax", "argmin", "mean"}  # what follows _ goes below these
NAMES = UNDER | {
    "log",
    "cos",
    "corr",
    "e",
    "KL",
    "CE",
    "Var",
    "Poisson",
    "Laplace",
    "MCC",
    "MIG",
    "SAP",
}
PLAIN = rf"[^\W\d_{''.join(RAISED)}{''.join(LOWERED)}]"  # a letter
LETTER = rf"{PLAIN}[\u0300-\u036f]*"
TOKEN = re.compile(
    rf"(?P<gap>\s{{2,}})|(?P<space>\s)|`(?P<code>\w+)`|(?P<number>\d+(?:\.\d+)?)"
    rf"|(?P<word>{PLAIN}{{2,}})(?![\u0300-\u036f])"
    rf"|(?P<letter>{LETTER})|(?P<script>[_^])|(?P<sign>.)"
)
# one letter with an index or exponent, in running text: h_j, λ_k, R^n, e^{−x}; never a name of Python
SCRIPT = r"[_^](?:\{[^{}<>]*\}|[^\W_](?![\w(])|[i-l]{2}(?!\w)|\d+(?!\w))"
SCRIPTED = rf"(?<![\w`^]){LETTER}(?:{SCRIPT})+(?![\w\u0300-\u036f])"


class Formula:
    """Reads a formula from left to right."""

    def __init__(self, text: str) -> None:
        text = unicodedata.normalize("NFD", text)  # a letter, then its accent
        self.tokens = [(m.lastgroup or "", m[m.lastgroup or 0]) for m in TOKEN.finditer(text)]
        self.at = 0

    def peek(self) -> tuple[str, str]:
        return self.tokens[self.at] if self.at < len(self.tokens) else ("end", "")

    def row(self, closing: str = "") -> str:
        """Everything up to a closing bracket, or to the end."""
        parts = []
        while self.peek() not in (("end", ""), ("sign", closing)):
            parts.append(self.scripted())
        self.at += 1
        return f"<mrow>{''.join(parts)}</mrow>"

    def scripted(self) -> str:
        """An atom with its index and exponent."""
        name = self.peek()[1]
        base, low, high = self.atom(), "", ""
        while True:
            kind, text = self.peek()
            if kind == "script":
                self.at += 1
                if text == "_":
                    low = self.script()
                else:
                    high = self.script()
            elif kind == "sign" and text in RAISED:
                self.at += 1
                high = f"<mo>{RAISED[text]}</mo>"
            elif kind == "sign" and text in LOWERED:
                self.at += 1
                low = f"<mn>{LOWERED[text]}</mn>"
            else:
                break
        over, under = ("munderover", "munder") if name in UNDER else ("msubsup", "msub")
        if low and high:
            return f"<{over}>{base}{low}{high}</{over}>"
        return (
            f"<{under}>{base}{low}</{under}>"
            if low
            else f"<msup>{base}{high}</msup>"
            if high
            else base
        )

    def script(self) -> str:
        """What follows _ or ^: a group in braces, or the letters and digits up to anything else."""
        kind, text = self.peek()
        if (kind, text) == ("sign", "{"):
            self.at += 1
            return self.row("}")
        self.at += 1
        if kind == "word":  # several indices
            return f"<mrow>{''.join(f'<mi>{letter}</mi>' for letter in text)}</mrow>"
        return element(kind, text)

    def atom(self) -> str:
        kind, text = self.peek()
        self.at += 1
        return element(kind, text)


def element(kind: str, text: str) -> str:
    """A token of a formula."""
    match kind:
        case "gap":
            return '<mspace width="1.5em"/>'
        case "space":
            return ""
        case "number":
            return f"<mn>{text}</mn>"
        case "code":
            return f"<mtext><code>{text}</code></mtext>"
        case "word" if text in NAMES:
            return f"<mi>{text}</mi>" if text != "log" else '<mi>log</mi><mspace width="0.17em"/>'
        case "word":
            return f"<mtext>&nbsp;{text}&nbsp;</mtext>"
        case "letter" if len(text) > 1:
            mark = {"\u0303": "~", "\u0302": "^", "\u0304": "¯"}[text[1]]
            return (
                f'<mover accent="true"><mi>{text[0]}</mi><mo stretchy="false">{mark}</mo></mover>'
            )
        case "letter":
            return (
                '<mo largeop="true" movablelimits="false">∑</mo>'
                if text == "Σ"
                else f"<mi>{text}</mi>"
            )
        case _:
            return f'<mo stretchy="false">{escape(text)}</mo>'


def mathml(formula: str) -> str:
    """A formula as a block of its own, a line each.

    >>> mathml("h_j²")
    '<math display="block"><mrow><msubsup><mi>h</mi><mi>j</mi><mo>2</mo></msubsup></mrow></math>'
    """
    return "".join(
        f'<math display="block">{Formula(line.strip()).row()}</math>'
        for line in formula.strip().splitlines()
    )


def fence(source: str, *_: Any, **__: Any) -> str:
    return f'<div class="formula" tabindex="0">{mathml(source)}</div>'


class Scripted(InlineProcessor):
    """Indices and exponents of single letters, as <sub> and <sup>."""

    def handleMatch(self, m: re.Match[str], data: str) -> tuple[Element, int, int]:  # type: ignore[override]
        span = Element("span", {"class": "scripted"})
        first, *scripts = re.findall(rf"{LETTER}|[_^](?:\{{[^}}]*\}}|\w+)", m[0])
        span.text = first
        for script in scripts:
            SubElement(span, "sub" if script[0] == "_" else "sup").text = script[1:].strip("{}")
        return span, m.start(0), m.end(0)


class Maths(Extension):
    def extendMarkdown(self, md: Markdown) -> None:
        md.inlinePatterns.register(Scripted(SCRIPTED, md), "scripted", 75)


@event_priority(100)  # before mkdocstrings takes the extensions over
def on_config(config: MkDocsConfig) -> MkDocsConfig:
    config.markdown_extensions.append(Maths())  # type: ignore[arg-type]
    fences = config.mdx_configs.setdefault("pymdownx.superfences", {}).setdefault(
        "custom_fences", []
    )
    fences.append({"name": "math", "class": "formula", "format": fence})
    return config
