"""Bad command lines, over all commands: each must give exit code 2, one line on stderr, and leave
every file as it was.

    python -m validation.bad_commands [WORD …]      # only command lines with these words in them
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import resource
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

from validation._command_lines import Command, commands
from validation.bad_files import BAD, ROWS, npy, write

SECONDS = (
    20  # of the processor, after which a command line is taken to be at work instead of refusing
)
STUCK = 600  # seconds after which it waits for what does not come, however loaded the machine is
MEMORY = 6 << 30  # bytes that a command line may ask for
SUBPROCESSES = 5  # command lines that are run once more as a user would


class Fault(NamedTuple):
    """What is wrong with the answer to a command line."""

    kind: str
    command: Command
    detail: str


KINDS = (
    "traceback",
    "wrong exit code",
    "not one line on stderr",
    "files left behind or changed",
    "took too long",
)


# --- the ground they stand on -----------------------------------------------------------------------


def prepare(folder: Path) -> None:
    """Good files, bad files and occupied folders, all in one folder."""
    (folder / "good.npy").write_bytes(npy(ROWS))
    (folder / "good.csv").write_text(
        "a,b,day\n" + "".join(f"{k},{-k},{k // 20}\n" for k in range(40))
    )
    labels = np.where(np.arange(40) < 20, 1.0, np.nan)
    np.savez(folder / "good.npz", x=ROWS, after=ROWS + 1, day=np.arange(40) // 20, holes=labels)
    (folder / "short.npy").write_bytes(npy(ROWS[:5]))
    (folder / "file").write_text("in the way")
    (folder / "dangling").symlink_to("nowhere/at/all")
    (folder / "loop").symlink_to("loop")
    os.mkfifo(folder / "pipe.npy")
    # devices of our own: a rename as root would replace the real ones
    _device(folder / "null", 3)
    _device(folder / "full", 7)
    (folder / "holes.npy").write_bytes(npy(np.full((40, 3), np.nan)))
    (folder / "empty").mkdir()
    (folder / "data").mkdir()
    for name, images in (("photo", 1), ("photos", 2), ("frames", 3)):
        (folder / name).mkdir()
        for number in range(images):
            Image.new("L", (4, 4)).save(folder / name / f"{number}.png")
    (folder / "photos" / "1.png").write_bytes(b"no such thing")
    (folder / "bad").mkdir()
    for name in BAD:
        write(folder / "bad", name)
    foreign = {
        "nothing": "",
        "cut": '{"kind": "fi',
        "list": "[1, 2]",
        "null": "null",
        "number": "17",
        "text": '"icml-table1"',
        "other": '{"kind": "other", "seed": 0}',
        "deep": "[" * 100_000,
        "study": json.dumps({"study": "icml-table99", "runs": {}}),
        "shape": json.dumps({"study": "icml-table1", "runs": 3}),
        "numbers": '{"study": NaN, "runs": 1e999}',
    }
    for name, text in foreign.items():
        for file in ("config.json", "study.json", "table.json", "build.json", "result.json"):
            path = folder / f"foreign-{name}" / file
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
    (folder / "foreign-latin1").mkdir()
    for file in ("config.json", "study.json"):
        (folder / "foreign-latin1" / file).write_bytes('{"kind": "größe"}'.encode("latin-1"))
        (folder / "foreign-folder" / file).mkdir(parents=True)


def _device(path: Path, minor: int) -> None:
    try:
        os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, minor))
    except PermissionError:  # only root may
        os.mkfifo(path)


def snapshot(folder: Path) -> dict[str, str]:
    """Every file and folder below a folder, with what it holds."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = f"link to {os.readlink(path)}"
        elif path.is_file():
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
        else:
            found[name] = f"{path.stat().st_mode} {path.stat().st_rdev}"
    return found


# --- running them -----------------------------------------------------------------------------------


class TooLongError(BaseException):
    """A command line was not refused in time."""


