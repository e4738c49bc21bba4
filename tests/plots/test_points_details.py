"""Limits and details of the plots of points that can be told from the data."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_rgb, to_rgba

from identica import InputError, plots
from identica.plots import style
from identica.plots.points import rescaled

RNG = np.random.default_rng(0)
H = RNG.normal(size=(60, 3))


def test_classes_use_every_colour_once_before_the_marker_changes():
    number = len(style.COLOURS) * len(style.MARKERS)
    points = RNG.normal(size=(number, 2))
    ax = plots.codes(points, [f"class {k:02}" for k in range(number)])
    looks = []
    for k, found in enumerate(ax.collections):
        assert found.get_facecolor()[0] == pytest.approx(
            to_rgba(style.COLOURS[k % len(style.COLOURS)])
        )
        looks.append((tuple(found.get_facecolor()[0]), found.get_paths()[0].vertices.tobytes()))
    assert len(set(looks)) == number
    first = looks[: len(style.COLOURS)]
    assert len({marker for _, marker in first}) == 1
    with pytest.raises(InputError, match=f"at most {number} classes, got {number + 1} classes"):
        plots.codes(RNG.normal(size=(number + 1, 2)), [f"class {k}" for k in range(number + 1)])


def test_as_many_whole_numbers_as_colours_are_classes():
    number = len(style.COLOURS)
    assert len(plots.codes(H[:, :2], np.arange(60) % number).collections) == number
    assert len(plots.codes(H[:, :2], np.arange(60) % (number + 1)).collections) == 1
    column = (np.arange(60) % number)[:, None]
    assert len(plots.codes(H[:, :2], column).collections) == number
    assert len(plots.codes(H[:, :2], np.arange(60) % 3 / 2).collections) == 1  # floats are numbers


def test_dates_are_shown_as_matplotlib_counts_them():
    days = np.datetime64("2020-01-01") + np.arange(60)
    ax = plots.codes(H[:, :2], days)
    shown = ax.collections[0].get_array()
    np.testing.assert_allclose(shown, 18262 + np.arange(60))  # days since 1970
    bar = ax.figure.axes[1]
    assert bar.get_ylabel() == ""
    ax.figure.canvas.draw()
    assert any(
        "2020" in text.get_text() or "Jan" in text.get_text() for text in bar.get_yticklabels()
    )
    with pytest.raises(InputError, match="some are missing"):
        plots.codes(H[:, :2], np.where(np.arange(60) == 5, np.datetime64("NaT"), days))
    assert plots.codes(H[:, :2], np.ones(60) * 0.5).figure.axes[1].get_ylabel() == "label"


def test_an_angle_has_ticks_at_right_angles():
    ax = plots.codes(H[:, :2], np.linspace(-170, 170, 60), cyclic=True)
    bar = ax.figure.axes[1]
    assert bar.get_yticks().tolist() == [-180, -90, 0, 90, 180]
    plain = plots.codes(H[:, :2], np.linspace(-170, 170, 60)).collections[0]
    assert plain.get_clim() == (-170, 170)
    assert plain.get_cmap().name == "along"
    assert ax.collections[0].get_cmap().name == "around"


def test_distances_are_the_same_on_both_axes():
    ax = plots.codes(H[:, :2])
    assert ax.get_aspect() == 1
    assert ax.get_adjustable() == "datalim"
    assert plots.codes(H, dims=3).get_adjustable() == "box"
    assert plots.codes(H[:, 0]).get_aspect() == "auto"  # a row number has another unit
    ax.figure.canvas.draw()
    assert len(ax.get_xticks()) <= 7  # of which two may lie outside
    assert len(plots.codes(H).figure.axes) == 1


def test_what_is_drawn_without_a_label_is_blue():
    assert plots.codes(H[:, :2]).collections[0].get_facecolor()[0] == pytest.approx(
        to_rgba(style.BLUE)
    )
    solid = plots.codes(H, dims=3)
    assert solid.get_xlabel() == "code 1"
    for axis in (solid.xaxis, solid.yaxis, solid.zaxis):
        assert not axis.pane.get_visible()
    titles = plots.codes(RNG.normal(size=(60, 5)), dims=3)
    assert titles.get_zlabel() == "principal component 3"


def test_components_come_in_the_order_of_their_variance():
    h = RNG.normal(size=(60, 4)) * [1, 9, 3, 0.1]
    shown = np.asarray(plots.codes(h).collections[0].get_offsets())
    centred = h - h.mean(0)
    vectors = np.linalg.eigh(centred.T @ centred)[1]
    expected = centred @ vectors[:, [-1, -2]]
    np.testing.assert_allclose(np.abs(shown), np.abs(expected), atol=1e-9)
    assert shown.mean(0) == pytest.approx([0, 0], abs=1e-9)


def test_three_dimensions_have_a_limit():
    plots.codes(1e100 * H / np.abs(H).max(), dims=3)
    with pytest.raises(InputError, match=r"h must be at most 1e\+100"):
        plots.codes(1.01e100 * H / np.abs(H).max(), dims=3)
    plots.codes(1.01e100 * H[:, :2] / np.abs(H).max())


@pytest.mark.parametrize(
    ("number", "bins"), [(10, 5), (239, 5), (240, 6), (1599, 39), (1600, 40), (4000, 40)]
)
def test_a_bar_for_each_forty_values(number, bins):
    ax = plots.density(RNG.normal(size=number))
    assert len(ax.patches) == bins
    assert to_rgb(ax.patches[0].get_facecolor()) == pytest.approx(to_rgb(style.BLUE))


@pytest.mark.parametrize(("number", "shape"), [(1, (1, 1)), (5, (1, 5)), (6, (2, 5)), (11, (3, 5))])
def test_five_panels_side_by_side(number, shape):
    panels = style.many_axes(None, number)
    assert len(panels) == number
    grid = panels[0].get_gridspec()
    assert (grid.nrows, grid.ncols) == shape
    assert [panel.get_visible() for panel in panels] == [True] * number
    every = panels[0].figure.axes
    assert sum(panel.get_visible() for panel in every) == number
    if number > 1:  # panels are about as wide as high
        width, height = panels[0].figure.get_size_inches()
        assert width / shape[1] == pytest.approx(height / shape[0], rel=0.4)


def test_a_label_for_each_row_and_column():
    z = RNG.normal(size=(50, 7))
    grid = plots.recovered(z, z)
    assert [ax.get_ylabel() for ax in grid] == ["recovered", *[""] * 4, "recovered", ""]
    figure = plt.figure()
    free = [figure.add_axes([0.1, 0.1, 0.3, 0.3]), figure.add_axes([0.5, 0.1, 0.3, 0.3])]
    plots.recovered(z[:, :2], z[:, :2], ax=free)  # in no grid
    assert [ax.get_xlabel() for ax in free] == ["true", "true"]
    assert [ax.get_ylabel() for ax in free] == ["recovered", "recovered"]
    alone = plt.figure().subplots(2, 2)[0, 1]
    plots.recovered(z[:, 0], z[:, 0], ax=alone)
    assert (alone.get_xlabel(), alone.get_ylabel()) == ("true", "recovered")


def test_codes_are_rescaled_by_least_squares():
    z, h = RNG.normal(size=(2, 80, 2))
    h[:, 1] = 3 - 2 * z[:, 1]
    found = rescaled(z, h)
    for k in range(2):
        slope, start = np.polyfit(h[:, k], z[:, k], 1)
        np.testing.assert_allclose(found[:, k], start + slope * h[:, k], atol=1e-9)
    tiny = rescaled(z, np.c_[1e-5 * h[:, 0], 1e-7 * h[:, 0]])
    np.testing.assert_allclose(tiny[:, 0], found[:, 0], atol=1e-9)
    assert tiny[:, 1].std() < tiny[:, 0].std() / 10  # hardly moves: hardly counts


def test_a_few_ticks_for_a_small_panel():
    ax = plt.figure().subplots()
    ax.plot([0, 97], [0, 0.03])
    style.few_ticks(ax)
    ax.figure.canvas.draw()
    for low_high, ticks in ((ax.get_xlim(), ax.get_xticks()), (ax.get_ylim(), ax.get_yticks())):
        inside = [tick for tick in ticks if low_high[0] <= tick <= low_high[1]]
        assert 2 <= len(inside) <= 4


def test_a_legend_begins_where_the_axes_end():
    ax = plt.figure().subplots()
    ax.plot([0, 1], [0, 1], label="line")
    style.legend(ax, 1.5, "title")
    box = ax.get_legend().get_bbox_to_anchor().transformed(ax.transAxes.inverted())
    assert (box.x0, box.y0) == pytest.approx((1.5, 1.0))
    assert ax.get_legend().get_title().get_text() == "title"
    assert not ax.get_legend().get_frame_on()
    style.legend(ax)
    box = ax.get_legend().get_bbox_to_anchor().transformed(ax.transAxes.inverted())
    assert (box.x0, box.y0) == pytest.approx((1.0, 1.0))
