"""Paste the tables of results/ between their markers in README.md and docs/*.md.

    python docs/paste.py            # or --check: fail if anything would change

A marker is `<!-- paste results/icml-table1/table.md -->`; the table ends at `<!-- end -->`. Our figures then
stand above the published ones, in one column instead of two. With `columns 2,4` after the path, only these
columns are pasted, counted from 1; with `rows 1,3-5` before that, only these rows, without title and notes.
`evidence/studies` is no file but a function of docs/evidence.py.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import evidence
from identica.studies.study import numbers

ROOT = Path(__file__).parent.parent
MARKED = re.compile(
    r"(<!-- paste (\S+)(?: rows ([\d,-]+))?(?: columns ([\d,-]+))? -->\n).*?(<!-- end -->)",
    re.DOTALL,
)
TABLE = re.compile(r"(?:^\|.*\n)+", re.MULTILINE)
PUBLISHED = ", published"


def pasted(text: str) -> str:
    """The text with every table as it is in its file."""

    def table(found: re.Match[str]) -> str:
        folder, _, name = found[2].partition("/")
        if folder == "evidence":
            return f"{found[1]}\n{getattr(evidence, name)()}\n\n{found[5]}"
        content = (ROOT / found[2]).read_text(encoding="utf-8").strip()
        content = re.sub("^# ", "### ", content)  # a page has its own title
        rows, columns = (numbers("marker", found[i]) if found[i] else [] for i in (3, 4))
        if rows:
            content = cut(content, rows, columns)
        elif columns:
            content = TABLE.sub(lambda whole: cut(whole[0], rows, columns) + "\n", content)
        else:
            content = side_by_side(content)
        return f"{found[1]}\n{content}\n\n{found[5]}"

    return MARKED.sub(table, text)


def cells(line: str) -> list[str]:
    """The cells of a line of a Markdown table, with the empty ones at both ends."""
    return re.split(r"(?<!\\)\|", line)


def cut(table: str, rows: list[int], columns: list[int]) -> str:
    """Some rows and columns of a Markdown table, all of them if none are named."""
    head, rule, *body = [line for line in table.splitlines() if line.startswith("|")]
    lines = [
        cells(line)
        for line in (head, rule, *(body[n - 1] for n in rows or range(1, len(body) + 1)))
    ]
    shown = columns or range(1, len(lines[0]) - 1)
    return "\n".join("|".join(["", *(line[n] for n in shown), ""]) for line in lines)


def side_by_side(table: str) -> str:
    """A table where every pair of columns "score, published" and "ours" is one, with ours on top."""
    lines, shared = [], []
    for line in table.splitlines():
        if line.startswith("|"):
            parts = cells(line)
            shared = shared or [
                n for n, name in enumerate(parts) if name.strip().endswith(PUBLISHED)
            ]
            for n in reversed(shared):
                published, ours = parts[n].strip(), parts.pop(n + 1).strip()
                if ours == "ours":
                    parts[n] = f" {published.removesuffix(PUBLISHED)} "
                elif not ours.startswith("--"):
                    parts[n] = f" {ours}<br>*{published}* " if published != "–" else f" {ours} "
            line = "|".join(parts)
        elif shared and line.startswith("In %"):
            line = f"Our figures, *with the published ones below them in italics*. {line}"
        lines.append(line)
    return "\n".join(lines)


def unbroken(text: str) -> str:
    """Tables with figures such as `99.97 ± 0.01 (5)` held together."""
    gaps = re.compile(r"(?<=[\d°m]) (?=±|\(\d+\))|(?<=±) |(?<=\d) (?=cm)")
    return TABLE.sub(lambda table: gaps.sub("\u00a0", table[0]), text)


def main(check: bool) -> int:
    stale = []
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        old = page.read_text(encoding="utf-8")
        new = pasted(old) if page.name == "README.md" else unbroken(pasted(old))
        if new != old:
            stale.append(page.name)
            if not check:
                page.write_text(new, encoding="utf-8")
    if stale:
        print(f"{'stale' if check else 'written'}: {', '.join(stale)}")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
