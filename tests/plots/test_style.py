"""What the pictures share: colours anyone can tell apart on any background, Axes, and a lazy import."""

import subprocess
import sys

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from identica import InputError, plots
from identica.plots import style

RNG = np.random.default_rng(0)
Z = RNG.normal(size=(50, 2))
RECORDS = [{"step": s, "loss": 5.0 - s / 100, "bits": s / 50} for s in (50, 100, 150)]
CALLS = {
    "codes": lambda ax: plots.codes(Z, ax=ax),
    "recovered": lambda ax: plots.recovered(Z[:, 0], Z[:, 0], ax=ax),
    "density": lambda ax: plots.density(Z[:, 0], ax=ax),
    "correlations": lambda ax: plots.correlations(Z, Z, ax=ax),
    "restarts": lambda ax: plots.restarts([Z, -Z], ax=ax),
    "history": lambda ax: plots.history(RECORDS, ax=ax),
    "evidence": lambda ax: plots.evidence({1: 0.5, 2: 0.9, 3: 0.95}, ax=ax),
}


def luminance(colours):
    """Relative luminance as the WCAG defines it."""
    c = np.asarray(colours)
    linear = np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
    return linear @ [0.2126, 0.7152, 0.0722]


def contrast(a, b):
    low, high = sorted([a, b])
    return (high + 0.05) / (low + 0.05)


def test_every_function_is_called_here():
    assert sorted(CALLS) == sorted(plots.__all__)


@pytest.mark.parametrize("name", CALLS)
def test_a_picture_goes_where_it_is_told_to(name):
    figure = Figure()
    ax = figure.subplots()
    assert CALLS[name](ax) is ax
    assert not plt.get_fignums()
    assert ax.has_data()
    assert CALLS[name](None).figure is not figure


@pytest.mark.parametrize("name", CALLS)
def test_axes_are_labelled_and_have_ticks(name):
    ax = CALLS[name](None)
    ax.figure.canvas.draw()
    if name != "restarts":  # whose ticks say what the rows and columns are
        assert ax.get_xlabel()
        assert ax.get_ylabel()
    for low_high, ticks in ((ax.get_xlim(), ax.get_xticks()), (ax.get_ylim(), ax.get_yticks())):
        low, high = sorted(low_high)
        assert sum(low <= tick <= high for tick in ticks) > 1


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("bad", ["here", 3, plt])
def test_bad_axes_are_named(name, bad):
    with pytest.raises(InputError, match=r"^ax must be a matplotlib Axes, got"):
        CALLS[name](bad)


@pytest.mark.parametrize("name", CALLS)
def test_text_follows_the_style(name):
    with plt.style.context("dark_background"):
        ax = CALLS[name](None)
        assert ax.xaxis.label.get_color() == "white"
        assert not [text for text in ax.figure.texts if text.get_color() != "white"]


def test_colours_stand_out_on_black_and_on_white():
    for colour in (*style.COLOURS[:4], style.GREY):
        own = luminance(to_rgb(colour))
        assert min(contrast(own, 0.0), contrast(own, 1.0)) > 2.9  # WCAG asks for 3 of graphics
    for colours in (style.along(), style.around()):
        shades = luminance(colours(np.linspace(0, 1, 50))[:, :3])
        assert contrast(shades.max(), 1.0) > 1.4
        assert contrast(shades.min(), 0.0) > 1.8


def test_quantities_can_be_told_apart_by_lightness_alone():
    assert (np.diff(luminance(style.along()(np.linspace(0, 1, 50))[:, :3])) > 0).all()


def test_angles_end_as_they_begin():
    first, last = style.around()(0.0), style.around()(1.0)
    np.testing.assert_allclose(first, last, atol=0.02)


def test_matplotlib_is_loaded_when_something_is_drawn():
    code = "import sys, identica.plots; assert 'matplotlib' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
