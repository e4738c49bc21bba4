"""A sample of `python -m validation.bad_commands`, which takes minutes."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1]))
from identica.cli import completion, parser
from validation import _command_lines, bad_commands


def test_every_option_of_every_command_is_among_them():
    given = bad_commands.commands()
    for words, made in completion.commands(parser()):
        command = words[1:]
        asked = {
            word.partition("=")[0]
            for line in given
            if line[: len(command)] == command
            for word in line[len(command) :]
        }
        for option in completion.options(made):
            if not {"--help", "--quiet", "--version"} & set(option.option_strings):
                assert asked & set(option.option_strings), (command, option.option_strings)


def test_there_are_many_and_none_can_harm_a_device():
    found = bad_commands.commands()
    assert len(found) > 500
    first = {command[0] for command in found if command}
    assert first >= {"demo", "fit", "reproduce", "report", "data"}
    assert not [word for command in found for word in command if word.startswith("/dev")]


def test_a_sample_is_refused_in_one_line():
    total, faults = bad_commands.run(list(_command_lines.fit())[::11])
    assert total > 20
    assert faults == []


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ((0, "identica: no\n", ""), "wrong exit code"),
        ((1, "identica: no\n", ""), "wrong exit code"),
        ((2, "identica: no\nmore\n", ""), "not one line on stderr"),
        ((2, "", ""), "not one line on stderr"),
        ((None, "", "Traceback\nValueError: no"), "traceback"),
    ],
)
def test_faults_are_found(monkeypatch, answer, kind):
    monkeypatch.setattr(bad_commands, "answer", lambda command: answer)
    assert [fault.kind for fault in bad_commands.run([("fit",)])[1]] == [kind]


def test_what_is_left_behind_is_found_and_cleared_away(monkeypatch):
    def leave(command):
        Path("left").write_text("behind")
        return 2, "identica: no\n", ""

    monkeypatch.setattr(bad_commands, "answer", leave)
    faults = bad_commands.run([("fit",), ("demo",)])[1]
    assert [fault.detail for fault in faults] == ["left", "left"]
