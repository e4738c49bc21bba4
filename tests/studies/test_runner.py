"""What a study plans, and what a report refuses to lose."""

import json
import shutil

import pytest

from helpers.counting import Count, study
from helpers.fakes import fake
from identica import InputError, distributed
from identica.runs.folder import claim
from identica.studies import report, reproduce
from identica.studies.runner import Planned, default_folder, listing, plan


def test_a_plan_has_five_seeds_of_every_row_unless_told(tmp_path):
    table = study([Count(1), Count(2)])
    assert [item.uses for item in plan(table, tmp_path)] == [
        [(row, "contrastive", seed)] for row in (1, 2) for seed in range(5)
    ]
    found = plan(table, tmp_path, rows=[2], seeds=[7])
    assert [item.uses for item in found] == [[(2, "contrastive", 7)]]
    assert str(default_folder(table)) == "identica-counting"


def test_runs_in_words(tmp_path):
    (item,) = plan(study([Count(1)]), tmp_path, seeds=[3])
    assert item.label == "row 1 contrastive seed 3"
    shared = Planned(item.job, [(2, "identity", 3), (5, "identity", 3)], "done")
    assert shared.label == "rows 2, 5 identity seed 3"
    text = listing([item, shared])
    assert text.splitlines() == [
        f"row 1 contrastive seed 3   {item.job.name}  to do",
        f"rows 2, 5 identity seed 3  {item.job.name}  done",
        "1 of 2 runs done",
    ]


def test_a_run_of_another_process_is_seen(tmp_path):
    (item,) = plan(study([Count(1)]), tmp_path, seeds=[0])
    with claim(tmp_path / "runs" / item.job.name):
        (found,) = plan(study([Count(1)]), tmp_path, seeds=[0])
        assert found.state == "running"
    (found,) = plan(study([Count(1)]), tmp_path, seeds=[0])
    assert found.state == "to do"


def test_a_report_keeps_a_table_that_has_more_unless_forced(tmp_path):
    table = study([Count(1), Count(2)])
    report(fake(tmp_path, table), table)
    before = (tmp_path / "table.json").read_text()
    shutil.rmtree(tmp_path / "runs")
    (tmp_path / ".table.md.7.tmp").write_text("of a writer that was killed")
    with pytest.raises(InputError) as told:
        report(tmp_path, table)
    lost = ", ".join(f"row {row} contrastive r2 (2 seeds, 0 here)" for row in (1, 2))
    assert str(told.value) == (
        f"{tmp_path / 'table.json'} has more than the runs in {tmp_path / 'runs'}, so it is kept; "
        f"force=True replaces it: {lost}"
    )
    assert (tmp_path / "table.json").read_text() == before
    report(tmp_path, table, force=True)
    assert json.loads((tmp_path / "table.json").read_text()) == []
    assert not list(tmp_path.glob(".*.tmp"))


@pytest.mark.parametrize("options", [{"workers": 1}, {"engine": "ray"}])
def test_a_group_has_no_workers(options, tmp_path, monkeypatch):
    monkeypatch.setattr(distributed, "group", lambda: (0, 2))
    with pytest.raises(InputError, match="workers and engine must be left out in a group"):
        reproduce(study([Count(1)]), out=tmp_path, **options)
    assert not list(tmp_path.iterdir())
