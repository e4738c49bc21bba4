"""Codes as points: what is drawn is what was given."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import torch

from identica import InputError, plots
from identica.plots.points import aligned, rescaled

RNG = np.random.default_rng(0)
H = RNG.normal(size=(60, 2))


def drawn(ax):
    """The data of the scatter plot of an Axes."""
    [points] = ax.collections
    return np.asarray(points.get_offsets()), points.get_array()


# --- codes --------------------------------------------------------------------------------------------


def test_codes_of_two_dimensions_are_shown_as_they_are():
    label = RNG.normal(size=60)
    for h in (H, torch.from_numpy(H), pd.DataFrame(H)):
        ax = plots.codes(h, label, name="position in cm")
        where, colour = drawn(ax)
        np.testing.assert_allclose(where, H)
        np.testing.assert_allclose(colour, label)
        assert ax.figure.axes[1].get_ylabel() == "position in cm"
        assert (ax.get_xlabel(), ax.get_ylabel()) == ("code 1", "code 2")
    assert drawn(plots.codes(H))[1] is None


def test_more_codes_are_shown_by_their_principal_components():
    flat = RNG.normal(size=(60, 2)) * [5, 2]
    turned = flat @ np.linalg.qr(RNG.normal(size=(6, 6)))[0][:2] + 3
    ax = plots.codes(turned)
    where, _ = drawn(ax)
    far = np.linalg.norm(where[:, None] - where[None], axis=-1)
    expected = np.linalg.norm(flat[:, None] - flat[None], axis=-1)
    np.testing.assert_allclose(far, expected, atol=1e-9)  # a plane is shown as it is
    assert ax.get_xlabel() == "principal component 1"


def test_one_code_is_drawn_against_the_row():
    ax = plots.codes(H[:, 0])
    np.testing.assert_allclose(drawn(ax)[0], np.c_[np.arange(60), H[:, 0]])
    assert ax.get_xlabel() == "row"


def test_three_dimensions():
    h = RNG.normal(size=(60, 3))
    ax = plots.codes(h, "time", dims=3)
    [points] = ax.collections
    np.testing.assert_allclose(np.c_[points._offsets3d], h)
    assert ax.get_zlabel() == "code 3"
    with pytest.raises(InputError, match=r"^ax must be of projection '3d'"):
        plots.codes(h, dims=3, ax=plt.figure().subplots())
    with pytest.raises(InputError, match=r"^ax must be flat"):
        plots.codes(h, ax=ax)
    with pytest.raises(InputError, match=r"^dims must be at most the number of codes, 2, got 3"):
        plots.codes(H, dims=3)


def test_time_is_the_number_of_the_row():
    ax = plots.codes(H, "time")
    np.testing.assert_allclose(drawn(ax)[1], np.arange(60))
    assert ax.figure.axes[1].get_ylabel() == "row"


def test_an_angle_goes_all_the_way_round():
    angle = np.linspace(-170, 170, 60)
    points = plots.codes(H, angle, cyclic=True).collections[0]
    assert points.get_clim() == (-180, 180)
    ends = [points.cmap(points.norm(value)) for value in (-180.0, 180.0)]
    np.testing.assert_allclose(*ends, atol=0.02)


@pytest.mark.parametrize("classes", [["rest", "run", "turn"], [0, 1, 2]])
def test_classes_have_a_legend(classes):
    label = np.array(classes)[np.arange(60) % 3]
    ax = plots.codes(H, label, name="state")
    assert [text.get_text() for text in ax.get_legend().get_texts()] == list(map(str, classes))
    assert ax.get_legend().get_title().get_text() == "state"
    for k, points in enumerate(ax.collections):
        np.testing.assert_allclose(points.get_offsets(), H[np.arange(60) % 3 == k])


def test_many_whole_numbers_are_a_quantity():
    np.testing.assert_allclose(drawn(plots.codes(H, np.arange(60)))[1], np.arange(60))


def test_bad_codes_and_labels_are_named():
    for bad in ("codes", None, np.zeros((3, 2, 2)), [[np.nan, 0.0], [0.0, 1.0]]):
        with pytest.raises(InputError, match=r"^h must"):
            plots.codes(bad)
    for bad in ("times", np.zeros(59), np.zeros((60, 2)), np.full(60, np.nan), 3):
        with pytest.raises(InputError, match=r"^label must"):
            plots.codes(H, bad)
    with pytest.raises(InputError, match=r"or at most 24 classes, got 60 classes"):
        plots.codes(H, [f"row {k}" for k in range(60)])
    for bad in (1, 4, 2.5):
        with pytest.raises(InputError, match=r"^dims must"):
            plots.codes(H, dims=bad)
    with pytest.raises(InputError, match=r"^name must be text"):
        plots.codes(H, H[:, 0], name=H)
    with pytest.raises(InputError, match=r"^cyclic must"):
        plots.codes(H, cyclic="yes")
    assert not plt.get_fignums()


# --- against the truth --------------------------------------------------------------------------------


def test_each_factor_is_drawn_against_its_own_code():
    z = RNG.normal(size=(200, 3))
    grid = plots.recovered(z, np.c_[5 - 2 * z[:, 2], z[:, 0], 7 * z[:, 1]])
    assert len(grid) == 3
    for k, ax in enumerate(grid):
        np.testing.assert_allclose(drawn(ax)[0], np.c_[z[:, k], z[:, k]], atol=1e-9)
        assert ax.get_title() == f"factor {k + 1}"
        ends = [z[:, k].min(), z[:, k].max()]
        np.testing.assert_allclose(ax.get_lines()[0].get_xydata(), np.c_[ends, ends])
    assert [ax.get_ylabel() for ax in grid] == ["recovered", "", ""]


def test_mixtures_are_undone_by_a_linear_map():
    z = RNG.normal(size=(200, 2))
    grid = plots.recovered(z, z @ [[1.0, 2.0, 0.0], [3.0, 1.0, 1.0]] + 4, up_to="linear")
    for k, ax in enumerate(grid):
        np.testing.assert_allclose(drawn(ax)[0][:, 1], z[:, k], atol=1e-9)


def test_codes_as_they_are():
    z, h = RNG.normal(size=(2, 50))
    ax = plots.recovered(z, h, up_to=None, names=["log-density"], label="estimate")
    np.testing.assert_allclose(drawn(ax)[0], np.c_[z, h])
    assert (ax.get_title(), ax.get_ylabel(), ax.get_xlabel()) == ("log-density", "estimate", "true")


def test_a_factor_without_a_code_is_its_mean():
    z = RNG.normal(size=(200, 2))
    found = aligned(z, z[:, 1:], "permutation")
    np.testing.assert_allclose(found, np.c_[np.full(200, z[:, 0].mean()), z[:, 1]], atol=1e-9)


def test_a_code_that_never_changes_is_the_mean_of_its_factor():
    z = RNG.normal(size=(200, 2))
    np.testing.assert_allclose(rescaled(z, np.ones_like(z)), np.tile(z.mean(axis=0), (200, 1)))


def test_bad_factors_and_names():
    with pytest.raises(InputError, match=r"^z must"):
        plots.recovered("z", H)
    with pytest.raises(InputError, match=r"^z and h must have the same number of rows"):
        plots.recovered(H[:50], H)
    with pytest.raises(
        InputError, match=r"^up_to must be one of permutation, linear; got 'affine'"
    ):
        plots.recovered(H, H, up_to="affine")
    with pytest.raises(InputError, match=r"^h must have 2 columns, as z"):
        plots.recovered(H, H[:, :1], up_to=None)
    for names in ("xy", ["x"], 2, None.__class__):
        with pytest.raises(InputError, match=r"^names must be"):
            plots.recovered(H, H, names=names)
    figure = plt.figure()
    for ax in (figure.subplots(), figure.subplots(1, 3)):
        with pytest.raises(InputError, match=r"^ax must be 2 Axes, one for each column, got"):
            plots.recovered(H, H, ax=ax)


def test_panels_of_ones_own():
    grid = plt.figure().subplots(2, 1)
    found = plots.recovered(H, H, ax=grid)
    assert list(found) == list(grid)


def test_panels_that_have_nothing_to_show_are_hidden():
    z = RNG.normal(size=(50, 7))
    grid = plots.recovered(z, z)
    assert len(grid) == 7
    assert sum(ax.get_visible() for ax in grid[0].figure.axes) == 7
    below = [ax.get_xlabel() for ax in grid]
    assert below == ["", "", "true", "true", "true", "true", "true"]  # the lowest of each column


# --- how codes are distributed ------------------------------------------------------------------------


def test_a_density_has_area_one_and_every_value_is_in_it():
    values = RNG.normal(size=500)
    ax = plots.density(values)
    bars = ax.patches
    assert sum(bar.get_width() * bar.get_height() for bar in bars) == pytest.approx(1.0)
    first, last = bars[0], bars[-1]
    assert first.get_x() == pytest.approx(values.min())
    assert last.get_x() + last.get_width() == pytest.approx(values.max())
    height = np.histogram(values, bins=len(bars), density=True)[0]
    np.testing.assert_allclose([bar.get_height() for bar in bars], height)


def test_every_code_has_its_panel():
    grid = plots.density(H, names=["x", "y"])
    assert [ax.get_title() for ax in grid] == ["x", "y"]
    assert plots.density(np.ones(50)).has_data()  # a constant has a bar too
    with pytest.raises(InputError, match=r"^h must"):
        plots.density("codes")
