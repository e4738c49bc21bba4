"""Do the tests notice a wrong program? Small faults, one at a time, and the share that some test catches.

    python -m validation.mutants --count 60 --seed 1            # again, it goes on where it was stopped
    python -m validation.mutants --seed 2 src/identica/metrics src/identica/spaces.py

Each mutant changes one operator, comparison, constant, condition or sign of one module in a copy of the
tree. It meets the test files one by one: those that mirror the module or its room and the module's own
doctests, those that import the module, then those that import what imports it, the most specific first,
until a test fails or `AFFORDED` seconds are over. Results go to results/mutants.json as they come, beside
those of other seeds. What it says about the same change of the same module and seed is not asked again, so
delete it after changes of the tests; notes that somebody wrote beside a verdict are kept.

A mutant is *caught* if a test fails with it and passes without it. It *timed out*, which does not count as
caught, if a file takes more than `SLOWEST` seconds with it and, run again at once, less than a third of that
without it. A file that takes longer is left out from then on. All other mutants *survived*. Seconds are
those of the processor, so that other work on the machine changes no verdict, but for tests that wait for
something that does not come: those are `STUCK`.

Left alone is what changes no number, message or file, whatever its value:

- annotations, and what is below `if TYPE_CHECKING`;
- the sizes and times in `SIZES`, which say how much is done at once or kept and how long to wait, and those
  of `sleep`. How they are used is mutated;
- `LOOKS`: how thick, large or far in front something is drawn. What is drawn where is mutated;
- what runs on a GPU only (the body of an `if` that asks for CUDA), for want of a machine that could tell;
- an `if` that is negated already by changing its comparison or its `not`: the same mutant twice.

Without paths, the modules in `MUTATED` are: those between assumptions and figures, the plots, and data of
one's own or simulated. Pages are judged by eye; other
data sets, baselines and commands can be named as paths.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from typing import Any, cast

ROOT = Path(__file__).parent.parent
HOME = ROOT / "src" / "identica"
RESULTS = ROOT / "results" / "mutants.json"
AFFORDED = 40  # seconds of processor time in tests after which no further file is tried
COMPILING = 80  # more, where every file compiles the kernels again
KERNELS = (
    "losses/test_fused.py",
    "losses/test_infonce.py",
    "test_samplers.py",
    "metrics/test_dci.py",
)
SLOWEST = 120  # such seconds of one file
STUCK = 600  # seconds after which a file hangs, however loaded the machine is
FORK = get_context("fork")
PASSED = (0, 5)  # exit codes of pytest; 5: there are no tests

MUTATED = """
    _bessel _io _powers _random _samplers _serialize _tensors _validate
    spaces families mixing process heads encoders theory recipes checkpoints
    distributed potential losses training metrics estimator diagnosis runs
    studies/experiment studies/study studies/table studies/runner studies/synthetic
    studies/marginals studies/shapes studies/decoding studies/recordings
    resnet augment plots datasets/images datasets/neurons datasets/recordings
