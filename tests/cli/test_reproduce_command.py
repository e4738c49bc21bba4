"""`identica reproduce` and `identica report` as typed."""

import json
import os
import shutil
import traceback
from contextlib import contextmanager
from pathlib import Path

import pytest

import identica
from helpers import tiny
from helpers.counting import Count, study
from identica import cli
from identica.runs import engines, pool
from identica.studies import catalogue
from identica.studies.runner import Outcome
from identica.training import loop


@pytest.fixture(autouse=True)
def counting(monkeypatch, tmp_path):
    rows = [Count(1), Count(2), Count(3, fails=True)]
    monkeypatch.setitem(catalogue.STUDIES, "counting", study(rows))
    monkeypatch.chdir(tmp_path)


def test_reproduce_and_report(tmp_path, capsys):
    assert cli.main(["reproduce", "counting", "--rows", "1,2", "--seeds", "1-2"]) == 0
    folder = tmp_path / "identica-counting"
    out, err = capsys.readouterr()
    assert out == (folder / "table.md").read_text() + "\nreport: identica-counting/report.html\n"
    assert err.splitlines() == ["counting: 0 of 4 runs done", "counting: 4 of 4 runs done"]
    table = (folder / "table.json").read_text()
    assert [r["ours"]["mean"] for r in json.loads(table)] == [pytest.approx(0.3)] * 2

    # what is done is not done again, and the list says so
    logs = {p: p.read_text() for p in folder.glob("runs/*/counted.log")}
    assert cli.main(["reproduce", "counting", "--rows", "1-2", "--seeds", "1,2"]) == 0
    assert {p: p.read_text() for p in folder.glob("runs/*/counted.log")} == logs
    assert cli.main(["reproduce", "counting", "--list", "--seeds", "1"]) == 0
    assert capsys.readouterr().out.endswith("2 of 3 runs done\n")

    # the report is made from the run folders alone
    for name in ("table.json", "table.md", "report.html"):
        (folder / name).unlink()
    assert cli.main(["report", "identica-counting"]) == 0
    assert (folder / "table.json").read_text() == table
    assert "<h1>Counting</h1>" in (folder / "report.html").read_text()


def test_few_calls_lead_from_the_command_to_the_training(monkeypatch, tmp_path):
    """The worker is this process, so that one stack shows them all."""

    class Shortest(tiny.Quick):
        steps = 1

        def pictures(self, row, runs):
            return []

    @contextmanager
    def here(*_):
        yield engines.Engine(lambda: 1, {"backend": "sequential"})

    def make_optimizer(*arguments):
        frames = traceback.extract_stack()
        ours = [
            f.name for f in frames if Path(identica.__file__).parent in Path(f.filename).parents
        ]
        chains.append(ours[ours.index("_reproduce") :])
        return made(*arguments)

    chains, made = [], loop.make_optimizer
    monkeypatch.setattr(loop, "make_optimizer", make_optimizer)
    monkeypatch.setattr(engines, "start", here)
    monkeypatch.setattr(pool, "keep_freed_memory", lambda: False)
    monkeypatch.setitem(catalogue.STUDIES, "tiny", Shortest("tiny", "Tiny", tiny.ROWS[:1]))
    assert cli.main(["reproduce", "tiny", "--seeds", "0", "--out", str(tmp_path / "out")]) == 0
    assert len(chains) == 2  # supervised and contrastive
    for chain in chains:
        assert chain == ["_reproduce", "reproduce", "run_all", "do", "run", "train"]


def test_a_foreign_result_is_named_set_aside_and_done_again(tmp_path, capsys):
    command = ["reproduce", "counting", "--rows", "1", "--seeds", "0", "--out", "out"]
    assert cli.main(command) == 0
    (result,) = tmp_path.glob("out/runs/*/result.json")
    result.write_text('{"foreign": true}')
    capsys.readouterr()
    assert cli.main(command) == 0
    err = capsys.readouterr().err
    assert f"{result} is not the result of this run; set aside as result.json.aside-1" in err
    assert result.with_name("result.json.aside-1").read_text() == '{"foreign": true}'
    assert json.loads(result.read_text())["scores"] == {"r2": 0.0}


def test_failed_runs_are_listed_and_the_exit_code_is_1(tmp_path, capsys):
    assert cli.main(["reproduce", "counting", "--seeds", "0", "--workers", "2"]) == 1
    out, err = capsys.readouterr()
    assert "identica: row 3 contrastive seed 0 failed: ArithmeticError: the loss became nan" in err
    assert "| 2 |" in out


