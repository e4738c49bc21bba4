"""Execution, resuming and monitoring of runs: run folders, worker pools, progress. No science in here."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol


class Tick(Protocol):
    """A progress callback: the current step, the number of steps, and a description of other work."""

    def __call__(self, step: int, steps: int, doing: str = "", /) -> None: ...


class Job(Protocol):
    """A run to execute: its name, configuration, size, and the function that does the work."""

    @property
    def name(self) -> str: ...
    @property
    def config(self) -> Mapping[str, Any]: ...
    @property
    def pairs(self) -> int: ...
    def run(self, folder: Path, tick: Tick, /) -> Mapping[str, Any]: ...
