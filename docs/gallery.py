"""Run the examples, and write them as pages with what they print and draw.

    python docs/gallery.py [--force] [NAME …]         # pages whose script has changed, or all
    python docs/gallery.py --notebooks FOLDER         # the scripts as notebooks, without output

A script in examples/ consists of cells: `# %% [markdown]` begins text, `# %%` code. As in a notebook, the
value of the last line of a cell is shown. A page of docs/examples/ names the checksum of the script it was
made from, by which the tests and this script see whether it is out of date. While the site is built (this
file is one of its hooks), scripts and notebooks are put beside the pages.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import hashlib
import io
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent
SCRIPTS, PAGES = ROOT / "examples", ROOT / "docs" / "examples"
ORDER = [  # of the gallery, with the picture that stands for each
    ("three_factors", 3),
    ("broken_assumption", 1),
    ("own_pairs", 1),
    ("recording", 2),
    ("images", 2),
    ("own_loop", 1),
    ("any_marginal", 1),
    ("own_family", 1),
]
NAMES = [name for name, _ in ORDER]
INK = "#010203"  # a colour that nothing else has: the page's own takes its place
STYLE: dict[str, Any] = {
    "font.size": 10,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.figsize": (5.2, 3.4),
    "savefig.transparent": True,
    "svg.fonttype": "none",
    **dict.fromkeys(["text.color", "axes.labelcolor", "axes.edgecolor"], INK),
    **dict.fromkeys(["xtick.color", "ytick.color"], INK),
    "grid.color": "#808080",
}


class Cell(NamedTuple):
    """A cell of a script: text or code, and the number of lines before it."""

    kind: str
    text: str
    line: int


class Shown(NamedTuple):
    """What a cell printed, the value of its last line as HTML, and its pictures as SVG."""

    printed: str
    html: str
    pictures: list[str]


# --- reading ------------------------------------------------------------------------------------------


def cells(text: str) -> list[Cell]:
    """The cells of a script."""
    found: list[Cell] = []
    for part in re.finditer(r"^# %%(.*)\n((?:(?!# %%).*\n?)*)", text, re.MULTILINE):
        kind = "markdown" if "[markdown]" in part[1] else "code"
        line, body = text.count("\n", 0, part.start(2)), part[2]
        if kind == "markdown":
            body = re.sub(r"^# ?", "", body, flags=re.MULTILINE)
        found.append(Cell(kind, body.strip("\n") + "\n", line))
    return found


def checksum(name: str) -> str:
    """What a page is made from."""
    return hashlib.sha256((SCRIPTS / f"{name}.py").read_bytes()).hexdigest()[:16]


def is_current(name: str) -> bool:
    """Whether the page of a script is made from it as it is now."""
    page = PAGES / f"{name}.md"
    return page.exists() and f"checksum: {checksum(name)}" in page.read_text("utf-8")


def notebook(text: str) -> str:
    """A script as a notebook, without output."""

    def cell(number: int, found: Cell) -> dict[str, Any]:
        source = found.text.strip("\n").splitlines(keepends=True)
        made = {"cell_type": found.kind, "id": f"cell-{number}", "metadata": {}, "source": source}
        return made | ({"execution_count": None, "outputs": []} if found.kind == "code" else {})

    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    content = {
        "cells": [cell(number, found) for number, found in enumerate(cells(text))],
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


# --- running ------------------------------------------------------------------------------------------


def run(name: str, names: dict[str, Any] | None = None) -> Iterator[tuple[Cell, Shown]]:
    """Run the cells of a script, in `names`, each with what it shows."""
    from unittest.mock import patch

    import matplotlib.pyplot as plt

    path = SCRIPTS / f"{name}.py"
    names = {} if names is None else names
    names["__name__"] = "__main__"
    before = plt.get_backend()
    plt.switch_backend("agg")
    drawn = 0
    plt.close("all")  # figures of others are not shown
    try:
        for cell in cells(path.read_text("utf-8")):
            if cell.kind == "markdown":
                yield cell, Shown("", "", [])
                continue
            with plt.rc_context(STYLE), patch.object(plt, "show", lambda: None):
                with contextlib.redirect_stdout(io.StringIO()) as out:
                    value = _execute(cell, path, names)
                figures = [plt.figure(number) for number in plt.get_fignums()]
                pictures = [_svg(f, f"{name}-{drawn + k + 1}") for k, f in enumerate(figures)]
                drawn += len(figures)
                plt.close("all")
            yield cell, Shown(out.getvalue(), _html(value), pictures)
    finally:
        plt.close("all")
        plt.switch_backend(before)


def _execute(cell: Cell, path: Path, names: dict[str, Any]) -> Any:
    """Run a cell, and return the value of its last line if that is an expression."""
    tree = ast.parse("\n" * cell.line + cell.text, str(path))
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, str(path), "exec"), names)
    if not isinstance(last, ast.Expr):
        return None
    return eval(compile(ast.Expression(last.value), str(path), "eval"), names)


def _html(value: Any) -> str:
    return value._repr_html_() if hasattr(value, "_repr_html_") else ""


def _svg(figure: Any, salt: str) -> str:
    """A figure as SVG that belongs into a page: text in the page's colour, on its background."""
    from matplotlib import rc_context

    with rc_context({"svg.hashsalt": salt}):
        nothing = dict.fromkeys(["Date", "Creator", "Format", "Type"])
        figure.savefig(drawn := io.StringIO(), format="svg", metadata=nothing, dpi=110)
    text = drawn.getvalue()
    text = re.sub(r"^.*?(?=<svg )|<metadata>.*?</metadata>|<!--.*?-->", "", text, flags=re.DOTALL)
    # a style would hold for the whole page
    text = re.sub(r"<style.*?</style>", "", text, flags=re.DOTALL)
    text = text.replace("<svg ", '<svg role="img" stroke-linejoin="round" ', 1)
    text = re.sub(r"\d+\.\d{3,}(?=[\d ,\"LMQCz\n])", lambda n: f"{float(n[0]):.2f}", text)
    text = text.replace(INK, "currentColor")
    return re.sub(r"\n\s*\n+", "\n", text)


