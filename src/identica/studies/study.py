"""What a study is: rows beside published figures, and an experiment for each row, kind and seed."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

from identica._validate import members
from identica._validate import seed as check_seed
from identica.errors import InputError
from identica.plots.curves import SCORES as SCORES
from identica.runs import Job
from identica.runs.folder import METRICS, plain

if TYPE_CHECKING:  # workers that only wait for something to do need not load torch
    from identica.recipes import Preset
    from identica.studies.published import Published


class Record(Protocol):
    """A row of a study, known by its number."""

    @property
    def row(self) -> int: ...


R = TypeVar("R", bound=Record)


class Target(NamedTuple):
    """A score of a row: the kind of run it comes from, its name, the published figure if any, and where ours
    may lie relative to it ("below", "within", "above"). If `accepted` is empty, it is not judged."""

    kind: str
    score: str
    published: Published | None
    accepted: tuple[str, ...] = ("within", "above")


class Ours(NamedTuple):
    """Our figure: mean and standard deviation over seeds, and the standard error of the mean.

    Of a study whose summary is the median: median, and mean absolute deviation from it.
    """

    mean: float
    std: float
    seeds: int
    error: float


class Verdict(NamedTuple):
    """Where our figure lies ("above", "within" or "below"), and whether that is as expected.

    `good` is None if it is not judged; the word is a dash if nothing was published.
    """

    word: str
    good: bool | None


class Picture(NamedTuple):
    """An image for the page, as the address of an <img>, with its caption."""

    caption: str
    source: str


class Finished(NamedTuple):
    """A finished run: its seed, folder, configuration and result."""

    seed: int
    folder: Path
    config: dict[str, Any]
    result: dict[str, Any]


class Study(ABC, Generic[R]):
    """A table to reproduce.

    Attributes:
        name: as on the command line.
        title: as on the page.
        rows: the records, in the order of the table.
    """

    unit = "%"
    summary = "mean"  # or "median": how scores are summarised over seeds, as published
    scored_on = "unseen pairs"  # in training
    side_by_side = True  # whether every column of figures has a published one beside it
    by_kind = False  # whether the table has a line for each kind of a row, not one for all
    legend = "In %, mean ± standard deviation over seeds (how many)."
    within = (
        "no further from the published mean than its standard deviation, or 0.2 points if that is "
        "more"
    )

    def __init__(self, name: str, title: str, rows: Sequence[R]) -> None:
        self.name, self.title, self.rows = name, title, list(rows)

    def ready(self, rows: Sequence[R]) -> None:
        """Raise an error if something that runs of these rows need is missing, such as a data set."""

    def absent(self, kind: str) -> str:
        """Why runs of a kind cannot be done here, so that they are left out; empty if they can."""
        return ""

    @abstractmethod
    def targets(self, row: R) -> list[Target]:
        """The scores of a row."""

    @abstractmethod
    def experiment(self, row: R, kind: str, seed: int, preset: Preset) -> Job:
        """The run behind a kind of score."""

    @abstractmethod
    def cells(self, row: R) -> dict[str, str]:
        """The cells of a row beside its figures, by column."""

    def label(self, target: Target) -> str:
        """The column of a score."""
        return SCORES.get(target.score, target.score)

    def notes(self, runs: Sequence[Finished]) -> dict[str, str]:
        """What the table says of finished runs of a kind beside their scores, by column."""
        return {}

    def words(self, row: R) -> str:
        """The description of a row on the page."""
        return ""

    def tolerance(self, target: Target, ours: Ours) -> float:
        """How far from the published figure counts as within."""
        std = None if target.published is None else target.published.std
        return max(std or 0.0, 0.002)

    def verdict(self, target: Target, ours: Ours) -> Verdict:
        """How our figure compares with the published one."""
        if target.published is None:
            return Verdict("–", None)
        difference = ours.mean - target.published.mean
        near = abs(difference) <= self.tolerance(target, ours) + 1e-9
        word = "within" if near else "above" if difference > 0 else "below"
        return Verdict(word, word in target.accepted if target.accepted else None)

    def read_back(self, row: R, run: Finished) -> Any:
        """The experiment of a finished run, from its configuration."""
        from identica.recipes import from_config

        found = self.experiment(row, run.config["kind"], run.seed, from_config(run.config))
        if plain(found.config) != run.config:
            raise InputError(f"{run.folder} is a run of another version")
        return found

    def pictures(self, row: R, runs: Mapping[str, list[Finished]]) -> list[Picture]:
        """Pictures of a row from its finished runs, by kind: training curves, and what was recovered."""
        kind = getattr(row, "kind", "contrastive")
        found = runs.get(kind, [])
        if not found:
            return []
        pictures: list[Picture] = []
        for target in self.targets(row):
            if target.kind == kind:
                goal = None if target.published is None else target.published.mean
                drawn = curves(found, target.score, goal=goal, on=self.scored_on)
                pictures += [p._replace(caption=p.caption + self.aside(found[0])) for p in drawn]
        with suppress(InputError):  # without weights or data, only these pictures are missing
            pictures += self.recovered(self.read_back(row, found[0]), found[0])
        return pictures

    def aside(self, run: Finished) -> str:
        """What a reader of a run's training curves needs to know about them."""
        return ""

    def recovered(self, experiment: Any, run: Finished) -> list[Picture]:
        """Pictures of the factors and codes of a finished run."""
        return []

    def show(self, value: float, score: str = "") -> str:
        """A figure as the table prints it, in the unit of its score."""
        return f"{100 * value:.2f}"

    def spread(self, ours: Ours) -> float:
        """What the table prints after ±."""
        return ours.std

    def select(self, rows: Iterable[int] | None) -> list[R]:
        """The rows with the given numbers, all by default."""
        known = {row.row: row for row in self.rows}
        wanted = list(known) if rows is None else members("rows", rows, "a list of numbers")
        if not wanted:
            raise InputError("rows must name at least one row")
        for number in wanted:
            if not isinstance(number, int) or number not in known:
                raise InputError(
                    f"rows must lie between {min(known)} and {max(known)} for {self.name}, "
                    f"got {number}"
                )
        return [known[number] for number in dict.fromkeys(wanted)]


