"""Pictures of recordings: what is drawn is what was given, and nothing global is touched."""

import numpy as np
import pytest
from matplotlib import rcParams

from identica.report import plots


@pytest.fixture(autouse=True)
def untouched():
    before = dict(rcParams)
    yield
    assert dict(rcParams) == before


def test_codes_of_each_model_have_their_panel():
    rng = np.random.default_rng(0)
    flat, turned = rng.normal(size=(2, 50, 2))
    figure = plots.coloured_codes({"a": turned, "b": flat}, np.arange(50), "position in cm")
    panels = [axes for axes in figure.axes if axes.get_title()]
    assert [axes.get_title() for axes in panels] == ["a", "b"]
    for axes, points in zip(panels, (turned, flat), strict=True):
        np.testing.assert_allclose(axes.collections[0].get_offsets(), points)
        np.testing.assert_allclose(axes.collections[0].get_array(), np.arange(50))


def test_what_was_decoded_over_time():
    seconds = np.arange(5) * 0.1
    true = np.array([170.0, 178, -175, -170, -160])[:, None]
    decoded = true + 1
    figure = plots.decoded_over_time(seconds, true, decoded, ["direction"], period=360.0)
    points, line = figure.axes[0].get_lines()
    np.testing.assert_allclose(points.get_ydata(), decoded[:, 0])
    shown = np.asarray(line.get_ydata())
    assert np.isnan(shown).tolist() == [False, False, True, False, False]  # no line across
    assert np.isfinite(true).all()
    figure = plots.decoded_over_time(seconds, np.c_[true, true], np.c_[true, true], ["a", "b"])
    assert [axes.get_ylabel() for axes in figure.axes] == ["a", "b"]
    assert np.isfinite(figure.axes[0].get_lines()[1].get_ydata()).all()


def test_factors_are_shown_in_rows_of_five():
    z = np.random.default_rng(0).normal(size=(50, 6))
    figure = plots.true_against_recovered(z, 2 * z, names=list("abcdef"))
    shown = [axes for axes in figure.axes if axes.get_visible()]
    assert [axes.get_title() for axes in shown] == list("abcdef")
    np.testing.assert_allclose(shown[5].collections[0].get_offsets(), np.c_[z[:, 5], 2 * z[:, 5]])


def test_a_picture_goes_into_a_page():
    figure = plots.fit_curves({"one": [{"step": 1, "loss": 1.0, "bits": 0.5}]})
    assert plots.inline(figure).startswith("data:image/png;base64,")
