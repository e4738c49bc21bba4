import subprocess
import sys

import pytest

from identica.cli import main


def test_help_names_every_command(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--help"])
    assert stop.value.code == 0
    assert "demo" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["demonstrate"],
        ["demo", "--sed", "1"],
        ["demo", "--seed", "-1"],
        ["demo", "--seed", "x"],
    ],
)
def test_bad_options_are_one_line_and_exit_2(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1


def test_an_output_folder_that_is_a_file(tmp_path, capsys):
    path = tmp_path / "taken"
    path.write_text("mine")
    assert main(["demo", "--out", str(path)]) == 2
    assert "out must be a folder" in capsys.readouterr().err
    assert path.read_text() == "mine"


def test_a_folder_of_another_run_is_refused(tmp_path, capsys):
    (tmp_path / "config.json").write_text('{"job": "another"}')
    assert main(["demo", "--out", str(tmp_path)]) == 2
    err = capsys.readouterr().err
    assert "holds another run" in err
    assert len(err.splitlines()) == 1
    assert (tmp_path / "config.json").read_text() == '{"job": "another"}'


def test_ctrl_c_exits_130(monkeypatch, capsys):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("identica.demo.demo", interrupted)
    assert main(["demo"]) == 130
    assert "goes on from here" in capsys.readouterr().err


@pytest.mark.parametrize("code", ["import identica", "from identica.cli import parser; parser()"])
def test_importing_and_help_load_nothing_heavy(code):
    """What makes an import slow is torch and its like: none may be loaded."""
    check = (
        "import sys; print([m for m in ('torch', 'numba', 'scipy', 'sklearn') if m in sys.modules])"
    )
    run = [sys.executable, "-c", f"{code}; {check}"]
    assert subprocess.run(run, capture_output=True, text=True, check=True).stdout.strip() == "[]"


def test_every_public_name_is_there():
    import identica

    assert all(getattr(identica, name) is not None for name in identica.__all__)
    assert set(identica.__all__) == set(identica._HOME)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        identica.nothing  # noqa: B018
