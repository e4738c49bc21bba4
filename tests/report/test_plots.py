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


def drawn(axes):
    """The data of the scatter plot of an axes."""
    [points] = axes.collections
    return np.asarray(points.get_offsets()), np.asarray(points.get_array())


def test_codes_of_two_dimensions_are_shown_as_they_are():
    angle = np.linspace(-180, 180, 50)
    codes = np.c_[np.cos(np.radians(angle)), np.sin(np.radians(angle))]
    figure = plots.coloured_codes({"ring": codes}, angle, "direction", cyclic=True)
    where, colour = drawn(figure.axes[0])
    np.testing.assert_allclose(where, codes)
    np.testing.assert_allclose(colour, angle)
    points = figure.axes[0].collections[0]
    assert points.get_clim() == (-180, 180)
    ends = [points.cmap(points.norm(value)) for value in (-180.0, 180.0)]
    np.testing.assert_allclose(*ends, atol=0.02)  # the same direction has the same colour


def test_more_codes_are_shown_in_their_principal_plane():
    rng = np.random.default_rng(0)
    flat = rng.normal(size=(200, 2)) * [5, 2]
    turned = flat @ np.linalg.qr(rng.normal(size=(6, 6)))[0][:2] + 3
    figure = plots.coloured_codes({"a": turned, "b": flat}, flat[:, 0], "position in cm")
    assert [axes.get_title() for axes in figure.axes[:2]] == ["a", "b"]
    assert figure.axes[2].get_ylabel() == "position in cm"
    where, _ = drawn(figure.axes[0])
    far = np.linalg.norm(where[:, None] - where[None], axis=-1)
    expected = np.linalg.norm(flat[:, None] - flat[None], axis=-1)
    np.testing.assert_allclose(far, expected, atol=1e-9)  # a plane is shown as it is


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


def test_curves_of_training_and_of_held_out_pairs():
    history = [
        {"step": s, "loss": 5.0 - s / 100, "bits": b} for s, b in ((50, 1), (100, 3), (150, 2))
    ]
    figure = plots.fit_curves({"one": history, "other": history[:2]})
    above, below = figure.axes
    np.testing.assert_allclose(above.get_lines()[0].get_ydata(), [4.5, 4.0, 3.5])
    lines = {line.get_label(): line for line in below.get_lines()}
    np.testing.assert_allclose(lines["one"].get_ydata(), [1, 3, 2])
    [[best, bits], *_] = [
        line.get_xydata()[0] for line in below.get_lines() if line.get_marker() == "o"
    ]
    assert (best, bits) == (100, 3)
    assert len(plots.fit_curves({"none": []}).axes) == 2


def test_positions_can_be_told_apart_by_lightness_alone():
    colours = plots.ALONG(np.linspace(0, 1, 20))[:, :3]
    assert (np.diff(colours @ [0.2126, 0.7152, 0.0722]) > 0).all()


def test_a_picture_goes_into_a_page():
    figure = plots.fit_curves({"one": [{"step": 1, "loss": 1.0, "bits": 0.5}]})
    assert plots.inline(figure).startswith("data:image/png;base64,")
