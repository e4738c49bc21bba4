"""Tables of results/ on the pages."""

import json
import re

import evidence
import paste

TABLE = """# Title

| # | R², published | ours | MCC, published | ours | seconds |
| --- | --- | --- | --- | --- | --- |
| 1 | 99.42 ± 0.05 | 99.97 ± 0.01 (5) | – | 60.01 (1) | 9 |

In %, mean.
"""


def test_figures_of_one_score_share_a_column():
    lines = paste.side_by_side(TABLE).splitlines()
    assert lines[2] == "| # | R² | MCC | seconds |"
    assert lines[3].count("|") == 5
    assert lines[4] == "| 1 | 99.97 ± 0.01 (5)<br>*99.42 ± 0.05* | 60.01 (1) | 9 |"
    assert "published" in lines[6]


def test_figures_are_not_broken_into_lines():
    text = paste.unbroken("a ± b\n\n| 1 | 6.72 cm ± 0.45 cm (5) | 99.9 ± 0.1 (5) |\n")
    assert (
        text == "a ± b\n\n| 1 | 6.72\xa0cm\xa0±\xa00.45\xa0cm\xa0(5) | 99.9\xa0±\xa00.1\xa0(5) |\n"
    )


def test_some_rows_and_columns():
    assert paste.cut(TABLE, [1], [1, 6]) == "| # | seconds |\n| --- | --- |\n| 1 | 9 |"


def test_the_evidence_counts_what_is_in_the_files():
    lines = re.findall(r"`([\w-]+)` \| (\d+) \| (\S+) \| (.+?) \|", evidence.studies())
    folders = sorted(path.parent.name for path in evidence.RESULTS.glob("*/table.json"))
    assert sorted(name for name, *_ in lines) == folders
    short = [line.split("`")[1] for line in evidence.shortfalls().splitlines()[2:]]
    for name, figures, compared, good in lines:
        records = json.loads((evidence.RESULTS / name / "table.json").read_text())
        assert int(figures) == len(records)
        if compared != "–":
            assert int(compared) - int(good) == short.count(name)


def test_what_falls_short_is_what_the_table_says():
    records = json.loads((evidence.RESULTS / "icml-table1" / "table.json").read_text())
    below = {
        str(r["row"])
        for r in records
        if r["kind"] == "contrastive"
        and r["ours"]["mean"] < r["published"]["mean"] - max(r["published"]["std"], 0.002)
    }
    lines = [re.split(r" *\| *", line) for line in evidence.shortfalls().splitlines()]
    assert {line[2] for line in lines if line[1] == "`icml-table1`"} == below
