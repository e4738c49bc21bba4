import errno
import io
import os
import signal
import subprocess
import sys
import time
import weakref

import numpy as np
import pytest

from identica.cli import main, parser
from identica.cli.arguments import subcommands

# otherwise argparse itself writes, and says nothing if it cannot
BUFFERED = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}


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
        ["fit", "x.npy", "--seed", "-1"],
        ["fit", "x.npy", "--batch", "1.5"],
        ["completion", "tcsh"],
        ["demo", "--seed", "9" * 5000],  # more digits than Python reads
    ],
)
def test_bad_options_are_one_line_and_exit_2(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1


def test_a_misspelt_option_is_pointed_out_with_the_help_of_its_command(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["fit", "x.npy", "--lags", "2"])
    assert stop.value.code == 2
    wrong = "unrecognized arguments: --lags 2, did you mean --lag?"
    assert capsys.readouterr().err == f"identica fit: {wrong} (see identica fit --help)\n"
    with pytest.raises(SystemExit):
        main(["data", "dsprites", "show", "a.npz", "b.npz"])
    wrong = "unrecognized arguments: b.npz (see identica data dsprites show --help)\n"
    assert capsys.readouterr().err == f"identica data dsprites show: {wrong}"


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

    monkeypatch.setattr("identica.studies.demo.demo", interrupted)
    assert main(["demo"]) == 130
    assert "resumes from here" in capsys.readouterr().err


def test_sigterm_cleans_up_and_exits_143(monkeypatch, capsys):
    cleaned = []

    def terminated(*args, **kwargs):
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            signal.pause()
        finally:
            os.kill(os.getpid(), signal.SIGTERM)  # as `timeout` does, to the whole group
            cleaned.append(True)

    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr("identica.studies.demo.demo", terminated)
    assert main(["demo"]) == 143
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert cleaned
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_no_signal_is_lost_in_a_callback(number, code, monkeypatch, capsys):
    """Python drops what is raised there: matplotlib has many, so a report could not be stopped."""

    class Watched:
        pass

    def draw(*args, **kwargs):
        watched = Watched()
        reference = weakref.ref(watched, lambda _: os.kill(os.getpid(), number))
        del watched
        time.sleep(60)
        return reference

    monkeypatch.setattr("identica.studies.demo.demo", draw)
    assert main(["demo"]) == code
    assert capsys.readouterr().err == "identica: stopped; the same command resumes from here\n"


def test_signals_that_are_ignored_stay_so(monkeypatch):
    monkeypatch.setattr(
        "identica.studies.demo.demo", lambda *_, **__: signal.raise_signal(signal.SIGINT)
    )
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # as for a script's `identica demo &`
    try:
        assert main(["demo"]) == 0
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_compiled_code_may_turn_ctrl_c_into_an_error_of_its_own(monkeypatch, capsys):
    def draw(*args, **kwargs):
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            raise ValueError("Invalid affine transformation matrix") from None

    monkeypatch.setattr("identica.studies.demo.demo", draw)
    assert main(["demo"]) == 130
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (OSError(errno.ENOSPC, "No space left", "out/table.md"), "out/table.md: No space left"),
        (OSError(errno.ENOLCK, "No locks available"), "No locks available"),
        (OSError("broken\nfile"), "broken file"),
        (MemoryError("Unable to allocate 1 TiB"), "not enough memory: Unable to allocate 1 TiB"),
    ],
)
def test_what_the_system_refuses_is_one_line_and_exit_2(error, message, monkeypatch, capsys):
    def refused(*args, **kwargs):
        raise error

    monkeypatch.setattr("identica.studies.demo.demo", refused)
    assert main(["demo"]) == 2
    assert capsys.readouterr() == ("", f"identica: {message}\n")


def test_seeds_have_63_bits(tmp_path, capsys):
    for seed in ("99999999999999999999", str(2**63)):
        assert main(["demo", "--seed", seed, "--out", str(tmp_path / "out")]) == 2
        assert "seed must be a whole number of at least 0 and at most" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("redirection", "code", "message"),
    [
        (">/dev/full", 2, "identica: stdout: No space left on device\n"),
        (">&-", 2, "identica: standard output is closed: "),
        ("2>&- >/dev/full", 2, ""),
        ("2>/dev/full >&2", 2, ""),
    ],
)
def test_output_that_cannot_be_written(redirection, code, message):
    line = f'exec "{sys.executable}" -m identica.cli --version {redirection}'
    run = subprocess.run(["sh", "-c", line], capture_output=True, text=True, env=BUFFERED)
    assert run.returncode == code
    assert run.stderr.startswith(message)
    assert len(run.stderr.splitlines()) == (1 if message else 0)