def test_listing_makes_no_folder(tmp_path, capsys):
    assert cli.main(["reproduce", "icml-table2", "--list", "--rows", "8", "--seeds", "0"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[0].strip() for line in out[:3]] == [
        *("row 8 identity seed 0", "row 8 supervised seed 0", "row 8 contrastive seed 0")
    ]
    assert out[-1] == "0 of 3 runs done"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["icml-table7"], "study must be one of"),
        (["icml-table1", "--rows", "1,,2"], "--rows must be whole numbers such as 1,3 or 1-4"),
        (
            ["icml-table1", "--rows", "13"],
            "--rows must lie between 1 and 12 for icml-table1, got 13",
        ),
        (["icml-table1", "--seeds", "a"], "--seeds must be whole numbers"),
        (["icml-table1", "--preset", "quick"], "--preset must be one of fast, paper"),
        (["icml-table1", "--engine", "slurm"], "--engine must be one of local, ray, dask"),
        (["icml-table1", "--workers", "0"], "--workers must be a whole number of at least 1"),
        (["icml-table1", "--address", "127.0.0.1:1"], "--address is for the engines ray and dask"),
        (["icml-table1", "--out", "taken"], "--out must be a folder"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(arguments, message, tmp_path, capsys):
    (tmp_path / "taken").write_text("mine")
    assert cli.main(["reproduce", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"identica: {message}")
    assert len(err.splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


@pytest.mark.parametrize("engine", ["ray", "dask"])
def test_an_unreachable_cluster_is_one_line_and_exit_2(engine, tmp_path, capsys, monkeypatch):
    pytest.importorskip({"ray": "ray", "dask": "distributed"}[engine])
    variable = {"ray": "RAY_ADDRESS", "dask": "DASK_SCHEDULER_ADDRESS"}[engine]
    monkeypatch.setenv(variable, "127.0.0.1:1")
    assert cli.main(["reproduce", "counting", "--engine", engine]) == 2
    assert capsys.readouterr().err == "identica: --address: nothing answers at 127.0.0.1:1\n"
    assert list(tmp_path.iterdir()) == []


def test_report_of_no_study(tmp_path, capsys):
    assert cli.main(["report", str(tmp_path)]) == 2
    assert "does not hold a study" in capsys.readouterr().err


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.glob("[!.]*") if path.is_file()}


def test_a_report_never_replaces_a_table_by_less(tmp_path, capsys):
    """As in a clone of a repository that keeps the table, but not the runs."""
    assert cli.main(["reproduce", "counting", "--rows", "1,2", "--seeds", "0,1"]) == 0
    folder = tmp_path / "identica-counting"
    before = contents(folder)
    gone = sorted(folder.glob("runs/contrastive-*"))[0]
    for lost in (gone, folder / "runs"):  # a seed, and everything
        shutil.rmtree(lost)
        capsys.readouterr()
        assert cli.main(["report", str(folder)]) == 2
        out, err = capsys.readouterr()
        assert (out, len(err.splitlines())) == ("", 1)
        assert f"{folder / 'table.json'} has more than the runs" in err
        assert contents(folder) == before
    assert "row 1 contrastive r2 (2 seeds, 0 here), row 2 contrastive r2 (2 seeds, 0 here)" in err
    assert cli.main(["report", str(folder), "--force"]) == 0
    assert json.loads((folder / "table.json").read_text()) == []


def test_reproduce_keeps_the_figures_whose_runs_are_gone(tmp_path, capsys):
    assert cli.main(["reproduce", "counting", "--rows", "1,2", "--seeds", "3,4"]) == 0
    folder = tmp_path / "identica-counting"
    before = json.loads((folder / "table.json").read_text())
    shutil.rmtree(folder / "runs")
    capsys.readouterr()
    assert cli.main(["reproduce", "counting", "--rows", "1", "--seeds", "0-2"]) == 0
    out, err = capsys.readouterr()
    first, second = json.loads((folder / "table.json").read_text())
    assert first["ours"] == {"mean": pytest.approx(0.2), "std": pytest.approx(0.2), "seeds": 3}
    assert second == before[1]
    assert "| 2 | 5 | 50.00 ± 10.00 | 70.00 ± 14.14 (2) |" in out
    assert err.splitlines()[-1] == (
        "identica: kept from the earlier table, as not all of their runs are here: "
        "row 2 contrastive r2 (2 seeds, 0 here)"
    )


FOREIGN = [
    *("", "{", "[]", "{}", "3", "null", "NaN", '"x"', "[3]", "[" * 100_000, "\ufeff{}", "9" * 5000),
    *('{"study": 3, "runs": []}', '{"study": "counting", "runs": [3]}', '{"study": "counting"}'),
    '{"study": "counting", "runs": [{"row": "1", "kind": "contrastive", "seed": 0, "run": "x"}]}',
    '{"study": "counting", "runs": [{"row": 1, "kind": [], "seed": 0, "run": "x"}]}',
    '[{"row": 1, "kind": "contrastive", "score": "r2", "ours": 3, "seconds": 1}]',
    '[{"row": 1, "kind": "contrastive", "score": "r2", "ours": {"mean": NaN}, "seconds": 1}]',
    '[{"row": 9, "kind": "x", "score": "y", "ours": {"mean": 1, "std": 0, "seeds": 2}, "seconds": 1}]',
    '{"kind": "contrastive"}',
    '{"scores": {"r2": NaN}, "seconds": 0, "pairs": 0, "seed": 0}',
    f'{{"scores": {{"r2": {"9" * 400}}}, "seconds": 0, "pairs": 0, "seed": 0}}',
    '{"scores": {"r2": 1}, "errors": [], "seconds": 0, "pairs": 0, "seed": 0}',
    '{"scores": {"r2": 1}, "errors": {"r2": "x"}, "seconds": 0, "pairs": 0, "seed": 0}',
]


def test_a_foreign_list_or_table_is_named(tmp_path, capsys):
    assert cli.main(["reproduce", "counting", "--rows", "1", "--seeds", "0", "--out", "out"]) == 0
    again = ["reproduce", "counting", "--rows", "1,2", "--seeds", "0", "--out", "out"]
    runs = sorted(tmp_path.glob("out/runs/*"))
    for name in ("study.json", "table.json"):
        path = tmp_path / "out" / name
        whole = path.read_bytes()
        for text in FOREIGN:
            if (name, text) == ("table.json", "[]"):
                continue  # the table of a study that has just begun
            path.write_text(text)
            before = contents(tmp_path / "out")
            capsys.readouterr()
            for command in (["report", "out"], again):
                assert cli.main(command) == 2, text
                err = capsys.readouterr().err
                assert len(err.splitlines()) == 1
                assert f"out/{name} " in err
            assert contents(tmp_path / "out") == before
            assert sorted(tmp_path.glob("out/runs/*")) == runs  # refused before any work
        path.write_bytes(whole)


@pytest.mark.parametrize("name", ["config.json", "result.json"])
def test_a_foreign_run_is_left_out_of_the_table(name, tmp_path):
    command = ["reproduce", "counting", "--rows", "1,2", "--seeds", "0", "--out", "out"]
    assert cli.main(command) == 0
    (path,) = (
        run / name
        for run in tmp_path.glob("out/runs/contrastive-*")
        if json.loads((run / "config.json").read_text())["row"] == 1
    )
    for text in FOREIGN:
        path.write_text(text)
        assert cli.main(["report", "out", "--force"]) == 0, text
        (record,) = json.loads((tmp_path / "out" / "table.json").read_text())
        assert record["row"] == 2


def test_what_a_killed_writer_left_is_removed(tmp_path):
    command = ["reproduce", "counting", "--rows", "1", "--seeds", "0", "--out", "out"]
    assert cli.main(command) == 0
    (tmp_path / "out" / ".table.json.123.tmp").write_text("[")
    assert cli.main(["report", "out"]) == 0
    assert not list(tmp_path.glob("out/.*.tmp"))


def test_without_a_study_all_are_listed(capsys):
    assert cli.main(["reproduce", "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(catalogue.STUDIES)
    for line, each in zip(lines, catalogue.STUDIES.values(), strict=True):
        assert line.endswith(each.title)
        assert f" {len(each.rows)} rows " in line
    assert cli.main(["reproduce"]) == 2
    assert capsys.readouterr().err == (
        "identica: STUDY must be given; identica reproduce --list shows all studies\n"
    )


def test_quiet_runs_show_no_progress(monkeypatch, tmp_path, capsys):
    def reproduce(*_, stream, **__):
        assert stream.name == os.devnull
        return Outcome(tmp_path, "the table")

    monkeypatch.setattr("identica.studies.runner.reproduce", reproduce)
    assert cli.main(["reproduce", "theorem1", "--quiet"]) == 0
    assert capsys.readouterr().err == ""
