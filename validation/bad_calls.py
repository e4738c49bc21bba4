"""Does every public call refuse bad arguments with an InputError?

Each call of `_base_calls` is made with one argument at a time replaced by each bad value. A call may
raise `InputError` or accept the value; any other exception, a warning, or an answer that is not finite
counts as a fault, and so does a call that takes longer than it should.

    python -m validation.bad_calls [--every N] [--only NAME]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import chdir
from functools import cache
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch

from identica import InputError
from identica.errors import NonFiniteLossError
from validation._base_calls import Base, bases

SECONDS = 300.0  # a call that takes longer hangs; the first of a worker loads and compiles
FUNCTIONS = ("network", "score", "tick")  # arguments that may be functions


class Bad(NamedTuple):
    """A bad value, and what to call it."""

    name: str
    value: Any


class Result(NamedTuple):
    """What came of a call: "refused", "accepted", or what is wrong with it."""

    call: str
    outcome: str
    told: str = ""


@cache
def bad_values() -> list[Bad]:
    """Values of wrong types, sizes and shapes."""
    return [
        Bad("None", None),
        Bad("a word", "three"),
        Bad("an empty string", ""),
        Bad("bytes", b"3"),
        Bad("NaN", float("nan")),
        Bad("infinity", float("inf")),
        Bad("-1", -1),
        Bad("0", 0),
        Bad("a half", 0.5),
        Bad("True", True),
        Bad("a complex number", 1j),
        Bad("10^30", 10**30),
        Bad("10^400", 10**400),
        Bad("a date", np.datetime64("2020-01-01")),
        Bad("an object", object()),
        Bad("a dict", {"a": 1}),
        Bad("a function", len),
        Bad("an empty list", []),
        Bad("a list of lists", [[1.0, 2.0], [3.0, 4.0]]),
        Bad("a ragged list", [[1.0], [2.0, 3.0]]),
        Bad("no rows", np.empty((0, 3))),
        Bad("no columns", np.empty((60, 0))),
        Bad("a vector", np.linspace(0, 1, 60)),
        Bad("three dimensions", np.zeros((60, 3, 2))),
        Bad("one row", np.full((1, 3), 0.5)),
        Bad("fewer rows", np.full((7, 3), 0.5)),
        Bad("constant columns", np.full((60, 3), 0.5)),
        Bad("huge numbers", np.linspace(-1e300, 1e300, 180).reshape(60, 3)),
        Bad("rows with NaN", np.full((60, 3), np.nan)),
        Bad("complex numbers", np.full((60, 3), 1j)),
        Bad("dates", np.full((60, 3), np.datetime64("2020-01-01"))),
        Bad("words", np.full((60, 3), "a")),
        Bad("objects", np.full((60, 3), object())),
        Bad("a frame of words", pd.DataFrame({"a": ["x", "1,5", ""] * 20})),
        Bad("a frame of classes", pd.DataFrame({"a": pd.Categorical([1, 2] * 30)})),
        Bad(
            "a frame out of order",
            pd.DataFrame(np.eye(60)[:, :3], index=pd.date_range("2020", periods=60)[::-1]),
        ),
        Bad("whole tensors", torch.arange(180).reshape(60, 3)),
        Bad("a meta tensor", torch.empty(60, 3, device="meta")),
        Bad("a tensor of 4 columns", torch.full((60, 4), 0.5)),
        Bad("a tensor of fewer rows", torch.full((7, 3), 0.5)),
        Bad("an empty tensor", torch.empty(0, 3)),
        Bad("a tensor of NaN", torch.full((60, 3), torch.nan)),
        Bad("a tensor without dimensions", torch.tensor(0.5)),
        Bad("a complex tensor", torch.full((60, 3), 1j)),
    ]


def calls(bases: Iterable[Base]) -> Iterator[tuple[str, Base, str | None, Any]]:
    """Every call by name: first as it should be, then with one argument replaced."""
    for base in bases:
        yield base.name, base, None, None
        for argument in base.arguments:
            for bad in bad_values():
                right = callable(base.arguments[argument]) or argument in FUNCTIONS
                if callable(bad.value) and right:
                    continue  # a function is right there, whatever it does
                yield f"{base.name}({argument}={bad.name})", base, argument, bad.value


def outcome(base: Base, argument: str | None, value: Any) -> tuple[str, str]:
    """What comes of a call with one argument replaced."""
    arguments = base.arguments if argument is None else {**base.arguments, argument: value}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", UserWarning)  # these are meant to be read
            answer = base.call(**arguments)
    except (InputError, NonFiniteLossError) as error:
        return ("refused", str(error)) if argument else ("base call refused", str(error))
    except (Exception, SystemExit) as error:
        return type(error).__name__, str(error)
    if isinstance(answer, float) and not np.isfinite(answer) and answer is not value:
        return "not finite", repr(answer)
    return "accepted", ""


def work(start: int, every: int, only: str | None) -> None:
    """Make the calls from number `start` on, and print a line before and after each."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder, chdir(folder):  # for relative paths
        for number, (name, base, argument, value) in enumerate(calls(bases(Path(folder)))):
            skipped = only is not None and not name.startswith(only)
            if number < start or number % every or skipped:
                continue
            print(json.dumps([number, name]), flush=True)
            print(json.dumps([number, *Result(name, *outcome(base, argument, value))]), flush=True)
    print("null", flush=True)


def pass_on(stream: Iterable[str], lines: Queue[str]) -> None:
    """Put the lines of a stream into a queue, which can be waited for."""
    for line in stream:
        lines.put(line)


def sweep(every: int = 1, only: str | None = None) -> list[Result]:
    """The results of every call (or every so many), made in a process that is replaced if it hangs."""
    results: list[Result] = []
    start = 0
    while True:
        arguments = ["--start", str(start), "--every", str(every)]
        arguments += [] if only is None else ["--only", only]
        command = [sys.executable, "-m", "validation.bad_calls", *arguments]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as worker:
            lines: Queue[str] = Queue()
            Thread(target=pass_on, args=(worker.stdout, lines)).start()
            making = None
            try:
                while (record := json.loads(lines.get(timeout=SECONDS))) is not None:
                    making = record[:2]
                    if len(record) > 2:
                        results.append(Result(*record[1:]))
                return results
            except Empty:
                worker.kill()
                if making is None:
                    raise RuntimeError("the worker does not start") from None
                results.append(Result(making[1], "hangs", f"for {SECONDS:g} s"))
                start = making[0] + 1


def summary(results: list[Result]) -> str:
    """Counts, and every fault by itself."""
    counts = Counter(result.outcome for result in results)
    lines = [f"{len(results)} calls, {counts['refused']} refused, {counts['accepted']} accepted"]
    found = faults(results)
    lines += [f"{len(found)} faults", *(f"  {f.call}: {f.outcome}: {f.told[:160]}" for f in found)]
    return "\n".join(lines)


def faults(results: list[Result]) -> list[Result]:
    """The calls that neither refused their arguments properly nor accepted them."""
    return [result for result in results if result.outcome not in ("refused", "accepted")]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="make every Nth call only")
    parser.add_argument("--only", help="calls whose names begin like this")
    parser.add_argument("--start", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.start is not None:
        work(arguments.start, arguments.every, arguments.only)
        return 0
    results = sweep(arguments.every, arguments.only)
    print(summary(results))
    return 1 if faults(results) else 0


if __name__ == "__main__":
    sys.exit(main())