def test_nobody_reads_the_output():
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "identica.cli", "--version"]
    run = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, env=BUFFERED)
    os.close(write)
    assert (run.returncode, run.stderr) == (128 + signal.SIGPIPE, b"")


def test_file_names_that_the_terminal_cannot_show(monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr("sys.stdout", stream)
    monkeypatch.setattr("identica.studies.runner.report", lambda folder, **_: "R²")
    assert main(["report", os.fsdecode(b"caf\xe9")]) == 0
    stream.seek(0)
    assert stream.read() == "R\\xb2\nreport: caf\\udce9/report.html\n"


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


# --- the same everywhere ----------------------------------------------------------------------------


def leaves(made=None, path=()):
    """Every command that does something, as words, with its parser."""
    made = parser() if made is None else made
    below = list(subcommands(made))
    for name, _, inner in below:
        yield from leaves(inner, (*path, name))
    if not below:
        yield path, made


def test_options_have_the_same_names_and_meaning_everywhere():
    found = {}
    for path, made in leaves():
        options = {flag: action for action in made._actions for flag in action.option_strings}
        assert {"--help", "--quiet", "-q"} <= options.keys(), path
        assert not options.keys() & {"--output", "--random-state", "--jobs", "--silent"}, path
        found[path] = options
    for path in (("demo",), ("fit",)):
        assert found[path]["--seed"].help == (
            "random seed; the same seed gives the same result (default: %(default)s)"
        )
    assert "random seed" in found["data", "3dident", "build"]["--seed"].help
    assert {path for path, options in found.items() if "--out" in options} >= {
        ("demo",),
        ("fit",),
        ("reproduce",),
        ("data", "3dident", "build"),
    }


@pytest.mark.parametrize("words", [[], ["data"]])
def test_help_has_a_line_for_each_command_and_data_set(words, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(SystemExit):
        main([*words, "--help"])
    lines = capsys.readouterr().out.splitlines()
    made = {name: inner for name, _, inner in subcommands(parser())}
    for name, summary, _ in subcommands(made["data"] if words else parser()):
        assert [line.split() for line in lines].count([name, *summary.split()]) == 1


def test_the_package_is_a_program():
    run = subprocess.run([sys.executable, "-m", "identica", "--version"], capture_output=True)
    assert (run.returncode, run.stderr) == (0, b"")
    assert run.stdout.startswith(b"identica ")


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    "words", ["--help", "fit --help", "data 3dident --help", "reproduce --list", "completion bash"]
)
def test_a_reader_that_leaves_early_is_no_error(words, unbuffered):
    """As in `identica … | head -1`; argparse itself ignores it where nothing is buffered."""
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "identica", *words.split()]
    env = {**BUFFERED, "PYTHONUNBUFFERED": unbuffered}
    run = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, env=env)
    os.close(write)
    assert run.stderr == b""
    assert run.returncode in ((0, 141) if unbuffered else (141,))


def test_nobody_reads_progress_either(tmp_path):
    """As in `identica … 2>&1 | head -1`: what is done so far stays, to be resumed."""
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(60, 2)).cumsum(axis=0))
    read, write = os.pipe()
    os.close(read)
    command = [
        sys.executable,
        "-m",
        "identica",
        "fit",
        "x.npy",
        "--steps",
        "3",
        "--components",
        "2",
    ]
    run = subprocess.run(command, stdout=write, stderr=write, cwd=tmp_path, env=BUFFERED)
    os.close(write)
    assert run.returncode == 141
    assert (tmp_path / "identica-fit" / "config.json").exists()


def test_quiet_shows_no_progress(tmp_path, monkeypatch, capsys):
    asked = []
    monkeypatch.setattr(
        "identica.studies.demo.demo", lambda out, **options: asked.append(options["progress"])
    )
    assert main(["demo"]) == main(["demo", "--quiet"]) == 0
    assert asked == [True, False]


def test_nothing_is_coloured(monkeypatch, capsys):
    """Not in a terminal either: newer versions of argparse colour their help unless told not to."""
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("FORCE_COLOR", "")
    for words in (["--help"], ["reproduce", "--help"]):
        with pytest.raises(SystemExit):
            main(words)
    with pytest.raises(SystemExit):
        main(["nonsense"])
    assert "\x1b" not in "".join(capsys.readouterr())
