"""Self-contained HTML pages, which need no other file and no network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from identica._io import write_text


def write_page(path: Path, template: str, **content: Any) -> None:
    """Fill a template of this folder and write it in one step."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("identica.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    write_text(path, environment.get_template(template).render(**content))