"""
SIZES = {
    *("BLOCK", "AT_ONCE", "_CODES_AT_ONCE", "SUMS"),  # done at once
    "BUFFERED",  # kept
    *("PARTS", "SLICE"),  # given to one thread
    *("TICK", "LOOK", "SAY", "PATIENCE", "timeout"),  # waited
    "maxsize",
}
LOOKS = {"lw", "ms", "mew", "s", "zorder", "shrink", "linewidths", "borderaxespad", "grown"}
SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.Pow: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Lt: ast.GtE,
    ast.LtE: ast.Gt,
    ast.Gt: ast.LtE,
    ast.GtE: ast.Lt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}


# what is changed


def sources(paths: list[Path]) -> list[Path]:
    """The modules that are mutated: those given, or else `MUTATED`."""
    found: list[Path] = []
    for path in paths or [HOME / name for name in MUTATED.split()]:
        found += sorted(path.rglob("*.py")) if path.is_dir() else [path.with_suffix(".py")]
    return [path for path in found if path.name not in ("__init__.py", "card.py", "page.py")]


def left_alone(tree: ast.AST) -> set[ast.AST]:
    """Nodes that no result depends on; see the top of this file."""
    parts: list[ast.AST | None] = []
    for node in ast.walk(tree):
        match node:
            case ast.arg(annotation=annotation) | ast.AnnAssign(annotation=annotation):
                parts.append(annotation)
            case ast.FunctionDef(returns=returns):
                parts.append(returns)
            case ast.Assign(targets=[target], value=value):
                if SIZES.issuperset(ast.unparse(target).strip("()").split(", ")):
                    parts.append(value)
            case ast.keyword(arg=str(name), value=value) if name in SIZES | LOOKS:
                parts.append(value)
            case ast.Call(func=ast.Attribute(attr="sleep")):
                parts += node.args
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                parts.append(node)
            case ast.If(test=test) if "cuda" in ast.unparse(test):
                parts += node.body
    return {inner for part in parts if part is not None for inner in ast.walk(part)}


def sites(tree: ast.AST) -> list[tuple[ast.AST, str]]:
    """Where a module can be changed, and how."""
    alone = left_alone(tree)
    found: list[tuple[ast.AST, str]] = []
    for node in ast.walk(tree):
        if node in alone:
            continue
        match node:
            case ast.BinOp() | ast.BoolOp() if type(node.op) in SWAPS:
                found.append((node, "operator"))
            case ast.Compare() if type(node.ops[0]) in SWAPS:
                found.append((node, "comparison"))
            case ast.Constant() if type(node.value) in (int, float):
                found.append((node, "constant"))
            case ast.If(test=test) | ast.IfExp(test=test):
                if not isinstance(test, ast.Compare | ast.UnaryOp):
                    found.append((node, "condition"))
            case ast.UnaryOp(op=ast.USub() | ast.Not()):
                found.append((node, "sign"))
    return found


def mutate(node: ast.AST) -> None:
    """Change one place."""
    match node:
        case ast.BinOp() | ast.BoolOp():
            node.op = SWAPS[type(node.op)]()  # type: ignore[assignment]
        case ast.Compare():
            node.ops[0] = SWAPS[type(node.ops[0])]()  # type: ignore[call-overload]
        case ast.Constant(value=int(value)):
            node.value = value + 1
        case ast.Constant(value=float(value)):
            node.value = 2 * value + 0.1
        case ast.If() | ast.IfExp():
            node.test = ast.UnaryOp(ast.Not(), node.test)
        case ast.UnaryOp(op=ast.USub()):
            node.op = ast.UAdd()
        case ast.UnaryOp(op=ast.Not()):
            node.operand = ast.UnaryOp(ast.Not(), node.operand)


# which tests


@cache
def imported(path: Path) -> frozenset[Path]:
    """Files of the package and of the tests' helpers that a file imports, where names are defined."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Import():
                names |= {alias.name for alias in node.names}
            case ast.ImportFrom(module=str(module)):
                names |= {f"{module}.{alias.name}" for alias in node.names}
            case ast.Attribute() if (name := ast.unparse(node)).startswith("identica."):
                names.add(name)
    return frozenset(found for name in names if (found := _file(name)) not in (None, path))