# --- writing ------------------------------------------------------------------------------------------


def write(name: str) -> None:
    """Run a script and write its page and pictures."""
    from identica._io import write_text

    parts = [f"<!-- docs/gallery.py makes this page. checksum: {checksum(name)} -->"]
    drawn = 0
    for cell, shown in run(name):
        if cell.kind == "markdown":
            parts.append(cell.text.strip())
        elif not re.fullmatch(r"plt\.show\(\)\n", cell.text):
            code = re.sub(r"\n*plt\.show\(\)\n$", "\n", cell.text)
            parts.append(f"```python\n{code.strip()}\n```")
        if shown.printed:
            parts.append(f'```text title="prints"\n{shown.printed.rstrip()}\n```')
        if shown.html:
            parts.append(f'<div class="shown">{shown.html}</div>')
        for picture in shown.pictures:
            drawn += 1
            path = PAGES / "img" / f"{name}-{drawn}.svg"
            write_text(path, picture)
            parts.append(figure(name, drawn))
        if len(parts) == 2:
            parts.append(
                f'<p class="files"><a href="{name}.ipynb" download>notebook</a> · '
                f'<a href="{name}.py" download>script</a></p>'
            )
    write_text(PAGES / f"{name}.md", "\n\n".join(parts) + "\n")
    for left in PAGES.glob(f"img/{name}-*.svg"):
        if int(left.stem.rpartition("-")[2]) > drawn:
            left.unlink()


def figure(name: str, number: int) -> str:
    """A picture as it stands in a page."""
    path = (PAGES / "img" / f"{name}-{number}.svg").relative_to(ROOT).as_posix()
    return f'<figure class="plot" data-search-exclude>\n--8<-- "{path}"\n</figure>'


def gallery() -> str:
    """The page that shows all examples."""
    parts = [
        "# Examples",
        "Short scripts that run as they are, with what they print and draw. Each takes less than "
        "half a minute on one core, and can be downloaded as a script or as a notebook. "
        "[Plots](../api/plots.md) lists the functions that draw.",
        '<div class="gallery" markdown>',
    ]
    for name, number in ORDER:
        first = cells((SCRIPTS / f"{name}.py").read_text("utf-8"))[0].text
        title, summary = re.fullmatch(r"# (.*?)\n\n(.*)\n", first, re.DOTALL).groups()  # type: ignore[union-attr]
        link = f"[**{title}**]({name}.md)"
        parts += ["<div markdown>", figure(name, number), f"{link}\n\n{summary}", "</div>"]
    return "\n\n".join([*parts, "</div>"]) + "\n"


def on_post_build(config: Any) -> None:
    """Put scripts and notebooks beside the pages of the site (mkdocs calls this)."""
    for name in NAMES:
        text = (SCRIPTS / f"{name}.py").read_text("utf-8")
        folder = Path(config["site_dir"]) / "examples"
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
        (folder / f"{name}.ipynb").write_text(notebook(text), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description="Run the examples and write their pages.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="examples; all by default")
    parser.add_argument("--force", action="store_true", help="run those that are up to date too")
    parser.add_argument("--notebooks", type=Path, metavar="FOLDER", help="only write notebooks")
    args = parser.parse_args()
    if unknown := set(args.names) - set(NAMES):
        parser.error(f"NAME must be one of {', '.join(NAMES)}; got {', '.join(sorted(unknown))}")
    for name in args.names or NAMES:
        if args.notebooks:
            args.notebooks.mkdir(parents=True, exist_ok=True)
            path = args.notebooks / f"{name}.ipynb"
            path.write_text(notebook((SCRIPTS / f"{name}.py").read_text("utf-8")), encoding="utf-8")
            print(path)
        elif args.force or not is_current(name):
            write(name)
            print(name, file=sys.stderr)
    if not args.notebooks:
        (PAGES / "index.md").write_text(gallery(), encoding="utf-8")


if __name__ == "__main__":
    main()
