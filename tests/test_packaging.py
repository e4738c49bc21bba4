"""What is released: versions agree, and the package works without any extra."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import identica
from helpers import programs, without_extras

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def read(name):
    return (ROOT / name).read_text("utf-8")


def test_versions_and_dates_agree():
    newest = re.search(r"^## (\d\S*) – (\S+)$", read("CHANGELOG.md"), re.M)
    version, date = (
        re.search(rf"^{key}: (\S+)$", read("CITATION.cff"), re.M)[1]
        for key in ("version", "date-released")
    )
    assert {PROJECT["version"], identica.__version__, version, newest[1]} == {version}
    assert date == newest[2]
    assert read("CHANGELOG.md").index("\n## Unreleased\n") < newest.start()


def test_the_readme_says_which_python():
    least = PROJECT["requires-python"].removeprefix(">=")
    assert f"Python {least} or newer" in read("README.md")
    tested = re.findall(r"python: \[(.*)\]", read(".github/workflows/ci.yml"))
    classified = re.findall(r"Python :: (3\.\d+)", " ".join(PROJECT["classifiers"]))
    assert min(classified, key=lambda v: int(v[2:])) == least
    assert set(tested) == {", ".join(f'"{v}"' for v in classified)}


def test_the_paper_and_no_invented_authors():
    citation = read("CITATION.cff")
    assert PROJECT["urls"]["Paper"] in citation
    assert [author["name"] for author in PROJECT["authors"]] == ["The identica developers"]
    assert re.search(r'^authors:\n  - name: "The identica developers"\n\S', citation, re.M)


def test_everything_optional_is_left_out_below():
    """So that an extra added later is also tried without."""
    lists = PROJECT["optional-dependencies"]
    runtime = ("ray", "dask", "tensorboard", "files", "blender", "peers")
    named = {re.split(r"[\[><=]", need)[0] for extra in runtime for need in lists[extra]}
    assert named <= without_extras.EXTRAS


def test_the_package_works_without_any_extra(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "helpers.without_extras"],
        env=programs.environment(),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