def _file(name: str) -> Path | None:
    """Where `package.module.object` is defined."""
    parts = name.split(".")
    if parts[0] not in ("identica", "helpers"):
        return None
    path = (HOME.parent if parts[0] == "identica" else ROOT / "tests").joinpath(*parts)
    if path.with_suffix(".py").exists():
        return path.with_suffix(".py")
    if path.is_dir():
        return path / "__init__.py"
    package = path.parent / "__init__.py"
    if not package.exists():
        return _file(".".join(parts[:-1]))
    for node in ast.walk(ast.parse(package.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and parts[-1] in [alias.name for alias in node.names]:
            return _file(f"{node.module}.{parts[-1]}")
    return package


@cache
def importers(path: Path) -> list[Path]:
    """Files that import a file."""
    everything = [*HOME.rglob("*.py"), *(ROOT / "tests").rglob("*.py")]
    return [other for other in sorted(everything) if path in imported(other)]


def relevant_tests(module: Path) -> list[Path]:
    """Files with tests that may notice a change of a module, the likeliest first."""
    *rooms, name = module.relative_to(HOME).with_suffix("").parts
    room = ROOT.joinpath("tests", *rooms)
    name = name.strip("_")
    mirrors = [room / f"test_{name}.py", *sorted(room.glob(f"test_{name}_*.py"))]
    if rooms:
        mirrors += [room / f"test_{rooms[-1]}_{name}.py", room.parent / f"test_{rooms[-1]}.py"]
    near = importers(module)
    far = [other for path in near for other in importers(path)]

    def specific_first(found: list[Path]) -> list[Path]:
        tests = {path for path in found if path.name.startswith("test_")}
        return sorted(tests, key=lambda path: (path.parent != room, len(imported(path)), path))

    first = [mirror for mirror in mirrors if mirror.exists()]
    return list(dict.fromkeys([*first, module, *specific_first(near), *specific_first(far)]))


# what they say


class Copy:
    """A copy of the tree in which one module at a time is changed."""

    def __init__(self, home: Path) -> None:
        self.root, self.told, self.failed = (home / name for name in ("copy", "told", "failed"))
        self.passing: dict[str, bool] = {}  # tests without a mutant, as far as known
        self.slow: set[str] = set()  # files that take too long without one
        ignored = shutil.ignore_patterns(".git", ".venv", "__pycache__", "site")
        shutil.copytree(ROOT, self.root, ignore=ignored)
        for path in HOME.rglob("*.py"):  # mutants lose their comments: so does the original
            text = ast.unparse(ast.parse(path.read_text(encoding="utf-8")))
            self.place(path).write_text(text, encoding="utf-8")
        for test in KERNELS:  # are compiled once, not at the expense of the first mutants
            self.run(f"tests/{test}", None)

    def place(self, path: Path) -> Path:
        return self.root / path.relative_to(ROOT)

    def run(self, test: str, kernels: Path | None) -> tuple[int | None, str, float]:
        """Run tests: exit code (None: too slow), the test that failed, and seconds."""
        start = _spent()
        self.failed.write_text(test, encoding="utf-8")
        process = FORK.Process(target=_pytest, args=(self, test, kernels))
        process.start()
        process.join(STUCK)
        code = process.exitcode
        if code in (None, -signal.SIGXCPU):
            code = None
            with suppress(ProcessLookupError):
                os.killpg(cast(int, process.pid), signal.SIGKILL)  # with its workers
            process.join()
        return code, self.failed.read_text(encoding="utf-8"), _spent() - start

    def passes(self, test: str) -> bool:
        """Whether a test passes without a mutant; asked when it first fails with one."""
        if test not in self.passing:
            self.passing[test] = self.run(test, None)[0] in PASSED
            if not self.passing[test]:
                print(self.told.read_text(encoding="utf-8"), file=sys.stderr)
                print(f"{test} fails without mutants", file=sys.stderr)
        return self.passing[test]


def preload() -> None:
    """Import what most tests do, so that they start in a moment. Not numba: it would keep its folder."""
    os.environ |= {"OMP_NUM_THREADS": "1"}
    for name in ("mpmath", "pandas", "pytest", "scipy.stats", "sklearn.linear_model", "torch"):
        import_module(name)


def _spent() -> float:
    """Seconds of processor time of the tests that have ended, and of their workers."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _pytest(copy: Copy, test: str, kernels: Path | None) -> None:
    """In a process of its own: run tests in a copy of the tree."""
    import pytest

    class First:
        def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
            if report.failed:
                copy.failed.write_text(report.nodeid, encoding="utf-8")

    os.setsid()
    resource.setrlimit(resource.RLIMIT_CPU, (SLOWEST, resource.RLIM_INFINITY))
    os.chdir(copy.root)
    source = str(copy.root / "src")
    sys.path.insert(0, source)
    os.environ["PYTHONPATH"] = source
    if kernels:
        os.environ["NUMBA_CACHE_DIR"] = str(kernels)
    with open(os.devnull, "rb") as nothing, copy.told.open("wb") as told:
        for number, file in enumerate((nothing, told, told)):
            os.dup2(file.fileno(), number)
    options = ["-x", "-q", "-n", "0", "-p", "no:cacheprovider", "-p", "no:faulthandler"]
    os._exit(int(pytest.main([*options, test], plugins=[First()])))


def verdict(copy: Copy, module: Path, mutant: str) -> tuple[str, str | None]:
    """Whether the tests notice a mutant, and which one does."""
    place = copy.place(module)
    before, times = place.read_text(encoding="utf-8"), place.stat()
    # numba's files on disk do not know of changes in other modules
    compiled = any(word in before for word in ("numba", "_compiled"))
    afforded = AFFORDED + COMPILING * compiled
    spent = 0.0
    for test in (str(path.relative_to(ROOT)) for path in relevant_tests(module)):
        if test in copy.slow:
            continue
        if spent > afforded:
            break
        with tempfile.TemporaryDirectory() as home:
            kernels = Path(home) if compiled else None
            place.write_text(mutant, encoding="utf-8")
            code, failed, seconds = copy.run(test, kernels)
            place.write_text(before, encoding="utf-8")
            os.utime(place, ns=(times.st_atime_ns, times.st_mtime_ns))  # compiled files stay valid
        spent += seconds
        if code is None:
            with tempfile.TemporaryDirectory() as home:
                code, _, seconds = copy.run(test, Path(home) if compiled else None)
            if code in PASSED and 3 * seconds < SLOWEST:
                return "timed out", test
            copy.slow.add(test)
        elif code not in PASSED and copy.passes(failed):
            return "caught", failed
    return "survived", None


def mutants(paths: list[Path], count: int, seed: int) -> Iterator[tuple[Path, int, str, str]]:
    """Random mutants: module, line, kind of change, and the new text of the module."""
    every = [
        (path, index)
        for path in sources(paths)
        for index in range(len(sites(ast.parse(path.read_text(encoding="utf-8")))))
    ]
    for path, index in random.Random(seed).sample(every, min(count, len(every))):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        node, kind = sites(tree)[index]
        mutate(node)
        text = ast.unparse(ast.fix_missing_locations(tree))
        yield path, getattr(node, "lineno", 0), kind, text


def known() -> list[dict[str, Any]]:
    """What earlier runs have found, one entry for each seed."""
    return json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else []


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two records are of the same change."""
    return all(one[name] == other[name] for name in ("module", "line", "kind", "source", "mutant"))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("paths", nargs="*", type=lambda path: Path(path).resolve())
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    before = next((found["mutants"] for found in known() if found["seed"] == options.seed), [])
    records: list[dict[str, Any]] = []
    totals: Counter[str] = Counter()
    preload()
    with tempfile.TemporaryDirectory() as home:
        copy = Copy(Path(home))
        for path, line, kind, text in mutants(options.paths, options.count, options.seed):
            original = copy.place(path).read_text(encoding="utf-8").splitlines()
            lines = zip(original, text.splitlines(), strict=False)
            source, mutant = next(pair for pair in lines if pair[0] != pair[1])
            record: dict[str, Any] = {
                "module": str(path.relative_to(ROOT)),
                "line": line,
                "kind": kind,
                "source": source.strip(),
                "mutant": mutant.strip(),
            }
            if already := next((old for old in before if same(old, record)), None):
                record = already
            else:
                record["verdict"], record["test"] = verdict(copy, path, text)
            records.append(record)
            totals[record["verdict"]] += 1
            print(f"{dict(totals)}: {record}", file=sys.stderr, flush=True)
            result = {"seed": options.seed, "totals": totals, "mutants": records}
            others = [found for found in known() if found["seed"] != options.seed]
            text = json.dumps([*others, result], indent=1, ensure_ascii=False)
            RESULTS.write_text(text + "\n", encoding="utf-8")
    print(", ".join(f"{number} {found}" for found, number in totals.most_common()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
