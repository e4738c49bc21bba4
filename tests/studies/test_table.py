import json
import statistics

import pytest

from helpers import tiny
from helpers.counting import Count, Counting
from helpers.counting import study as counting
from helpers.fakes import fake
from identica import InputError
from identica._io import write_json
from identica.studies import report, reproduce, table
from identica.studies.published import Published
from identica.studies.runner import listing, plan
from identica.studies.study import Ours, Target
from identica.studies.synthetic import SyntheticTable
from identica.studies.theorem1 import ROWS, Theorem1


def test_the_records_have_the_form_that_others_rely_on(tmp_path):
    report(fake(tmp_path, tiny.study(), preset=tiny.recipe()), tiny.study())
    records = json.loads((tmp_path / "table.json").read_text())
    assert len(records) == 12
    assert records[5] == {
        "row": 2,
        "kind": "contrastive",
        "score": "r2",
        "published": {"mean": 0.5, "std": 0.4},
        "ours": {
            "mean": pytest.approx(0.0205),
            "std": pytest.approx(0.001 / 2**0.5),
            "seeds": 2,
        },
        "seconds": 2.0,
    }
    assert [(r["row"], r["kind"]) for r in records[:3]] == [
        (1, "identity"),
        (1, "supervised"),
        (1, "contrastive"),
    ]


def test_one_seed_has_no_spread(tmp_path):
    report(fake(tmp_path, tiny.study(), seeds=(0,), preset=tiny.recipe()), tiny.study())
    text = (tmp_path / "table.md").read_text(encoding="utf-8")
    assert " (1) |" in text
    assert "± 0.00 (1)" not in text


def test_the_limits_of_theorem_1_come_with_their_unit(tmp_path):
    study = Theorem1("theorem1", "Theorem 1", ROWS)
    text = report(fake(tmp_path, study), study)
    first = json.loads((tmp_path / "table.json").read_text())[0]
    assert first["published"] == {"mean": ROWS[0].cross_entropy, "std": 0.0}
    assert (first["score"], first["unit"]) == ("M=10", "nats")
    assert first["ours"]["error"] == pytest.approx(0.01 / 2**0.5)
    assert "| 1 | sphere | uniform | vMF(1) | 3.1894 | 0.0105 ± 0.0071 (2) |" in text


def test_the_markdown_reads_as_the_papers_table(tmp_path):
    study = tiny.study()
    text = report(fake(tmp_path, study, preset=tiny.recipe()), study)
    assert (tmp_path / "table.md").read_text() == text
    head, rule, first, *_ = text.splitlines()[2:]
    assert "p(z̃\\|z)" in head
    columns = {line.replace("\\|", "").count("|") for line in (head, rule, first)}
    assert len(columns) == 1
    assert first.startswith(
        "| 1 | sphere | uniform | vMF(5) | sphere | vMF(5) | yes | orthogonal "
        "| 70.00 ± 5.00 | 1.05 ± 0.07 (2) |"
    )


def test_a_partial_study_gives_a_partial_table(tmp_path):
    study = counting([Count(1), Count(2), Count(3)])
    skip = [(1, "contrastive", 0), (3, "contrastive", 0), (3, "contrastive", 1)]
    report(fake(tmp_path, study, skip=skip), study)
    records = json.loads((tmp_path / "table.json").read_text())
    assert [(r["row"], r["ours"]["seeds"], r["ours"]["std"]) for r in records] == [
        (1, 1, 0.0),
        (2, 2, pytest.approx(0.001 / 2**0.5)),
    ]


def test_a_study_without_any_result_says_so(tmp_path):
    study = counting([Count(1)])
    table.register(tmp_path, study, {})
    assert "No run is finished yet" in report(tmp_path, study)
    assert json.loads((tmp_path / "table.json").read_text()) == []
    assert "No run is finished yet" in (tmp_path / "report.html").read_text()


def test_damaged_results_are_left_out_of_the_table(tmp_path):
    study = counting([Count(1)])
    fake(tmp_path, study, seeds=(0, 1, 2))
    damaged, _, foreign = sorted(tmp_path.glob("runs/*/result.json"))
    damaged.write_text('{"scores"')
    write_json(foreign, {"scores": {"another": 1.0}, "seconds": 0, "pairs": 0, "seed": 9})
    report(tmp_path, study)
    assert json.loads((tmp_path / "table.json").read_text())[0]["ours"]["seeds"] == 1


