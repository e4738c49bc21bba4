"""Run the code of the pages, and put what it prints below it.

    python docs/blocks.py [PAGE.md …]      # all pages by default; takes minutes, since models are trained

The ```python blocks of a page run in order and share their names. Where a block ```text follows, it
holds what the code printed when this script last ran. The tests compare it with what is printed then:
exactly under the title "prints", but for numbers under "prints, after training", and not at all under
"prints, after a full training". A block whose title begins with "needs" is left alone where its data
are absent.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from identica import InputError

DOCS = Path(__file__).parent
BLOCK = re.compile(
    r'^```python(?: title="(?P<title>[^"]*)")?\n(?P<code>.*?)^```\n'
    r'(?:\n```text title="(?P<label>prints[^"]*)"\n(?P<printed>.*?)^```\n)?',
    re.MULTILINE | re.DOTALL,
)


class Block(NamedTuple):
    """Code of a page, the line before it, and what the page says it prints."""

    code: str
    line: int
    title: str
    label: str
    printed: str
    span: tuple[int, int]  # of what it prints


def blocks(text: str) -> Iterator[Block]:
    for found in BLOCK.finditer(text):
        line = text.count("\n", 0, found.start("code"))
        words = (found[name] or "" for name in ("title", "label", "printed"))
        yield Block(found["code"], line, *words, found.span("printed"))


def run(block: Block, page: Path, names: dict[str, Any]) -> str:
    """Run a block and return what it printed."""
    # blank lines before it, so that errors show the line of the page
    code = compile("\n" * block.line + block.code, str(page), "exec")
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(code, names)
    return out.getvalue()


def pages() -> list[Path]:
    """The pages with code."""
    found = sorted([*DOCS.glob("*.md"), *DOCS.glob("api/*.md")])
    return [page for page in found if BLOCK.search(page.read_text("utf-8"))]


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """An empty working folder, for what the code writes."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield Path(folder)
        finally:
            os.chdir(before)


def run_all(page: Path) -> Iterator[tuple[Block, str | InputError]]:
    """Run the blocks of a page: each with what it printed, or with what it says of absent data."""
    names: dict[str, Any] = {"__name__": "page"}
    absent: dict[str, InputError] = {}
    for block in blocks(page.read_text("utf-8")):
        if block.title not in absent:
            try:
                yield block, run(block, page, names)
                continue
            except InputError as error:
                if not block.title.startswith("needs"):
                    raise
                absent[block.title] = error
        yield block, absent[block.title]


def refresh(page: Path) -> None:
    """Run a page, and write what it printed into it."""
    text, parts, end = page.read_text("utf-8"), [], 0
    with scratch():
        for block, printed in run_all(page):
            if isinstance(printed, InputError):
                print(f"{page.name}:{block.line}: left alone: {printed}", file=sys.stderr)
            elif block.label:
                parts += [text[end : block.span[0]], printed]
                end = block.span[1]
    page.write_text("".join([*parts, text[end:]]), encoding="utf-8")


if __name__ == "__main__":
    for wanted in [Path(name).resolve() for name in sys.argv[1:]] or pages():
        refresh(wanted)
        print(wanted.name)
