"""Limits and details of curves and matrices that can be told from the data."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import same_color

from identica import plots
from identica.plots import curves, style

RECORDS = [{"step": s, "loss": 5.0 - s / 100, "bits": b} for s, b in ((50, 1), (100, 3), (150, 2))]


def scored(*values):
    return [{"step": k, "r2": value} for k, value in enumerate(values, 1)]


@pytest.mark.parametrize(
    ("highest", "top"),
    [(0.0, 0.5), (0.8, 0.9), (0.998, 0.999), (0.99997, 0.99998), (1.0, 0.99998), (None, 0.95)],
)
def test_the_axis_ends_halfway_to_one(highest, top):
    """And at 2e−5 from it at most; without values, as for .9."""
    ax = plots.history([] if highest is None else scored(-0.5, highest), "r2")
    assert ax.get_ylim() == pytest.approx((0, top))
    every = [0, 0.5, 0.9, 0.95, 0.99, 0.995, 0.999, 0.9995, 0.9999]
    expected = [tick for tick in every if tick <= max(top, 0.5)]
    assert ax.get_yticks().tolist() == pytest.approx(expected)
    ax.figure.canvas.draw()
    assert [text.get_text() for text in ax.get_yticklabels()] == [f"{tick:g}" for tick in expected]
    assert len(ax.yaxis.get_minorticklocs()) == 0


def test_scores_near_one_stay_finite():
    ax = plots.history(scored(0.2, 1.0), "r2")
    place = ax.transScale.transform([(0, value) for value in (0.0, 0.9, 1.0)])[:, 1]
    assert place.tolist() == pytest.approx([0, 1, 9])  # digits, of which there are nine at most
    back = ax.transScale.inverted().transform([(0.0, digits) for digits in (0.0, 1.0, 3.0)])[:, 1]
    assert back.tolist() == pytest.approx([0, 0.9, 0.999])


def test_every_colour_once_before_the_dashes_change():
    number = len(style.COLOURS)
    ax = plots.history({f"run {k}": scored(0.1, 0.2) for k in range(number + 2)}, "r2")
    lines = ax.get_lines()
    for k, line in enumerate(lines):
        assert same_color(line.get_color(), style.COLOURS[k % number])
        assert line.get_linestyle() == style.DASHES[k // number]
        assert line.get_marker() == "."
    for score, colour in (("bits", style.ORANGE), ("loss", style.BLUE)):
        ax = plots.history({f"run {k}": RECORDS for k in range(6)}, score)
        curves_of = [line for line in ax.get_lines() if line.get_label().startswith("run")]
        assert len(curves_of) == 6
        for k, line in enumerate(curves_of):
            assert same_color(line.get_color(), colour)
            assert line.get_linestyle() == style.DASHES[k % len(style.DASHES)]
            assert line.get_marker() == "None"


def test_what_stands_beside_the_evidence():
    ax = plots.history({"one": RECORDS, "other": RECORDS[:2]})
    [right] = [other for other in ax.figure.axes if other is not ax]
    assert ax.get_zorder() > right.get_zorder()
    assert not ax.patch.get_visible()
    assert same_color(right.yaxis.label.get_color(), style.BLUE)
    assert same_color(ax.yaxis.label.get_color(), style.ORANGE)
    assert [line.get_linestyle() for line in right.get_lines()] == ["-", "--"]
    assert right.spines["right"].get_visible()
    assert not right.spines["left"].get_visible()
    assert not right.spines["top"].get_visible()
    zero = [line for line in ax.get_lines() if list(line.get_ydata()) == [0, 0]]
    assert len(zero) == 1
    assert same_color(zero[0].get_color(), style.GREY)
    assert len(plots.history(RECORDS, "loss").figure.axes) == 1


def test_legends_begin_beside_the_axes_or_beside_those_of_the_loss():
    bits = [{"step": s, "bits": s / 50} for s in (50, 100)]
    for source, score, at in (
        ({"a": RECORDS, "b": RECORDS}, "bits", 1.18),
        ({"a": bits, "b": bits}, "bits", 1.0),
        ({"a": RECORDS, "b": RECORDS}, "loss", 1.0),
        ({"a": scored(0.3), "b": scored(0.4)}, "r2", 1.0),
    ):
        ax = plots.history(source, score)
        box = ax.get_legend().get_bbox_to_anchor().transformed(ax.transAxes.inverted())
        assert box.x0 == pytest.approx(at)
    assert plots.history(scored(0.3), "r2").get_legend() is None
    assert plots.history(scored(0.3), "r2", published=0.5).get_legend() is not None
    assert plots.history({"a": scored(0.3)}, "r2").get_legend() is None


def test_labels_of_scores():
    assert plots.history(scored(0.3), "r2").get_ylabel() == "R² on held-out pairs"
    assert plots.history(RECORDS, "loss").get_ylabel() == "loss in training"
    other = [{"step": 1, "speed": 0.5}]
    assert plots.history(other, "speed").get_ylabel() == "speed on held-out pairs"
    assert set(curves.SCORES) < set(curves.NAMES)


@pytest.mark.parametrize(("bits", "bottom"), [([0.5, 0.9], 0.0), ([-0.3, 0.9], -0.3)])
def test_evidence_is_shown_from_zero_or_below(bits, bottom):
    ax = plots.evidence({1: bits[0], 4: bits[1]}, "lag")
    assert ax.get_ylim()[0] == bottom
    assert ax.get_xlim() == pytest.approx((1 - 0.08 * 3, 4 + 0.08 * 3))
    assert ax.get_xlabel() == "lag, in rows"
    assert plots.evidence({1: 0.5}).get_xlabel() == "value"
    assert ax.get_legend() is None
    ax.figure.canvas.draw()
    assert all(tick == int(tick) for tick in ax.get_xticks())


# --- matrices ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("number", "written"), [(8, 64), (9, 0)])
def test_numbers_are_written_into_eight_by_eight_cells(number, written):
    z = np.random.default_rng(0).normal(size=(50, number))
    ax = plots.correlations(z, z)
    assert len(ax.texts) == written
    if written:
        rows, columns = (np.array(lines.get_segments()) for lines in ax.collections)
        assert rows[:, 0, 1].tolist() == [k + 0.5 for k in range(7)]
        assert rows[0, :, 0].tolist() == [-0.5, 7.5]
        assert columns[:, 0, 0].tolist() == [k + 0.5 for k in range(7)]
        assert columns[0, :, 1].tolist() == [-0.5, 7.5]
        assert not ax.xaxis.get_ticklines()[0].get_markersize()


@pytest.mark.parametrize(("codes", "step"), [(19, 1), (20, 2), (35, 3)])
def test_rows_and_columns_are_numbered_while_they_fit(codes, step):
    rng = np.random.default_rng(0)
    ax = plots.correlations(rng.normal(size=(90, 3)), rng.normal(size=(90, codes)))
    assert ax.get_xticks().tolist() == list(range(0, codes, step))
    assert [text.get_text() for text in ax.get_xticklabels()] == [
        str(k + 1) for k in range(0, codes, step)
    ]
    assert [text.get_text() for text in ax.get_yticklabels()] == ["1", "2", "3"]


def test_restarts_are_on_a_scale_from_zero_to_one_with_three_digits():
    h = np.random.default_rng(0).normal(size=(100, 2))
    ax = plots.restarts([h, -h])
    assert ax.images[0].get_clim() == (0, 1)
    assert {text.get_text() for text in ax.texts} == {"1.000"}
    assert ax.get_title() == "agreement code by code (MCC)"
    assert not any(spine.get_visible() for spine in ax.spines.values())


def test_text_is_black_on_what_is_light():
    """By the luma of the cell, at a half."""
    values = np.linspace(-1, 1, 8).reshape(2, 4)
    ax = plots.correlations(type("D", (), {"truth": type("T", (), {"matrix": values})}))
    image = ax.images[0]
    for text in ax.texts:
        j, i = text.get_position()
        red, green, blue, _ = image.cmap(image.norm(values[i, j]))
        light = 0.2126 * red + 0.7152 * green + 0.0722 * blue
        assert abs(light - 0.5) > 1e-3
        assert text.get_color() == ("black" if light > 0.5 else "white")
        assert text.get_text() == f"{values[i, j]:.2f}".replace("-", "−")
    plt.close("all")
