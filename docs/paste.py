"""Paste the tables of results/ between their markers in README.md and docs/*.md.

    python docs/paste.py            # or --check: fail if anything would change

A marker is `<!-- paste results/icml-table1/table.md -->`; the table reaches to `<!-- end -->`.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
MARKED = re.compile(r"(<!-- paste (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)


def pasted(text: str) -> str:
    """The text with every table as it stands in its file."""

    def table(found: re.Match[str]) -> str:
        content = (ROOT / found[2]).read_text(encoding="utf-8").strip()
        content = re.sub("^# ", "### ", content)  # a page has its own title
        return f"{found[1]}\n{content}\n\n{found[3]}"

    return MARKED.sub(table, text)


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