def read_metrics(folder: Path, *names: str) -> list[dict[str, float]]:
    """The history of a finished run, empty if it is gone, damaged or lacks some of the names."""
    with suppress(OSError, ValueError, TypeError, AttributeError, OverflowError, RecursionError):
        lines = (folder / METRICS).read_text(encoding="utf-8").splitlines()
        records = [{key: float(n) for key, n in json.loads(line).items()} for line in lines]
        if all(set(names) <= record.keys() for record in records):
            return records
    return []


def curves(runs: Sequence[Finished], score: str, *, goal: float | None, on: str) -> list[Picture]:
    """A picture of a score during training, by seed; none if no run has kept its history."""
    from identica.report import plots

    histories = {f"seed {run.seed}": read_metrics(run.folder, "step", score) for run in runs}
    if not any(histories.values()):
        return []
    figure = plots.training_curve(histories, score, goal=goal, on=on)
    return [
        Picture(f"{SCORES.get(score, score)} in training, by seed", plots.inline(figure, dpi=90))
    ]


def numbers(name: str, text: str) -> list[int]:
    """Whole numbers as typed: one by one, as a range, or both.

    >>> numbers("rows", "1,3,7-9")
    [1, 3, 7, 8, 9]
    """
    found: list[int] = []
    for part in text.split(","):
        span = re.fullmatch(r"\s*(\d{1,9})\s*(?:-\s*(\d{1,9})\s*)?", part, flags=re.ASCII)
        if not span:
            raise InputError(f"{name} must be whole numbers such as 1,3 or 1-4, got {text!r}")
        first, last = int(span[1]), int(span[2] or span[1])
        if last < first or last - first > 9999:
            raise InputError(f"{name} must have ranges that rise (to 10,000 at most), got {part!r}")
        found += range(first, last + 1)
    return list(dict.fromkeys(found))


def check_seeds(seeds: Iterable[int]) -> list[int]:
    """The seeds, each once."""
    listed = members("seeds", seeds, "a list of numbers")
    found = list(dict.fromkeys(check_seed("seeds", seed) for seed in listed))
    if not found:
        raise InputError("seeds must name at least one seed")
    return found
