"""The mutants of validation/mutants.py: what is changed, what is left alone, and which tests it meets."""

import ast
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1]))  # validation stands beside the tests
from validation.mutants import HOME, ROOT, mutants, mutate, relevant_tests, sites, sources


def changed(text):
    """The text with each of its sites changed, one at a time."""
    found = []
    for index in range(len(sites(ast.parse(text)))):
        tree = ast.parse(text)
        mutate(sites(tree)[index][0])
        found.append(ast.unparse(ast.fix_missing_locations(tree)))
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x = a + b", ["x = a - b"]),
        ("x = a ** 2", ["x = a * 2", "x = a ** 3"]),
        ("x = 0.5", ["x = 1.1"]),
        ("x = -a", ["x = +a"]),
        ("x = not a", ["x = not not a"]),
        ("if a < b:\n    pass", ["if a >= b:\n    pass"]),  # once, though it is a condition, too
        ("if a:\n    pass", ["if not a:\n    pass"]),
        ("def f(n=3):\n    pass", ["def f(n=4):\n    pass"]),  # what callers get
        ("raise E(f'{n + k}')", ["raise E(f'{n - k}')"]),  # what they are told
        ("y = x[:BLOCK - n]", ["y = x[:BLOCK + n]"]),  # how a size is used
        ("if cuda:\n    n = 1\nelse:\n    n = k + m", ["if not cuda:\n    n = 1\nelse:\n    n = k + m",
                                                       "if cuda:\n    n = 1\nelse:\n    n = k - m"]),
    ],
)  # fmt: skip
def test_what_results_depend_on_is_changed(text, expected):
    assert changed(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "x: Literal[1, 2] = a",
        "def f(x: Literal[1]) -> Literal[2]:\n    pass",
        "if TYPE_CHECKING:\n    x = 1",
        "BLOCK = 1 << 22",
        "LOOK, SAY = (0.5, 30.0)",
        "time.sleep(0.5)",
        "connect(place, timeout=5)",
        "ax.plot(x, lw=0.5)",
        "x = True",
        "x = 'text 3'",
    ],
)
def test_what_no_result_depends_on_is_left_alone(text):
    assert changed(text) == []


def test_every_mutant_is_a_program_of_its_own():
    paths = [HOME / "report", HOME / "spaces.py"]
    before = {path: ast.unparse(ast.parse(path.read_text())) for path in sources(paths)}
    found = list(mutants(paths, 20, seed=0))
    assert {path.parent for path, *_ in found} == {HOME / "report", HOME}
    assert len({text for *_, text in found}) == 20
    for path, _, _, text in found:
        assert text != before[path]
        ast.parse(text)
    assert found == list(mutants(paths, 20, seed=0))
    assert {HOME / "mixing.py", HOME / "plots" / "points.py"} <= set(sources([]))
    assert all(path.exists() for path in sources([]))


@pytest.mark.parametrize(
    ("module", "first"),
    [
        ("spaces.py", ["test_spaces.py"]),
        ("_samplers.py", ["test_samplers.py"]),
        ("metrics/dci.py", ["metrics/test_dci.py"]),
        ("heads.py", ["test_potential.py"]),  # nothing mirrors it, but this imports it
        ("losses/_kernels.py", ["losses/test_fused.py"]),  # by way of _fused
        ("_io.py", ["test_files.py"]),
        ("estimator/pairs.py", ["estimator/test_estimator_pairs.py"]),
        ("recipes/recipe.py", ["test_recipes.py"]),
        ("diagnosis/truth.py", ["diagnosis/test_truth.py"]),
        (
            "diagnosis/verdict.py",
            ["diagnosis/test_verdict.py", "diagnosis/test_verdict_words.py"],
        ),
    ],
)
def test_mutants_meet_the_tests_that_concern_them(module, first):
    found = relevant_tests(HOME / module)
    assert HOME / module in found[: len(first) + 1]  # its doctests
    tests = [path for path in found if path != HOME / module]
    assert all(path.name.startswith("test_") for path in tests)
    assert len(set(found)) == len(found)
    assert [str(path.relative_to(ROOT / "tests")) for path in tests[: len(first)]] == first
