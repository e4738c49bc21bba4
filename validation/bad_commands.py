"""Bad command lines, over all commands: each must give exit code 2, one line on stderr, and leave
every file as it was.

    python -m validation.bad_commands [WORD …]      # only command lines with these words in them
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import itertools
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

from validation.bad_files import BAD, ROWS, npy, write

SECONDS = (
    20  # of the processor, after which a command line is taken to be at work instead of refusing
)
STUCK = 600  # seconds after which it waits for what does not come, however loaded the machine is
MEMORY = 6 << 30  # bytes that a command line may ask for
HUGE = str(10**12)
ENDLESS = "9" * 5000
SUBPROCESSES = 5  # command lines that are run once more as a user would

Command = tuple[str, ...]


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


# --- the command lines ------------------------------------------------------------------------------

# folders for output that cannot be one
NO_FOLDERS = (
    "file",
    "file/below",
    "null",
    "full",
    "full/below",
    "/proc/none",
    "loop",
)
NO_FOLDERS += ("a" * 300, "good.npy")
NO_NUMBERS = ("-1", "1.5", "x", "", "1e3", "0x10", ENDLESS)
FOREIGN = ("nothing", "cut", "list", "null", "number", "text", "other", "deep", "latin1", "folder")


def commands() -> list[Command]:
    """All command lines, each once."""
    parts = (top(), demo(), fit(), reproduce(), report(), data(), completion())
    return list(dict.fromkeys(itertools.chain(*parts)))


def top() -> Iterator[Command]:
    yield ()
    for word in ("nonsense", "", "--nonsense", "-x", "Fit", "fit\n", "dem o"):
        yield (word,)
    for command in ("demo", "fit", "reproduce", "report"):
        yield (command, "--nonsense")
        yield (command, "--out")
        yield (command, "a", "b", "c")
    yield ("data",)
    yield ("data", "nonsense")
    yield ("data", "3dident", "nonsense")


def demo() -> Iterator[Command]:
    for number in (*NO_NUMBERS, str(2**64), HUGE * 3):
        yield ("demo", "--out", "new", "--seed", number)
    for out in NO_FOLDERS:
        yield ("demo", "--out", out)
    for name in FOREIGN:
        yield ("demo", "--out", f"foreign-{name}")


def fit() -> Iterator[Command]:
    for name in BAD:
        yield ("fit", f"bad/{name}", "--out", "new")
        yield ("fit", "good.npy", "--out", "new", "--positives", f"bad/{name}")
    groups = [name for name in BAD if "words" not in name and "vector" not in name]
    for name in groups[:30]:
        yield ("fit", "good.npy", "--out", "new", "--groups", f"bad/{name}")
    for name in (
        "none.npy",
        "file",
        "empty",
        ".",
        "",
        "null",
        "full",
        "dangling",
        "loop",
    ):
        yield ("fit", name, "--out", "new")
    for name in (
        "pipe.npy",
        "good",
        "a" * 300 + ".npy",
        "file/x.npy",
        "caf\udce9.npy",
        "two\nlines.npy",
    ):
        yield ("fit", name, "--out", "new")
        yield ("fit", "good.npy", "--out", "new", "--positives", name)
    for out in NO_FOLDERS:
        yield ("fit", "good.npy", "--out", out)
    for name in FOREIGN:
        yield ("fit", "good.npy", "--out", f"foreign-{name}")
    options = {
        "--components": ("0", HUGE, "1000000", *NO_NUMBERS),
        "--steps": ("0", *NO_NUMBERS),
        "--seed": (str(2**63), str(2**64), HUGE * 3, *NO_NUMBERS),
        "--lag": ("0", "40", HUGE, f"1-{HUGE}", "5-1", "1-", "-", "1-2-3", "1,2", *NO_NUMBERS),
        "--space": ("", "bx", "Box", "sphere,box"),
        "--conditional": ("", "nrmal", "vmf"),
        "--array": ("x", ""),
        "--groups": ("week", "", "good.npy", "short.npy"),
        "--positives": ("after", "", "short.npy", "file"),
        "--columns": ("a", "", ","),
        "--drop": ("a", "", ","),
        "--index": ("a", "", "good.npy"),
        "--missing": ("", "fill", "Drop", "0"),
        "--batch": ("0", *NO_NUMBERS),
        "--lr": ("0", "-1", "x", "", "nan", "inf", "1e999"),
        "--device": ("", "nonsense", "cuda:99", "meta"),
        "--restarts": ("0", "1", *NO_NUMBERS),
        "--window": ("0", HUGE, "40", *NO_NUMBERS),
        "--marginal": ("", "all", "Any", "0"),
    }
    for option, values in options.items():
        for value in values:
            yield ("fit", "good.npy", "--out", "new", f"{option}={value}")
    for flag in ("--precision", "--plot", "--tensorboard", "--no-diagnosis"):
        yield ("fit", "good.npy", "--out", "new", f"{flag}=1")
        yield ("fit", "good.npy", "--out", "new", flag, "--steps", "0")
    for folder in ("empty", "bad", "data", "photo", "photos", "frames"):
        yield ("fit", folder, "--out", "new")
    for more in (
        ("--columns", "a"),
        ("--index", "a"),
        ("--array", "x"),
        ("--positives", "photos"),
        ("--groups", "short.npy"),
    ):
        yield ("fit", "frames", "--out", "new", *more)
    for name in ("holes.npy", "bad/nan.npy"):
        for more in ((), ("--missing", "drop", "--lag", "40"), ("--missing", "dorp")):
            yield ("fit", name, "--out", "new", *more)
    yield ("fit", "holes.npy", "--out", "new", "--missing", "drop")
    yield ("fit", "good.npy", "--out", "new", "--marginal", "any", "--conditional", "vmf")
    for more in (
        ("--array", "y"),
        ("--array", "day"),
        ("--array", "x", "--positives", "day"),
        ("--array", "x", "--positives", "after", "--lag", "2"),
        ("--array", "x", "--positives", "after", "--groups", "day"),
        ("--array", "x", "--groups", "holes"),
        ("--array", "x", "--groups", "after"),
        ("--array", "../x"),
    ):
        yield ("fit", "good.npz", "--out", "new", *more)
    for more in (
        ("--columns", "a,z"),
        ("--columns", "day", "--drop", "day"),
        ("--drop", "a,b,day"),
        ("--drop", "z"),
        ("--index", "z"),
        ("--index", "b"),
        ("--index", "a", "--columns", "z"),
    ):
        yield ("fit", "good.csv", "--out", "new", *more)
    yield ("fit", "good.csv", "--out", "new", "--array", "a")
    yield ("fit", "good.csv", "--out", "new", "--positives", "b")
    yield ("fit", "good.csv", "--out", "new", "--groups", "a", "--lag", "30")


def reproduce() -> Iterator[Command]:
    yield ("reproduce",)
    yield ("reproduce", "--rows", "1")
    for study in ("", "nonsense", "icml-table3", "ICML-table1", "../icml-table1", "table1"):
        yield ("reproduce", study, "--out", "new")
    one = ("reproduce", "icml-table1", "--out", "new", "--rows", "1", "--seeds", "0")
    rows = ("0", "99", "", ",", "1,,2", "a", "1-", "3-1", "-1", "1.5", f"1-{HUGE}", HUGE, ENDLESS)
    for value in rows:
        yield ("reproduce", "icml-table1", "--out", "new", f"--rows={value}", "--seeds", "0")
        yield ("reproduce", "icml-table1", "--out", "new", f"--rows={value}", "--list")
    for value in ("", ",", "a", "1-", "3-1", "-1", "1.5", f"1-{HUGE}", HUGE * 3, ENDLESS):
        yield ("reproduce", "icml-table1", "--out", "new", "--rows", "1", f"--seeds={value}")
        yield ("reproduce", "theorem1", "--out", "new", f"--seeds={value}", "--list")
    for value in ("", "fastest", "Paper", "0"):
        yield (*one, f"--preset={value}")
        yield (*one, f"--engine={value}")
    for value in ("0", *NO_NUMBERS):
        yield (*one, f"--workers={value}")
    for engine in ("local", "nonsense"):
        yield (*one, "--engine", engine, "--address", "127.0.0.1:1")
    for study in ("recordings", "marginals", "workshop-table2"):
        yield ("reproduce", study, "--out", "new", "--rows", "99")
        yield ("reproduce", study, "--out", "new", "--seeds", "-1", "--list")
    yield ("reproduce", "recordings", "--rows", "9", "--seeds", "0", "--out", "new")
    yield ("reproduce", "--list", "nonsense")
    for out in NO_FOLDERS:
        yield ("reproduce", "icml-table1", "--rows", "1", "--seeds", "0", "--out", out)
    for name in (*FOREIGN, "study", "shape", "numbers"):
        out = f"foreign-{name}"
        yield ("reproduce", "icml-table1", "--rows", "1", "--seeds", "0", "--out", out)
    # which needs data that are not there
    yield ("reproduce", "workshop-table5", "--rows", "1", "--seeds", "0", "--out", "new")


def report() -> Iterator[Command]:
    for folder in ("", "none", "empty", ".", "good.npy", *NO_FOLDERS, "dangling"):
        yield ("report", folder)
        yield ("report", folder, "--force")
    for name in (*FOREIGN, "study", "shape", "numbers"):
        yield ("report", f"foreign-{name}")
        yield ("report", f"foreign-{name}", "--force")
    yield ("report", "--force")
    yield ("report", "none", "--force=1")


def data() -> Iterator[Command]:
    build = ("data", "3dident", "build", "--out", "new")
    yield ("data", "3dident", "build")
    yield ("data", "3dident", "build", "--n", "1")
    for value in ("0", HUGE, HUGE * 3, *NO_NUMBERS):
        yield (*build, f"--n={value}")
    for option in ("--size", "--samples"):
        for value in ("0", HUGE, HUGE * 3, *NO_NUMBERS):
            yield (*build, "--n", "1", f"{option}={value}")
    for value in NO_NUMBERS:
        yield (*build, "--n", "1", f"--seed={value}")
    for value in ("", "nonsense", "x,nonsense", "x,x", ","):
        yield (*build, "--n", "1", f"--factors={value}")
    yield (*build, "--n", "1", "--engine", "nonsense")
    yield (*build, "--n", "1", "--engine", "")
    for out in (*NO_FOLDERS, *(f"foreign-{name}" for name in FOREIGN[:8])):
        yield ("data", "3dident", "build", "--n", "1", "--size", "16", "--out", out)
    yield (*build, "--n", "0", "--packed")
    yield (*build, "--n", "1", "--packed=1")
    yield ("data", "recordings")
    yield ("data", "recordings", "check")
    for names in (("",), ("nonsense",), ("Achilles",), ("achilles", "nonsense"), ("gatsby",)):
        yield ("data", "recordings", "check", *names)
    for folder in ("", "none", "empty", "good.npy", "file", *NO_FOLDERS[:5]):
        yield ("data", "3dident", "check", folder)
        yield ("data", "3dident", "show", folder, "--out", "new.png")
    files = ("", "none.npz", "empty", "file", "good.npz", "null", "pipe.npy")
    files += tuple(f"bad/{name}" for name in BAD if name.endswith(".npz"))
    for name, option in itertools.product(files, ("check", "show")):
        more = ("--out", "new.png") if option == "show" else ()
        yield ("data", "dsprites", option, name, *more)
        yield ("data", "kitti-masks", option, name, *more)
    for name in (*files[:7], *(f"bad/{name}" for name in BAD if name.endswith(".csv"))):
        yield ("data", "natural-sprites", "show", name, "--out", "new.png")
    yield ("data", "kitti-masks", "build")
    for option in ("--kitti", "--mots"):
        for folder in ("none", "file", "empty", "null", "good.npy", "bad"):
            yield ("data", "kitti-masks", "build", option, folder, "--out", "new.npz")
    yield ("data", "kitti-masks", "check")
    yield ("data", "kitti-masks", "show")
    yield ("data", "kitti-masks", "show", "--out", "new.png")
    yield ("data", "natural-sprites", "show", "--out", "new.png")
    for out in ("file/x.png", "full", "null", "empty", "/proc/x.png"):
        yield ("data", "dsprites", "show", "--out", out)


def completion() -> Iterator[Command]:
    yield ("completion",)
    for shell in ("", "sh", "Bash", "bash,zsh"):
        yield ("completion", shell)


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
