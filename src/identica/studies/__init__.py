"""A table of the paper is a list of experiments with published figures."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from identica.studies.catalogue import STUDIES, find, load
    from identica.studies.published import Published, Row
    from identica.studies.runner import Outcome, report, reproduce

# idle workers need not load torch
_HOME = {
    **dict.fromkeys(["STUDIES", "find", "load"], "catalogue"),
    **dict.fromkeys(["Outcome", "report", "reproduce"], "runner"),
    **dict.fromkeys(["Published", "Row"], "published"),
}

__all__ = ["Outcome", "Published", "Row", "STUDIES", "find", "load", "report", "reproduce"]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"identica.studies.{_HOME[name]}"), name)
    raise AttributeError(f"module 'identica.studies' has no attribute {name!r}")
