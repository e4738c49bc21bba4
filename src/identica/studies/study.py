"""The `Study` base class: rows with published figures, and an experiment for each row, kind and seed."""

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

if TYPE_CHECKING:  # idle workers need not load torch
    from identica.recipes import Preset
    from identica.studies.published import Published


class Record(Protocol):
    """A row of a study, known by its number."""

    @property
    def row(self) -> int: ...


R = TypeVar("R", bound=Record)


class Target(NamedTuple):
    """A score of a row: the kind of its runs, its name, the published figure if any, and where ours
    may lie relative to it ("below", "within", "above"); if `accepted` is empty, they are not compared."""

    kind: str
    score: str
    published: Published | None
    accepted: tuple[str, ...] = ("within", "above")


class Ours(NamedTuple):
    """Our figure: mean and standard deviation over seeds, and the standard error of the mean.

    If the summary of the study is the median: median, and mean absolute deviation from it.
    """

    mean: float
    std: float
    seeds: int
    error: float


class Verdict(NamedTuple):
    """Where our figure lies ("above", "within" or "below"), and whether that is as expected.

    `good` is None if they are not compared; the word is a dash if nothing was published.
    """

    word: str
    good: bool | None


class Picture(NamedTuple):
    """An image for the page, as a data URL, with its caption."""

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
        name: name on the command line.
        title: title of the page.
        rows: the records, in the order of the table.
    """

    unit = "%"
    summary = "mean"  # or "median": how scores are summarised over seeds, as published
    scored_on = "unseen pairs"  # data of the scores during training
    side_by_side = True  # whether every column of figures has a published counterpart
    by_kind = False  # whether the table has one line per row and kind, instead of one per row
    legend = "In %, mean ± standard deviation (number of seeds)."
    within = (
        "no further from the published mean than its standard deviation, or 0.2 points if that is "
        "more"
    )

    def __init__(self, name: str, title: str, rows: Sequence[R]) -> None:
        self.name, self.title, self.rows = name, title, list(rows)

    def ready(self, rows: Sequence[R]) -> None:
        """Raise an error if a requirement of these rows is missing, such as a data set."""

    def absent(self, kind: str) -> str:
        """Why runs of a kind are skipped, such as a missing package; empty if they are not."""
        return ""

    @abstractmethod
    def targets(self, row: R) -> list[Target]:
        """The scores of a row."""

    @abstractmethod
    def experiment(self, row: R, kind: str, seed: int, preset: Preset) -> Job:
        """The run behind a kind of score."""

    @abstractmethod
    def cells(self, row: R) -> dict[str, str]:
        """The cells that describe a row, by column."""

    def label(self, target: Target) -> str:
        """The column of a score."""
        return SCORES.get(target.score, target.score)

    def notes(self, runs: Sequence[Finished]) -> dict[str, str]:
        """Further cells for the finished runs of a kind, by column."""
        return {}

    def words(self, row: R) -> str:
        """The description of a row on the page."""
        return ""

    def tolerance(self, target: Target, ours: Ours) -> float:
        """The largest difference from the published figure that counts as within."""
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

        experiment = self.experiment(row, run.config["kind"], run.seed, from_config(run.config))
        if plain(experiment.config) != run.config:
            raise InputError(f"{run.folder} is a run of another version")
        return experiment

    def pictures(self, row: R, runs: Mapping[str, list[Finished]]) -> list[Picture]:
        """Plots of a row from its finished runs, by kind: learning curves and recovered factors."""
        kind = getattr(row, "kind", "contrastive")
        finished = runs.get(kind, [])
        if not finished:
            return []
        pictures: list[Picture] = []
        for target in self.targets(row):
            if target.kind == kind:
                goal = None if target.published is None else target.published.mean
                drawn = curves(finished, target.score, goal=goal, on=self.scored_on)
                pictures += [p._replace(caption=p.caption + self.aside(finished[0])) for p in drawn]
        with suppress(InputError):  # without weights or data, only these pictures are missing
            pictures += self.recovered(self.read_back(row, finished[0]), finished[0])
        return pictures

    def aside(self, run: Finished) -> str:
        """An explanation to add to the caption of the learning curves."""
        return ""

    def recovered(self, experiment: Any, run: Finished) -> list[Picture]:
        """Plots of the factors and codes of a finished run."""
        return []

    def show(self, value: float, score: str = "") -> str:
        """A figure as the table prints it, in the unit of its score."""
        return f"{100 * value:.2f}"

    def spread(self, ours: Ours) -> float:
        """The value printed after ± in the table."""
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
    """The history of a finished run; empty if it is missing, damaged or lacks one of the names."""
    with suppress(OSError, ValueError, TypeError, AttributeError, OverflowError, RecursionError):
        lines = (folder / METRICS).read_text(encoding="utf-8").splitlines()
        records = [{key: float(n) for key, n in json.loads(line).items()} for line in lines]
        if all(set(names) <= record.keys() for record in records):
            return records
    return []


def curves(runs: Sequence[Finished], score: str, *, goal: float | None, on: str) -> list[Picture]:
    """A plot of the learning curves, by seed; none if there are no histories."""
    from identica.report import plots

    histories = {f"seed {run.seed}": read_metrics(run.folder, "step", score) for run in runs}
    if not any(histories.values()):
        return []
    figure = plots.training_curve(histories, score, goal=goal, on=on)
    return [
        Picture(f"{SCORES.get(score, score)} in training, by seed", plots.inline(figure, dpi=90))
    ]


def numbers(name: str, text: str) -> list[int]:
    """Parse a list of whole numbers and ranges.

    >>> numbers("rows", "1,3,7-9")
    [1, 3, 7, 8, 9]
    """
    values: list[int] = []
    for part in text.split(","):
        span = re.fullmatch(r"\s*(\d{1,9})\s*(?:-\s*(\d{1,9})\s*)?", part, flags=re.ASCII)
        if not span:
            raise InputError(f"{name} must be whole numbers such as 1,3 or 1-4, got {text!r}")
        first, last = int(span[1]), int(span[2] or span[1])
        if last < first or last - first > 9999:
            raise InputError(
                f"{name} must have increasing ranges (to 10,000 at most), got {part!r}"
            )
        values += range(first, last + 1)
    return list(dict.fromkeys(values))


def check_seeds(seeds: Iterable[int]) -> list[int]:
    """Validate the seeds and remove duplicates."""
    listed = members("seeds", seeds, "a list of numbers")
    unique = list(dict.fromkeys(check_seed("seeds", seed) for seed in listed))
    if not unique:
        raise InputError("seeds must name at least one seed")
    return unique
