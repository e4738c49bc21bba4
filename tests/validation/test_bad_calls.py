"""A sample of the sweep in validation/bad_calls.py: bad arguments raise InputError."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1]))  # validation stands beside the tests
from validation.bad_calls import calls, outcome


@pytest.mark.parametrize("part", range(4))
def test_bad_arguments_raise_input_error(part, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # some bad arguments are paths
    faults = []
    for number, (name, base, argument, value) in enumerate(calls(tmp_path)):
        if number % 197 == part * 49:
            found, told = outcome(base, argument, value)
            if found not in ("refused", "accepted"):
                faults.append(f"{name}: {found}: {told}")
    assert not faults
