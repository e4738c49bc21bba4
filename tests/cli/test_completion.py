import shutil
import subprocess

import pytest

from identica.cli import COMMANDS, main
from identica.cli.reproduce import STUDIES
from identica.studies import catalogue


def script(shell, capsys):
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


@pytest.fixture
def complete(capsys):
    """What bash offers after some words, the last of which is being typed."""
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("needs bash")
    made = script("bash", capsys)

    def offered(*words):
        line = " ".join(f"'{word}'" for word in ("identica", *words))
        typed = f"COMP_WORDS=({line}); COMP_CWORD={len(words)}; _identica"
        code = f"{made}\n{typed}; printf '%s\\n' \"${{COMPREPLY[@]}}\""
        run = subprocess.run([bash, "-c", code], capture_output=True, text=True, check=True)
        assert run.stderr == ""
        return run.stdout.split()

    return offered


def test_bash_completes_commands_options_and_names(complete):
    assert complete("") == list(COMMANDS)
    assert complete("re") == ["reproduce", "report"]
    assert complete("data", "k") == ["kitti-masks"]
    assert complete("data", "3dident", "") == ["build", "check", "show"]
    assert complete("reproduce", "icml") == ["icml-table1", "icml-table2", "icml-table4"]
    assert complete("reproduce", "--list", "the") == ["theorem1"]
    assert complete("reproduce", "theorem1", "--preset", "") == ["fast", "paper"]
    assert complete("fit", "x.csv", "--mis") == ["--missing"]
    assert complete("fit", "x.csv", "--missing", "d") == ["drop"]
    assert complete("completion", "") == ["bash", "zsh", "fish"]


def test_files_are_completed_where_words_are_not_known(complete):
    for words in (["fit", ""], ["fit", "--out", ""], ["reproduce", "--out", ""]):
        assert complete(*words) == []  # and `-o default` takes over


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_know_the_same_words(shell, capsys):
    made = script(shell, capsys)
    for word in (*COMMANDS, *STUDIES, "kitti-masks", "missing", "unbounded"):
        assert word in made
    if program := shutil.which(shell):
        subprocess.run([program, "-n"], input=made, text=True, check=True)


def test_text_in_fish_is_quoted(capsys):
    assert r"-d 'show program\'s version number and exit'" in script("fish", capsys)


def test_the_studies_are_all_of_them():
    assert list(catalogue.STUDIES) == list(STUDIES)
