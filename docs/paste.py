"""Paste the tables of results/ between their markers in README.md and docs/*.md.

    python docs/paste.py            # or --check: fail if anything would change

A marker is `<!-- paste results/icml-table1/table.md -->`; the table ends at `<!-- end -->`. With
`rows 1,3 columns 2,4` after the path, only these rows and columns of the table are pasted, counted
from 1, without the title and the notes.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent
MARKED = re.compile(
    r"(<!-- paste (\S+)(?: rows ([\d,]+) columns ([\d,]+))? -->\n).*?(<!-- end -->)", re.DOTALL
)


def pasted(text: str) -> str:
    """The text with every table as it is in its file."""

    def table(found: re.Match[str]) -> str:
        content = (ROOT / found[2]).read_text(encoding="utf-8").strip()
        content = re.sub("^# ", "### ", content)  # a page has its own title
        if found[3]:
            content = cut(content, *([int(n) for n in found[i].split(",")] for i in (3, 4)))
        return f"{found[1]}\n{content}\n\n{found[5]}"

    return MARKED.sub(table, text)


def cut(table: str, rows: Sequence[int], columns: Sequence[int]) -> str:
    """Some rows and columns of a Markdown table."""
    head, rule, *body = [line for line in table.splitlines() if line.startswith("|")]
    kept = [re.split(r"(?<!\\)\|", line) for line in (head, rule, *(body[n - 1] for n in rows))]
    return "\n".join("|".join(["", *(cells[n] for n in columns), ""]) for cells in kept)


def main(check: bool) -> int:
    stale = []
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        old = page.read_text(encoding="utf-8")
        if (new := pasted(old)) != old:
            stale.append(page.name)
            if not check:
                page.write_text(new, encoding="utf-8")
    if stale:
        print(f"{'stale' if check else 'written'}: {', '.join(stale)}")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
