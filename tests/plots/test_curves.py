"""Curves: what is drawn is what was recorded."""

from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest

from identica import Box, Euclidean, InputError, Laplace, Normal, plots
from identica.estimator.selection import Selection
from identica.training.loop import History

RECORDS = [{"step": s, "loss": 5.0 - s / 100, "bits": b} for s, b in ((50, 1), (100, 3), (150, 2))]
SCORED = [{"step": s, "r2": r} for s, r in ((1, 0.2), (2, 0.99), (3, 0.998))]


def line(ax, label):
    [found] = [each for each in ax.get_lines() if each.get_label() == label]
    return found


def test_evidence_is_drawn_beside_the_loss_and_its_best_is_marked():
    ax = plots.history({"one": RECORDS, "other": RECORDS[:2]})
    np.testing.assert_allclose(line(ax, "one").get_xydata(), [[50, 1], [100, 3], [150, 2]])
    np.testing.assert_allclose(line(ax, "other").get_ydata(), [1, 3])
    dots = [each.get_xydata()[0].tolist() for each in ax.get_lines() if each.get_marker() == "o"]
    assert dots == [[100, 3], [100, 3]]
    [right] = [other for other in ax.figure.axes if other is not ax]
    np.testing.assert_allclose(right.get_lines()[0].get_ydata(), [4.5, 4.0, 3.5])
    assert ax.get_ylabel() == "held-out bits per pair"
    assert right.get_ylabel() == "loss in training"
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["one", "other"]


def test_histories_come_from_fits_trainings_and_records():
    fitted = SimpleNamespace(history_=RECORDS)
    for source in (fitted, History(RECORDS), RECORDS, {"a": fitted}):
        ax = plots.history(source)
        np.testing.assert_allclose(ax.get_lines()[0].get_ydata(), [1, 3, 2])
    assert plots.history(RECORDS).get_legend() is None  # there is nothing to tell apart
    assert plots.history([]).get_xlabel() == "step"
    assert len(plots.history([{"step": 1, "bits": 0.5}]).figure.axes) == 1


def test_scores_keep_their_values_on_an_axis_that_expands_near_one():
    ax = plots.history({"seed 0": SCORED}, "r2", published=0.9986, on="unseen images")
    np.testing.assert_allclose(line(ax, "seed 0").get_ydata(), [0.2, 0.99, 0.998])
    np.testing.assert_allclose(line(ax, "published (0.9986)").get_ydata(), [0.9986, 0.9986])
    assert ax.get_ylabel() == "R² on unseen images"
    place = ax.transData.transform([(0, s) for s in (0.0, 0.9, 0.99, 0.999)])[:, 1]
    np.testing.assert_allclose(np.diff(place), np.diff(place)[0])  # a digit is a step
    assert ax.get_ylim()[1] > 0.998


def test_a_perfect_score_stays_in_sight():
    ax = plots.history([{"step": 1, "mcc": 0.5}, {"step": 2, "mcc": 1.0}], "mcc")
    assert 0.9999 < ax.get_ylim()[1] < 1
    ax.figure.canvas.draw()


def test_legends_cover_nothing():
    ax = plots.history({f"seed {k}": SCORED for k in range(8)}, "r2", published=0.9)
    ax.figure.canvas.draw()
    box, inside = ax.get_legend().get_window_extent(), ax.get_window_extent()
    assert box.x0 >= inside.x1
    assert box.x1 <= ax.figure.bbox.x1  # nor do they stick out
    looks = {(each.get_color(), each.get_linestyle()) for each in ax.get_lines()[:8]}
    assert len(looks) == 8


@pytest.mark.parametrize("source", ["abc", 3, [1, 2], {}, None, np.zeros((3, 2))])
def test_what_is_no_history(source):
    with pytest.raises(InputError, match=r"^source must"):
        plots.history(source)


def test_a_score_that_is_not_there():
    with pytest.raises(InputError, match=r"^score must be one of bits, loss, step; got 'r2'"):
        plots.history(RECORDS, "r2")
    with pytest.raises(InputError, match=r"^score must be the name of a score"):
        plots.history(RECORDS, ["bits"])
    with pytest.raises(InputError, match=r"^published must be a finite number"):
        plots.history(SCORED, "r2", published="high")
    assert not plt.get_fignums()  # nothing is drawn in vain


# --- what "auto" chose --------------------------------------------------------------------------------

FITTED = SimpleNamespace(
    evidence_={"window": {1: 2.0, 3: 3.0, 5: 2.9}, "n_components": {1: 0.8, 2: 1.9, 3: 1.91}},
    model_=SimpleNamespace(space=Box(2)),
    window_=5,
    lag_=1,
)


@pytest.mark.parametrize(
    ("choice", "chosen", "words"),
    [("window", (5, 2.9), "window, in rows"), ("n_components", (2, 1.9), "number of codes")],
)
def test_the_choice_is_marked(choice, chosen, words):
    ax = plots.evidence(FITTED, choice)
    curve, mark = ax.get_lines()
    assert dict(curve.get_xydata().tolist()) == FITTED.evidence_[choice]
    assert tuple(mark.get_xydata()[0]) == chosen
    assert (ax.get_xlabel(), ax.get_ylabel()) == (words, "held-out bits per pair")
    assert ax.get_ylim()[0] == 0  # differences look as large as they are


def test_bits_alone_have_no_mark():
    assert len(plots.evidence({1: 0.8, 2: 1.9}).get_lines()) == 1


def test_a_selection_is_bars():
    table = [
        {
            "space": s,
            "conditional": repr(f),
            "bits": b,
            "error": e,
            "behind": 3 - b,
            "unevenness": 0,
        }
        for s, f, b, e in (
            ("unbounded", Laplace(1.0), 3.0, 0.0),
            ("box", Laplace(1.0), 2.9, 0.1),
            ("box", Normal(1.0), 2.0, 0.2),
        )
    ]
    for chosen, place in ((Box(2), 1), (Euclidean(2), 0)):
        ax = plots.evidence(Selection(chosen, Laplace(1.0), table))
        assert {tick.get_markersize() for tick in ax.yaxis.get_ticklines()} == {0}
        bars = ax.patches
        assert [bar.get_width() for bar in bars] == [3.0, 2.9, 2.0]
        marked = [bar.get_facecolor() != bars[2].get_facecolor() for bar in bars]
        assert marked == [k == place for k in range(3)]
        assert ax.get_yticklabels()[1].get_text() == "box, Laplace(scale=1.0)"


def test_evidence_that_is_not_there():
    with pytest.raises(
        InputError, match=r"^choice must be one of window, n_components, as the fit selected"
    ):
        plots.evidence(FITTED)
    with pytest.raises(InputError, match=r"^choice must be one of window, n_components; got 'lag'"):
        plots.evidence(FITTED, "lag")
    with pytest.raises(InputError, match=r"^source must have selected something"):
        plots.evidence(SimpleNamespace(evidence_={}))
    for bad in ({}, [1, 2], "abc", None):
        with pytest.raises(InputError, match=r"^source must"):
            plots.evidence(bad)
