"""The house: data flows one way, rooms keep their private names to themselves, and none stand in a circle."""

import ast
from itertools import pairwise
from pathlib import Path

import pytest

import identica

HOME = Path(identica.__file__).parent

# Rooms from left to right: each may import those of the lines above it and of its own line.
ROOMS = [
    [
        "errors",
        "_validate",
        "_io",
        "_random",
        "_tensors",
        "_compiled",
        "_powers",
        "_progress",
        "_html",
    ],
    ["checkpoints"],
    ["spaces", "families", "_samplers", "_bessel", "_serialize", "mixing", "process"],
    ["distributed"],
    ["encoders", "heads", "potential", "resnet", "augment", "losses", "baselines"],
    ["runs", "training", "recipes"],
    ["metrics", "theory"],
    ["datasets"],
    ["plots"],
    ["report"],
    ["diagnosis"],
    ["estimator"],
    ["studies"],
    ["cli", "__main__"],
]
LEVEL = {room: level for level, rooms in enumerate(ROOMS) for room in rooms}
MACHINERY = {"errors", "_validate", "_io", "distributed"}  # all that `runs` may know: no science


def modules():
    for path in sorted(HOME.rglob("*.py")):
        parts = path.relative_to(HOME).with_suffix("").parts
        yield path, parts[:-1] if parts[-1] == "__init__" else parts


MODULES = {parts for _, parts in modules()}


def imports(path):
    """The modules and names of this package that a file imports, wherever it does, but not for types
    alone; as (parts of the module, name or None, line)."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    typing_only = {
        child
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
        for child in ast.walk(node)
    }
    for node in ast.walk(tree):
        if node in typing_only:
            continue
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "identica":
            base = tuple(node.module.split(".")[1:])
            for alias in node.names:
                inner = (*base, alias.name)
                yield (
                    (inner, None, node.lineno)
                    if inner in MODULES
                    else (
                        base,
                        alias.name,
                        node.lineno,
                    )
                )
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "identica":
                    yield tuple(alias.name.split(".")[1:]), None, node.lineno


EVERY = [
    (parts, target, name, f"{path.relative_to(HOME)}:{line}")
    for path, parts in modules()
    for target, name, line in imports(path)
    if parts and target  # the package itself only lists its public names
]


def test_every_room_has_its_place():
    assert {parts[0] for parts in MODULES if parts} == set(LEVEL)


def test_data_flows_one_way():
    wrong = [
        f"{where} imports {'.'.join(target)}"
        for parts, target, _, where in EVERY
        if LEVEL[target[0]] > LEVEL[parts[0]]
    ]
    assert not wrong, "\n".join(wrong)


def test_the_machinery_knows_no_science():
    wrong = [
        f"{where} imports {'.'.join(target)}"
        for parts, target, _, where in EVERY
        if parts[0] == "runs" and target[0] not in MACHINERY | {"runs"}
    ]
    assert not wrong, "\n".join(wrong)


def test_private_names_stay_in_their_room():
    """A name with an underscore belongs to its module, and a module with one to its package."""
    wrong = []
    for parts, target, name, where in EVERY:
        if name and name.startswith("_") and not name.startswith("__"):
            wrong.append(f"{where} imports {name} of {'.'.join(target)}")
        for depth, part in enumerate(target):
            if part.startswith("_") and target[:depth] != parts[:depth]:
                wrong.append(f"{where} imports {'.'.join(target)}")
    assert not wrong, "\n".join(wrong)


def test_packages_do_not_import_each_other_in_a_circle():
    graph = {}
    for parts, target, _, _ in EVERY:
        if parts[0] != target[0]:
            graph.setdefault(parts[0], set()).add(target[0])

    def visit(room, path):
        if room in path:
            return [*path[path.index(room) :], room]
        for other in sorted(graph.get(room, ())):
            if found := visit(other, [*path, room]):
                return found
        return None

    circles = {tuple(found) for room in graph if (found := visit(room, []))}
    assert not circles, "\n".join(" → ".join(circle) for circle in circles)


@pytest.mark.parametrize("path", [p for p, _ in modules()], ids=lambda p: str(p.relative_to(HOME)))
def test_a_file_is_one_idea(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 400


def test_rooms_are_listed_once():
    every = [room for rooms in ROOMS for room in rooms]
    assert all(a != b for a, b in pairwise(sorted(every)))
