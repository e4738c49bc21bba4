"""Do the tests notice a wrong program? Small faults, one at a time, and the share that some test catches.

    python -m validation.mutants --count 60 --seed 1

Each mutant changes one operator, comparison, constant, condition or sign of a module, in a copy of the tree,
and runs the tests that mirror that module, then those of its room. Results go to results/mutants.json as they
come.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
HOME = ROOT / "src" / "identica"
RESULTS = ROOT / "results" / "mutants.json"
SECONDS = 240  # a mutant whose tests hang counts as caught

# what users' figures depend on; renderers, pages and pictures are judged by eye
MUTATED = """
    _validate _io _samplers spaces families mixing process heads encoders theory recipes checkpoints
    distributed losses training metrics estimator diagnosis runs
    studies/experiment studies/study studies/table studies/runner studies/synthetic
"""
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


def sources() -> list[Path]:
    """The modules that are mutated."""
    found: list[Path] = []
    for name in MUTATED.split():
        path = HOME / name
        found += sorted(path.rglob("*.py")) if path.is_dir() else [path.with_suffix(".py")]
    return [path for path in found if path.name not in ("__init__.py", "_kernels.py", "page.py")]


def sites(tree: ast.AST) -> list[tuple[ast.AST, str]]:
    """Where a module can be changed, and how; types and texts are left alone."""
    skipped: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Raise, ast.JoinedStr, ast.arguments)):  # words, and annotations
            skipped.update(ast.walk(node))
        if isinstance(node, ast.AnnAssign):
            skipped.update(ast.walk(node.annotation))
        if isinstance(node, ast.FunctionDef) and node.returns is not None:
            skipped.update(ast.walk(node.returns))
    found: list[tuple[ast.AST, str]] = []
    for node in ast.walk(tree):
        if node in skipped:
            continue
        if isinstance(node, (ast.BinOp, ast.BoolOp)) and type(node.op) in SWAPS:
            found.append((node, "operator"))
        elif isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPS:
            found.append((node, "comparison"))
        elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
            found.append((node, "constant"))
        elif isinstance(node, (ast.If, ast.IfExp)):
            found.append((node, "condition"))
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.Not)):
            found.append((node, "sign"))
    return found


def mutate(node: ast.AST, kind: str) -> None:
    """Change one place."""
    match node, kind:
        case (ast.BinOp() | ast.BoolOp(), _):
            node.op = SWAPS[type(node.op)]()  # type: ignore[assignment]
        case (ast.Compare(), _):
            node.ops[0] = SWAPS[type(node.ops[0])]()  # type: ignore[assignment]
        case (ast.Constant(value=value), _):
            assert isinstance(value, (int, float))
            node.value = value + 1 if isinstance(value, int) else 2 * value + 0.1
        case (ast.If() | ast.IfExp(), _):
            node.test = ast.UnaryOp(ast.Not(), node.test)
        case (ast.UnaryOp(), _):
            node.op = ast.UAdd() if isinstance(node.op, ast.USub) else node.op
            if isinstance(node.op, ast.Not):
                node.operand = ast.UnaryOp(ast.Not(), node.operand)


def tests_of(module: Path) -> list[list[str]]:
    """The tests that mirror a module, with its doctests; and those of its room, if these notice nothing."""
    *rooms, name = module.relative_to(HOME).with_suffix("").parts
    folder = Path("tests", *rooms)
    own = [str(folder / f"test_{name.strip('_')}.py")] if rooms or name else []
    own = [test for test in own if (ROOT / test).exists()]
    first = [*own, str(module.relative_to(ROOT))]
    return [first, [str(folder)]] if rooms else [first]


def caught(copy: Path, tests: list[str]) -> bool:
    """Whether any of the tests fails; those that collect nothing do not."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider"]
    env = {**os.environ, "PYTHONPATH": str(copy / "src"), "OMP_NUM_THREADS": "1"}
    try:
        run = subprocess.run(
            [*command, *tests], cwd=copy, env=env, capture_output=True, timeout=SECONDS
        )
    except subprocess.TimeoutExpired:
        return True
    return run.returncode not in (0, 5)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    every = [
        (path, index)
        for path in sources()
        for index in range(len(sites(ast.parse(path.read_text(encoding="utf-8")))))
    ]
    records: list[dict[str, object]] = []
    for path, index in rng.sample(every, options.count):
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        node, kind = sites(tree)[index]
        line = getattr(node, "lineno", 0)
        mutate(node, kind)
        with tempfile.TemporaryDirectory() as home:
            copy = Path(home) / "copy"
            ignored = shutil.ignore_patterns(".git", ".venv", "__pycache__", "site", "*.html")
            shutil.copytree(ROOT, copy, ignore=ignored)
            place = copy / path.relative_to(ROOT)
            place.write_text(ast.unparse(ast.fix_missing_locations(tree)), encoding="utf-8")
            found = any(caught(copy, tests) for tests in tests_of(path))
        records.append(
            {
                "module": str(path.relative_to(ROOT)),
                "line": line,
                "kind": kind,
                "source": text.splitlines()[line - 1].strip(),
                "caught": found,
            }
        )
        number = sum(bool(record["caught"]) for record in records)
        print(f"{number} of {len(records)} caught: {records[-1]}", file=sys.stderr, flush=True)
        RESULTS.write_text(json.dumps(records, indent=1, ensure_ascii=False) + "\n")
    print(f"{sum(bool(record['caught']) for record in records)} of {len(records)} mutants caught")
    return 0


if __name__ == "__main__":
    sys.exit(main())
