"""Finished runs are found by their names: today's configurations still give those of the runs in results/."""

import json
from pathlib import Path

import pytest

from identica.datasets import dsprites
from identica.studies import STUDIES, find
from identica.studies.table import registered

RESULTS = Path(__file__).parents[2] / "results"


@pytest.fixture
def no_data(tmp_path, monkeypatch):
    """Runs were made without the original images, which are part of a configuration."""
    monkeypatch.setenv("IDENTICA_DATA", str(tmp_path))
    assert not dsprites.is_at_hand()


@pytest.mark.parametrize("name", list(STUDIES))
def test_every_finished_run_has_the_name_that_its_configuration_gives(name, no_data):
    study = find(name)
    rows = {row.row: row for row in study.rows}
    registered_as, runs = registered(RESULTS / name)
    assert registered_as == name
    for (row, kind, seed), run in runs.items():
        assert study.experiment(rows[row], kind, seed, "fast").name == run, (row, kind, seed)
    # every figure of the table has its runs
    table = json.loads((RESULTS / name / "table.json").read_text(encoding="utf-8"))
    figures = {(record["row"], record["kind"]): record["ours"]["seeds"] for record in table}
    assert figures
    for (row, kind), seeds in figures.items():
        assert len([use for use in runs if use[:2] == (row, kind)]) >= seeds
