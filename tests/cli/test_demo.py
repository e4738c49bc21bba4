import json
import re
from dataclasses import replace

import numpy as np
import pytest

from helpers.browser import browser
from identica import Training
from identica.cli import main
from identica.studies import demo


@pytest.fixture
def small(monkeypatch):
    short = Training(steps=4, batch=32, score_every=2)
    for name in ("DEMO", "DEMO_SUPERVISED"):
        monkeypatch.setattr(demo, name, replace(getattr(demo, name), training=short))
    monkeypatch.setattr(demo, "HELD_OUT", 256)


def test_the_demo_leaves_a_run_and_a_page(small, tmp_path, capsys):
    assert main(["demo", "--out", str(tmp_path), "--seed", "3"]) == 0
    out, err = capsys.readouterr()
    assert re.search(r"contrastive\s+0\.\d{4}\s+0\.9986", out)
    assert "contrastive:" in err  # the progress bar
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["seed"] == 3
    assert result["pairs"] == 4 * 32
    assert all(0 <= score <= 1 for score in result["scores"].values())
    names = {path.name for path in tmp_path.iterdir()}
    assert names >= {
        "config.json",
        "metrics.jsonl",
        "result.json",
        "model.safetensors",
        "report.html",
    }


def test_the_page_needs_no_other_file_and_tells_all(small, tmp_path):
    page = demo.demo(tmp_path, seed=0, progress=False).read_text()
    assert not re.search(r'(src|href)="(?!data:)', page)
    for word in ("rotation or reflection", "Theorem 2", "R² published", "0.9986", "symmetric"):
        assert word in page
    assert "Not guaranteed" not in page
    assert page.count("<img") == 4


def test_on_a_phone_every_figure_of_the_table_is_in_sight(small, tmp_path):
    page = demo.demo(tmp_path, seed=0, progress=False)
    seen = """return [innerWidth, document.documentElement.scrollWidth,
      [...document.querySelectorAll("table td")].map(td => td.getBoundingClientRect())
        .filter(box => box.left < 0 || box.right > innerWidth || !box.width).length]"""
    with browser(tmp_path / "profile", 390, 844, mobile=True) as window:
        window.open(page.as_uri())
        assert window.script(seen) == [390, 390, 0]
        assert window.console() == []


def test_a_second_call_trains_nothing_again(small, tmp_path, monkeypatch, capsys):
    demo.demo(tmp_path, seed=0, progress=False)
    first = (tmp_path / "result.json").read_text()

    def never(*args, **kwargs):
        raise AssertionError("trained again")

    monkeypatch.setattr("identica.training.Contrastive.forward", never)
    demo.demo(tmp_path, seed=0, progress=False)
    assert (tmp_path / "result.json").read_text() == first
    assert main(["demo", "--out", str(tmp_path), "--seed", "1"]) == 2
    assert "holds another run" in capsys.readouterr().err


def test_directions_are_compared_with_the_uniform_sphere(small, tmp_path, monkeypatch):
    """Whatever radius was learnt."""
    seen = []
    monkeypatch.setattr("identica.theory.distance_from_uniform", lambda h, _: seen.append(h) or 0.0)
    demo.demo(tmp_path, seed=0, progress=False)
    assert np.linalg.norm(seen[0], axis=1) == pytest.approx(1)
