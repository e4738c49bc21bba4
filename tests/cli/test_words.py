"""What the library says of parameters, the shell says of options."""

import pytest

from identica.cli import parser
from identica.cli.words import in_shell


@pytest.fixture(scope="module")
def fit():
    return parser().parse_args(["fit", "x.npy"]).words


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ('missing="drop" leaves such rows out', "--missing drop leaves such rows out"),
        ("n_components must be at most 9", "--components must be at most 9"),
        ("random_state must be a whole number", "--seed must be a whole number"),
        (
            'space="unbounded", if factors have no bounds',
            "--space unbounded, if factors have no bounds",
        ),
        ("n_components=2, or learn_precision=True.", "--components 2, or --precision."),
        ("a larger n_components or another window", "a larger --components or another window"),
        ("X must hold 2 pairs; rows of X differ", "DATA must hold 2 pairs; rows of DATA differ"),
        (
            "what is paired, by X_pos, lag or groups",
            "what is paired, by --positives, --lag or --groups",
        ),
        ('drop="two words" leaves it out', "--drop 'two words' leaves it out"),
        ("X.npy and lag/X/window.csv do not exist", "X.npy and lag/X/window.csv do not exist"),
        ("--lag must be 1; the window is wide", "--lag must be 1; the window is wide"),
        ("got 'lag' or 'lag=3'", "got 'lag' or 'lag=3'"),
    ],
)
def test_parameters_become_options(fit, said, shown):
    assert in_shell(said, fit) == shown


def test_a_command_knows_its_own_options_alone():
    words = parser().parse_args(["reproduce", "theorem1"]).words
    assert in_shell("rows must be numbers; lag=2", words) == "--rows must be numbers; lag=2"
    assert in_shell("rows must be numbers", {}) == "rows must be numbers"


def test_every_parameter_of_the_estimator_that_has_an_option_is_known(fit):
    """Those that have none are set by the command itself, or belong to Python."""
    from inspect import signature

    from identica import ContrastiveICA

    unknown = {"network", "optimizer", "progress", "folder"}
    parameters = signature(ContrastiveICA).parameters.keys() - unknown
    where = signature(ContrastiveICA.fit).parameters.keys() - {"self", "labels"}
    for name in parameters | where:
        assert in_shell(f"{name} must be", fit) in (
            f"{fit[name]} must be",
            "DATA must be",
        )
        assert fit[name].startswith("--") or name == "X"
