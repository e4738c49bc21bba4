"""The page of a study in a real browser, and what it shows."""

import re

import numpy as np
import pytest

from helpers import tiny
from helpers.browser import browser
from helpers.fakes import fake
from identica.metrics import linear_r2
from identica.runs import folder as runs
from identica.studies import find, report, table
from identica.studies.page import write_study_page
from identica.studies.runner import plan
from identica.studies.synthetic import HELD_OUT, align
from identica.studies.theorem1 import ROWS, Theorem1

SHOWN = """
return [...document.querySelectorAll("#scores tbody tr")].filter(tr => tr.offsetParent !== null)
  .map(tr => [...tr.cells].map(td => td.textContent.trim()));
"""
WIDTHS = "return [document.documentElement.scrollWidth, window.innerWidth]"


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The page of ICML table 2 with made-up scores, so that every verdict occurs."""
    study = find("icml-table2")

    def scores(row, kind, seed):
        published = study.rows[row - 1].published[kind].mean
        return published + (-0.05, 0.0, 0.05)[row % 3] + seed / 10_000

    folder = fake(tmp_path_factory.mktemp("study"), study, seeds=range(3), scores=scores)
    report(folder, study)
    return folder / "report.html"


def column(rows, number):
    return [row[number] for row in rows]


def test_a_reader_sorts_and_filters(page, tmp_path):
    with browser(tmp_path / "profile", 1280, 900) as window:
        window.open(page.as_uri())
        rows = window.script(SHOWN)
        assert len(rows) == 30
        numbers = [int(n) for n in column(rows, 0)]
        assert numbers == sorted(numbers)
        heads = [
            re.sub(r"\W+$", "", text)
            for text in window.script(
                "return [...document.querySelectorAll('#scores th')].map(th => th.textContent)"
            )
        ]
        ours, model = heads.index("ours (seeds"), heads.index("model")

        # a click sorts by number, the next one the other way round
        for direction in (1, -1):
            window.click(f"#scores th:nth-child({ours + 1}) button")
            found = [float(text.split()[0]) for text in column(window.script(SHOWN), ours)]
            assert found == sorted(found, reverse=direction < 0)
            assert len(set(found)) > 10
        window.click(f"#scores th:nth-child({model + 1}) button")
        found = column(window.script(SHOWN), model)
        assert found == sorted(found)
        assert (
            window.script("return document.querySelectorAll('#scores th[aria-sort]').length") == 1
        )

        # what is typed and chosen narrows it down
        window.type("#filter", "gennorm(3; 0.05)")
        assert {int(n) for n in column(window.script(SHOWN), 0)} == {2, 5, 7}
        window.script("score.value = 'contrastive MCC'; score.dispatchEvent(new Event('input'))")
        assert len(window.script(SHOWN)) == 3
        assert window.script("return shown.textContent") == "3"
        window.clear("#filter")
        window.type("#verdict", "below")
        below = {int(n) for n in column(window.script(SHOWN), 0)}
        assert below == {3, 6, 9}
        assert window.console() == []
        width, inner = window.script(WIDTHS)
        assert width <= inner


def test_on_a_phone_nothing_sticks_out(page, tmp_path):
    with browser(tmp_path / "profile", 390, 844, mobile=True) as window:
        window.open(page.as_uri())
        width, inner = window.script(WIDTHS)
        assert inner == 390
        assert width <= inner
        sticking_out = """
        return [...document.querySelectorAll("body *")].filter(e =>
          e.getBoundingClientRect().right > window.innerWidth + 1).map(e => e.outerHTML.slice(0, 80))
        """
        assert window.script(sticking_out) == []
        window.script("order.value = '0-'; order.dispatchEvent(new Event('change'))")
        assert column(window.script(SHOWN), 0)[0] == "10"
        window.script("verdict.value = 'above'; verdict.dispatchEvent(new Event('input'))")
        assert {int(n) for n in column(window.script(SHOWN), 0)} == {2, 5, 8}
        assert window.console() == []


@pytest.mark.parametrize("name", ["icml-table1", "workshop-table1"])
def test_no_column_is_cut_off(name, tmp_path):
    """Of the widest tables, at the width of a small laptop."""
    study = find(name)
    report(fake(tmp_path, study, seeds=range(5)), study)
    cut = """const [outer] = document.getElementsByClassName("scroll");
    return [outer.scrollWidth - outer.clientWidth, document.documentElement.scrollWidth - innerWidth]"""
    with browser(tmp_path / "profile", 1280, 900) as window:
        window.open((tmp_path / "report.html").as_uri())
        assert window.script(cut) == [0, 0]


def test_light_and_dark(page, tmp_path):
    colours = """const of = e => getComputedStyle(e), luminance = text => {
      const [r, g, b] = text.match(/[\\d.]+/g).map(n => Number(n) / 255)
        .map(c => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
      return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const contrast = e => {
      const [a, b] = [of(e).color, of(e.closest(".badge, .verdict, body")).backgroundColor].map(luminance);
      return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    };
    return [luminance(of(document.body).backgroundColor),
      Math.min(...[...document.querySelectorAll("p, td, h1, .badge, .verdict, a")].map(contrast))]"""
    with browser(tmp_path / "profile", 1280, 900) as window:
        paper = {}
        for scheme in ("light", "dark"):
            media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
            window.call("POST", "goog/cdp/execute", cmd="Emulation.setEmulatedMedia", params=media)
            window.open(page.as_uri())
            paper[scheme], least = window.script(colours)
            assert least >= 4.5  # WCAG, level AA
        assert paper["light"] > 0.9
        assert paper["dark"] < 0.1


def test_the_page_stands_alone_and_says_what_theory_says(page):
    text = page.read_text()
    assert not re.search(r"""(src|href)=["']?(?!data:|#)[^"' >]""", text)
    assert not re.search(r"@import|url\(|https?://", text)
    assert text.count("Guaranteed by Theorem 6") == 2
    assert text.count("Theory forbids a high score here") == 3
    # rows 9 and 6 are below, 8 above: fine for 9, which must fail, and not for 8
    badges = re.findall(
        r'data-score="contrastive MCC" data-verdict="(\w+)">.*?"badge (\w+)">(.) \1<',
        text,
        re.DOTALL,
    )
    assert badges[5] == ("below", "bad", "✗")
    assert badges[7] == ("above", "bad", "✗")
    assert badges[8] == ("below", "good", "✓")
    assert badges[1] == ("above", "good", "✓")
    # what the marks mean is said in words
    assert "Expected: within or above. Where the theory forbids a high score" in text
    assert "of 0 " not in text


def test_every_trained_row_has_its_curves_and_its_factors(tmp_path):
    study = tiny.study()
    names = {}
    for item in plan(study, tmp_path, rows=[1, 3], seeds=[0, 1], preset=tiny.recipe(20)):
        if item.job.kind == "contrastive":
            names[item.uses[0]] = item.job.name
            runs.execute(tmp_path / "runs" / item.job.name, item.job.config, item.job.run)
    table.register(tmp_path, study, names)
    report(tmp_path, study)
    text = (tmp_path / "report.html").read_text()
    assert text.count("data:image/png;base64,") == 4
    assert text.count(" in training, by seed<") == 2
    assert "seed 0, after the best linear map" in text
    assert "seed 0, after the best order, sign and scale" in text

    # the codes in the picture are those of the run: they give its score
    entry = table.collect(tmp_path, study)[0]
    run = entry.runs[0]
    z, codes = study.read_back(entry.row, run).recovered(run, size=HELD_OUT)
    assert linear_r2(z, codes) == pytest.approx(run.result["scores"]["r2"], abs=1e-6)

    # what is damaged costs its picture, not the page
    (run.folder / "model.safetensors").write_text("torn")
    (run.folder / "metrics.jsonl").write_text("{torn")
    report(tmp_path, study)
    assert (tmp_path / "report.html").read_text().count("data:image/png;base64,") == 3


def test_aligned_codes_lie_on_the_factors_where_the_score_is_1():
    rng = np.random.default_rng(0)
    z = rng.uniform(size=(500, 3))
    permuted, _ = align(z, -3 * z[:, [2, 0, 1]] + 5, "mcc")
    mixed, _ = align(z, z @ rng.normal(size=(3, 3)) + 1, "r2")
    assert np.allclose(permuted, z)
    assert np.allclose(mixed, z)


def test_theorem_1_has_its_picture(tmp_path):
    study = Theorem1("theorem1", "Theorem 1", ROWS[:2])
    report(fake(tmp_path, study), study)
    text = (tmp_path / "report.html").read_text()
    assert text.count("data:image/png;base64,") == 2
    assert "Loss minus log M plus log|Z| against M, 2 seeds" in text
    assert set(re.findall(r'class="verdict (\w*)"', text)) == {
        ""
    }  # neither a promise nor a warning
    write_study_page(tmp_path / "empty.html", study, [])
    assert "No run is finished yet" in (tmp_path / "empty.html").read_text()


def test_a_study_without_published_figures_has_notes_in_place_of_verdicts(tmp_path, monkeypatch):
    study = find("recordings")
    monkeypatch.setattr(study, "absent", lambda kind: "")
    monkeypatch.setattr(study, "notes", lambda runs: {"diagnosis": f"{len(runs)} of {len(runs)}"})
    report(fake(tmp_path, study, seeds=(0,)), study)
    with browser(tmp_path / "profile", 1280, 900) as window:
        window.open((tmp_path / "report.html").as_uri())
        rows = window.script(SHOWN)
        assert len(rows) == sum(len(study.targets(row)) for row in study.rows)
        assert {row[-2] for row in rows} == {"1 of 1"}
        heads = window.script(
            "return [...document.querySelectorAll('#scores th')].map(th => th.textContent.trim())"
        )
        assert heads[-2:] == ["diagnosis", "seconds"]
        assert not {"verdict", "difference", "published"} & set(heads)
        assert "as expected" not in window.script("return document.body.textContent")
        window.type("#filter", "achilles")
        assert {row[0] for row in window.script(SHOWN)} == {"9"}
        window.script("score.value = 'pca, median error'; score.dispatchEvent(new Event('input'))")
        assert len(window.script(SHOWN)) == 1
