"""Pictures leave nothing behind: neither open figures nor changed settings."""

import matplotlib.pyplot as plt
import pytest


@pytest.fixture(autouse=True)
def tidy():
    before = dict(plt.rcParams)
    yield
    plt.close("all")
    assert dict(plt.rcParams) == before
