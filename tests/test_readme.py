import json
import re
import shlex
import textwrap
from pathlib import Path

import numpy as np
import pandas as pd

from identica import Training, cli
from identica.studies import find
from identica.training import train

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_code_of_the_readme_runs(monkeypatch, capsys):
    """As written, but for the length of the training."""

    def short(objective, sample, training=None, **options):
        return train(objective, sample, Training(steps=3, batch=32), **options)

    monkeypatch.setattr("identica.estimator.fit.train", short)
    blocks = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert blocks
    names = {}
    for block in blocks:
        exec(block, names)
    score, guaranteed = capsys.readouterr().out.splitlines()
    assert 0 < float(score) < 1
    assert guaranteed.startswith("Guaranteed by Theorem 6")
    assert "order, sign and scale" in guaranteed


def test_from_a_table_to_codes_and_a_diagnosis(monkeypatch, tmp_path, capsys):
    """The indented code for station.csv, as written, but for the length of the training."""
    x = np.random.default_rng(0).normal(size=(600, 3)).cumsum(axis=0)
    time = pd.date_range("2024-01-01", periods=len(x), freq="h", name="time")
    table = pd.DataFrame(x, time, ["heat", "wind", "rain"]).assign(weather="fine")
    table.to_csv(tmp_path / "station.csv")
    monkeypatch.chdir(tmp_path)

    def short(objective, sample, training=None, **options):
        return train(objective, sample, Training(steps=3, batch=32), **options)

    monkeypatch.setattr("identica.estimator.fit.train", short)
    indented = re.findall(r"(?:^    .*\n|^\n)+", README, re.MULTILINE)
    [code] = [textwrap.dedent(block) for block in indented if "read_csv" in block]
    exec(code, {})
    assert "Verdict: " in capsys.readouterr().out
    assert (tmp_path / "codes.png").read_bytes().startswith(b"\x89PNG")


def test_the_commands_of_the_readme_exist():
    lines = re.findall(r"^    (identica .*)$", README, re.MULTILINE)
    assert len(lines) > 4
    for line in lines:
        args = cli.parser().parse_args(shlex.split(line, comments=True)[1:])
        if getattr(args, "study", None) is not None:
            find(args.study)


def test_every_module_of_the_readme_exists():
    _, table = README.split("| module | contents |")
    cells = re.findall(r"^\| (`.*?`) \|", table, re.MULTILINE)
    named = {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}
    package = ROOT / "src" / "identica"
    there = {path.stem for path in package.iterdir() if not path.name.startswith(("_", "."))}
    assert len(named) > 10
    assert named <= there


def test_the_figures_are_those_of_the_table():
    table = json.loads((ROOT / "results" / "icml-table1" / "table.json").read_text("utf-8"))
    figures = {
        entry["row"]: (entry["published"], entry["ours"])
        for entry in table
        if entry["kind"] == "contrastive"
    }
    for row in (1, 3, 7, 11):
        published, ours = (
            f"{100 * found['mean']:.2f} ± {100 * found['std']:.2f}" for found in figures[row]
        )
        assert f"| {published} | {ours} ({figures[row][1]['seeds']}) |" in README
