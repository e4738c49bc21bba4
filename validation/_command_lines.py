"""Bad command lines, by command; see bad_commands.py."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from validation.bad_files import BAD

HUGE = str(10**12)
ENDLESS = "9" * 5000

Command = tuple[str, ...]

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
        "--restarts": ("0", "1", "101", HUGE, *NO_NUMBERS),
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
    for more in (
        ("--columns", "a,a"),
        ("--drop", "a,b,a"),
        ("--columns", "a", "--positives", "day"),
        ("--index", "a", "--lag", "40"),
        ("--index", "a", "--window", "40"),
        ("--positives", "short.npy", "--window", "2"),
    ):
        yield ("fit", "good.csv", "--out", "new", *more)
    for more in (
        ("--space", "sphere", "--components", "1"),
        ("--space", "sphere", "--conditional", "laplaces"),
        ("--space", "box", "--conditional", "vmf"),
        ("--positives", "good.npy", "--lag", "auto"),
        ("--positives", "good.npy", "--window", "3"),
        ("--positives", "good.npy", "--groups", "short.npy"),
        ("--positives", "good.npy", "--index", "a"),
        ("--lag", "38", "--window", "3"),
        ("--lag", "1-40"),
        ("--groups", "good.csv"),
        ("--groups", "frames"),
        ("--index", "good.csv"),
        ("--device", "xla"),
    ):
        yield ("fit", "good.npy", "--out", "new", *more)
    for more in (("--window", "2000"), ("--lag", "3"), ("--groups", "good.csv"), ("--drop", "a")):
        yield ("fit", "frames", "--out", "new", *more)
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
    for more in (("--address", ""), ("--engine", "dask", "--address", "nowhere")):
        yield (*one, *more)
    yield ("reproduce", "icml-table1", "workshop-table1")
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
    yield ("data", "recordings", "check", "achilles", "--out", "new")
    yield ("data", "recordings", "show", "achilles")
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
    for words in (("bash", "zsh"), ("bash\n",), ("--shell", "bash"), ("bash", "--out", "new")):
        yield ("completion", *words)
    for shell in ("", "sh", "Bash", "bash,zsh"):
        yield ("completion", shell)
