"""A sample of the sweep in validation/bad_calls.py: bad arguments raise InputError."""

import inspect
import sys
from pathlib import Path

import pytest

import identica
from identica import baselines, metrics, plots, studies, theory

sys.path.append(str(Path(__file__).parents[1]))  # validation stands beside the tests
from validation._base_calls import bases
from validation.bad_calls import calls, outcome

# made by calls, or kept by them, but not called by anybody
RESULTS = {
    *("NETWORKS", "STUDIES"),
    *("DCIResult", "InfoMECResult", "Match", "ProcrustesResult", "Sampler", "Pairs"),
    *("Change", "Counterexample", "Guarantee", "InputError", "Outcome", "Published", "Row"),
}
ALIKE = {"VAE", "BetaVAE"}  # all they take, AdaGVAE takes


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return list(bases(tmp_path_factory.mktemp("bases")))


@pytest.mark.parametrize("package", [identica, baselines, metrics, plots, studies, theory])
def test_all_that_is_public_is_called(made, package):
    names = {part for base in made for part in (base.name, base.name.rpartition(".")[2])}
    names |= {name.partition("(")[0].partition(".")[0] for name in names}
    assert {*package.__all__} - RESULTS - ALIKE <= names


def test_every_option_of_the_estimator_is_changed(made):
    changed = {
        (base.name.partition(",")[0], argument) for base in made for argument in base.arguments
    }
    for name in ("fit", "transform", "log_density", "score"):
        for argument in inspect.signature(getattr(identica.ContrastiveICA, name)).parameters:
            if argument not in ("self", "y"):  # y is ignored
                assert (f"ContrastiveICA.{name}", argument) in changed
    for argument in inspect.signature(identica.ContrastiveICA).parameters:
        assert ("ContrastiveICA.fit", argument) in changed


@pytest.mark.parametrize("part", range(4))
def test_bad_arguments_raise_input_error(made, part, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # some bad arguments are paths
    faults = []
    for number, (name, base, argument, value) in enumerate(calls(made)):
        if number % 197 == part * 49:
            found, told = outcome(base, argument, value)
            if found not in ("refused", "accepted"):
                faults.append(f"{name}: {found}: {told}")
    assert not faults