def answer(command: Command) -> tuple[int | None, str, str]:
    """Exit code, stderr and traceback (or nothing) of a command line, run in this process."""
    from identica import cli

    def stop(*_: Any) -> None:
        raise TooLongError

    err, out = io.StringIO(), io.StringIO()
    alarms = (
        (signal.ITIMER_PROF, signal.SIGPROF, SECONDS),
        (signal.ITIMER_REAL, signal.SIGALRM, STUCK),
    )
    before = [signal.signal(number, stop) for _, number, _ in alarms]
    for timer, _, seconds in alarms:
        signal.setitimer(timer, seconds)
    try:
        with contextlib.redirect_stderr(err), contextlib.redirect_stdout(out):
            return cli.main(list(command)), err.getvalue(), ""
    except SystemExit as error:
        return int(error.code or 0), err.getvalue(), ""
    except (Exception, KeyboardInterrupt):
        return None, err.getvalue(), traceback.format_exc()
    finally:
        for (timer, number, _), handler in zip(alarms, before, strict=True):
            signal.setitimer(timer, 0)
            signal.signal(number, handler)


def judge(command: Command, ground: Path) -> Iterator[Fault]:
    """What is wrong with the answer to a command line that is run in the folder `ground`."""
    before = snapshot(ground)
    try:
        code, err, trace = answer(command)
    except TooLongError:
        yield Fault("took too long", command, f"still at work after {SECONDS} s")
    else:
        yield from _faults(command, code, err, trace)
    after = snapshot(ground)
    if changed := sorted(n for n in before.keys() | after.keys() if before.get(n) != after.get(n)):
        yield Fault("files left behind or changed", command, ", ".join(changed[:5]))
        for path in ground.iterdir():
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        prepare(ground)


def _faults(command: Command, code: int | None, err: str, trace: str) -> Iterator[Fault]:
    if trace:
        yield Fault("traceback", command, trace.strip().splitlines()[-1])
        return
    lines = [line for line in err.splitlines() if line.strip()]
    if code != 2:
        yield Fault("wrong exit code", command, f"{code}; {' / '.join(lines[-1:])}")
    if len(lines) != 1:
        yield Fault("not one line on stderr", command, f"{len(lines)}: {' / '.join(lines[:3])}")


def in_subprocess(command: Command, ground: Path) -> Iterator[Fault]:
    """The same, as a user would call it."""
    call = [sys.executable, "-m", "identica.cli", *command]
    done = subprocess.run(call, cwd=ground, capture_output=True, timeout=STUCK, check=False)
    err = done.stderr.decode(errors="replace")
    trace = err if "Traceback" in err else ""
    yield from _faults(command, done.returncode, err, trace)


def run(chosen: Iterable[Command], *, subprocesses: int = 0) -> tuple[int, list[Fault]]:
    """Run command lines in a folder of their own; how many there were, and what is wrong."""
    faults: list[Fault] = []
    total = 0
    home, root = Path.cwd(), os.environ.get("IDENTICA_DATA")
    with tempfile.TemporaryDirectory() as folder:
        ground = Path(folder) / "ground"
        ground.mkdir()
        prepare(ground)
        os.environ["IDENTICA_DATA"] = str(ground / "data")
        os.chdir(ground)
        try:
            for total, command in enumerate(chosen, 1):
                faults += judge(command, ground)
                if total <= subprocesses:
                    faults += in_subprocess(command, ground)
        finally:
            os.chdir(home)
            os.environ.pop("IDENTICA_DATA")
            if root is not None:
                os.environ["IDENTICA_DATA"] = root
    return total, faults


def shown(command: Command) -> str:
    """A command line to print, long words cut."""
    words = [word if len(word) < 60 else f"{word[:20]}…" for word in command]
    return " ".join(
        repr(word) if not word or set(word) & set(" \n\udce9") else word for word in words
    )


def main(words: Sequence[str]) -> int:
    """Run all command lines (or those with the words) and say what is wrong."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, resource.RLIM_INFINITY))
    chosen = [command for command in commands() if set(words) <= set(command)]
    total, faults = run(chosen, subprocesses=SUBPROCESSES)
    for fault in faults:
        print(f"{fault.kind}: identica {shown(fault.command)}\n    {fault.detail[:200]}")
    counts = [f"{kind}: {sum(fault.kind == kind for fault in faults)}" for kind in KINDS]
    print(f"{total} bad command lines; {'; '.join(counts)}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