def test_what_was_asked_for_later_is_added(tmp_path):
    study = counting([Count(1), Count(2)])
    assert reproduce(study, rows=[1], seeds=[0], out=tmp_path).failures == {}
    before = (tmp_path / "table.json").read_text()
    outcome = reproduce(study, rows=[1, 2], seeds=[0, 1], out=tmp_path, workers=2)
    assert "(2)" in outcome.table
    records = json.loads((tmp_path / "table.json").read_text())
    assert [r["ours"]["seeds"] for r in records] == [2, 2]
    assert json.loads(before)[0]["ours"]["seeds"] == 1


def test_failures_are_listed_and_the_rest_is_in_the_table(tmp_path):
    study = counting([Count(1), Count(2, fails=True)])
    outcome = reproduce(study, seeds=[0], out=tmp_path)
    assert outcome.failures == {
        "row 2 contrastive seed 0": "ArithmeticError: the loss became nan at step 0"
    }
    assert [r["row"] for r in json.loads((tmp_path / "table.json").read_text())] == [1]


def test_a_folder_of_another_study_is_refused(tmp_path):
    table.register(tmp_path, counting([Count(1)]), {})
    other = Counting("other", "Other", [Count(1)])
    with pytest.raises(InputError, match="holds the study counting"):
        reproduce(other, out=tmp_path)
    with pytest.raises(InputError, match=r"has no study\.json"):
        report(tmp_path / "nowhere")
    (tmp_path / "study.json").write_text('{"study": "x"}')
    with pytest.raises(InputError, match="not the list of a study's runs"):
        report(tmp_path)


def test_the_list_says_what_is_done_and_what_would_run(tmp_path):
    study = counting([Count(1), Count(2)])
    fake(tmp_path, study, skip=[(2, "contrastive", 1)])
    first, second, third, fourth = plan(study, tmp_path, seeds=[0, 1])
    (tmp_path / "runs" / second.job.name / "result.json").write_text("{")
    (tmp_path / "runs" / fourth.job.name).mkdir(parents=True)
    (tmp_path / "runs" / fourth.job.name / "checkpoint.safetensors").touch()
    lines = listing(plan(study, tmp_path, seeds=[0, 1])).splitlines()
    assert lines[0] == f"row 1 contrastive seed 0  {first.job.name}  done"
    assert "to do again" in lines[1]
    assert str(tmp_path / "runs" / second.job.name / "result.json") in lines[1]
    assert lines[2].endswith("done")
    assert third.state == "done"
    assert lines[3].endswith("begun")
    assert lines[-1] == "2 of 4 runs done"


def test_shared_runs_are_listed_once(tmp_path):
    study = SyntheticTable("tiny", "Tiny", tiny.ROWS)
    planned = plan(study, tmp_path, rows=[1, 2], seeds=[0], preset=tiny.recipe())
    assert [item.label for item in planned] == [
        "rows 1, 2 identity seed 0",
        "rows 1, 2 supervised seed 0",
        "row 1 contrastive seed 0",
        "row 2 contrastive seed 0",
    ]


@pytest.mark.parametrize("content", [b"\xe9", b"[]", b'{"study": "another", "runs": []}'])
def test_a_foreign_folder_is_left_as_it_is(content, tmp_path):
    (tmp_path / "study.json").write_bytes(content)
    with pytest.raises(InputError):
        table.register(tmp_path, tiny.study(), {})
    assert [path.name for path in tmp_path.iterdir()] == ["study.json"]


