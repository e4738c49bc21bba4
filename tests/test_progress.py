"""Progress bars: text without widgets, and no warning about it."""

import pty
import select
import subprocess
import sys
import termios

# a kernel of Jupyter, as tqdm recognises it, without ipywidgets
NOTEBOOK = """
import sys, types, warnings
shell = type("ZMQInteractiveShell", (), {"config": {"IPKernelApp": {}}})()
sys.modules["ipykernel.zmqshell"] = types.ModuleType("ipykernel.zmqshell")
sys.modules["IPython"] = types.SimpleNamespace(get_ipython=lambda: shell)
sys.modules["ipywidgets"] = None
warnings.simplefilter("always")
if %r:
    import tqdm.auto
from identica._progress import progress_bar
assert list(progress_bar(range(3), desc="fit")) == [0, 1, 2]
"""


def test_without_widgets_there_is_text_and_no_warning():
    plain = subprocess.run([sys.executable, "-c", NOTEBOOK % True], capture_output=True, text=True)
    assert "TqdmWarning" in plain.stderr  # what would be shown
    ours = subprocess.run([sys.executable, "-c", NOTEBOOK % False], capture_output=True, text=True)
    assert ours.returncode == 0, ours.stderr
    assert "fit: 100%" in ours.stderr
    assert "Warning" not in ours.stderr


BARS = """
import sys
from identica import _progress
_progress.SAY = float(sys.argv[1])
bar = _progress.progress_bar(desc="fit", total=1000, leave=False)
for _ in range(1000):
    bar.update()
bar.close()
"""


def written(seconds, **options):
    run = [sys.executable, "-c", BARS, seconds]
    return subprocess.run(run, stderr=subprocess.PIPE, check=True, **options).stderr.decode()


def test_a_file_gets_a_line_now_and_then():
    assert [line[:18] for line in written("1000").splitlines()] == ["fit: 100%|########"]
    often = written("0").splitlines()
    assert len(often) > 2
    assert all(line.startswith("fit: ") and "\r" not in line for line in often)


def test_a_terminal_gets_one_line_that_is_rewritten():
    leader, follower = pty.openpty()
    termios.tcsetwinsize(leader, (24, 80))  # tqdm writes nothing in a terminal without columns
    with open(leader, "rb", buffering=0) as terminal, open(follower, "wb", buffering=0) as stderr:
        subprocess.run([sys.executable, "-c", BARS, "1000"], stderr=stderr, check=True)
        assert select.select([terminal], [], [], 10)[0], "nothing was written"
        shown = terminal.read(100_000).decode()
    assert "\rfit: " in shown
    assert "\n" not in shown  # and cleared at the end, as it asked not to be left