@pytest.mark.parametrize("values", [[0.25], [0.25, 1.0], [0.25, 0.5, 0.0, 1.0]])
def test_seeds_come_down_to_a_mean_or_a_median_with_its_spread(values):
    results = [{"scores": {"r2": value}} for value in values]
    n, mean, middle = len(values), statistics.fmean(values), statistics.median(values)
    spread = statistics.stdev(values) if n > 1 else 0.0
    assert table.pooled(results, "r2") == pytest.approx((mean, spread, n, spread / n**0.5))
    deviation = statistics.fmean(abs(value - middle) for value in values)
    found = table.pooled(results, "r2", "median")
    assert found == pytest.approx((middle, deviation, n, spread / n**0.5))
    # the error of a mean of independent figures, where each has its own
    known = [result | {"errors": {"r2": 0.1 * k}} for k, result in enumerate(results, 1)]
    error = sum((0.1 * k) ** 2 for k in range(1, n + 1)) ** 0.5 / n
    assert table.pooled(known, "r2").error == pytest.approx(error)
    known[0] = results[0]
    assert table.pooled(known, "r2").error == pytest.approx(spread / n**0.5)


def test_figures_in_words():
    study = counting([Count(1)])
    (target,) = study.targets(study.rows[0])
    for seeds, words in ((1, "50.00 (1)"), (2, "50.00 ± 25.00 (2)")):
        entry = table.Entry(study.rows[0], target, Ours(0.5, 0.25, seeds, 0.0), 1.0, {}, [])
        assert table.ours(study, entry) == words
    assert table.published(study, target) == "50.00 ± 10.00"
    alone = Target("contrastive", "r2", Published(0.5, None))
    assert table.published(study, alone) == "50.00"
    assert table.published(study, Target("contrastive", "r2", None)) == "–"


def test_what_a_table_has_more_of_is_told_and_kept(tmp_path):
    study = counting([Count(row) for row in range(1, 7)])
    report(fake(tmp_path, study, seeds=(0, 1)), study)
    known = table.recorded(tmp_path, study)
    whole = table.collect(tmp_path, study)
    assert table.more(known, whole) == ""
    assert known == {
        (e.row.row, "contrastive", "r2"): (e.ours, pytest.approx(e.seconds), {}) for e in whole
    }
    for path in sorted((tmp_path / "runs").glob("*/result.json"))[:9]:
        path.unlink()
    left = table.collect(tmp_path, study)
    runs = {entry.row.row: len(entry.runs) for entry in left}
    fewer = [f"row {n} contrastive r2 (2 seeds, {runs.get(n, 0)} here)" for n in range(1, 7)]
    fewer = [words for words in fewer if "2 here" not in words]
    rest = f" and {len(fewer) - 3} more" if len(fewer) > 3 else ""
    assert table.more(known, left) == ", ".join(fewer[:3]) + rest
    kept = table.collect(tmp_path, study, known)
    assert [(e.row.row, e.ours) for e in kept] == [(e.row.row, e.ours) for e in whole]
    assert {e.row.row: len(e.runs) for e in kept if e.runs} == runs


@pytest.mark.parametrize("number", [1, 2, 3, 4, 5])
def test_three_scores_are_named_and_the_others_counted(number):
    known = {(row, "contrastive", "r2"): (Ours(0.5, 0.1, 2, 0.0), 1.0, {}) for row in range(number)}
    words = table.more(known, [])
    assert words.count("2 seeds, 0 here") == min(number, 3)
    assert ("more" in words) == (number > 3)
    assert number <= 3 or words.endswith(f" and {number - 3} more")


@pytest.mark.parametrize(
    "content",
    [
        *("{}", "[3]", '[{"row": 1, "kind": "contrastive", "score": "r2"}]', "3"),
        '[{"row": true, "kind": "contrastive", "score": "r2", "seconds": 1, "ours": {}}]',
    ],
)
def test_a_foreign_table_is_refused(content, tmp_path):
    study = counting([Count(1)])
    (tmp_path / "table.json").write_text(content)
    with pytest.raises(InputError, match=r"table\.json is not the table of a study"):
        table.recorded(tmp_path, study)
    figure = {"mean": 0.5, "std": 0.4, "seeds": 4}
    record = {"row": 1, "kind": "contrastive", "score": "r2", "seconds": 2, "ours": figure}
    write_json(tmp_path / "table.json", [record])
    # the standard error, where the table does not say
    assert table.recorded(tmp_path, study) == {
        (1, "contrastive", "r2"): (Ours(0.5, 0.4, 4, pytest.approx(0.2)), 2, {})
    }
    write_json(tmp_path / "table.json", [record | {"score": "mcc"}])
    with pytest.raises(InputError, match="counting does not have: row 1 contrastive mcc"):
        table.recorded(tmp_path, study)
