"""Matrices: what is drawn is what the metrics say."""

from types import SimpleNamespace

import numpy as np
import pytest

from identica import InputError, plots
from identica.metrics import agreement

RNG = np.random.default_rng(0)
Z = RNG.normal(size=(200, 3))


def shown(ax):
    return np.asarray(ax.images[0].get_array())


def test_correlations_of_factors_and_codes():
    h = np.c_[-Z[:, 1], Z[:, 0] + Z[:, 2]]
    ax = plots.correlations(Z, h)
    np.testing.assert_allclose(shown(ax), np.corrcoef(Z.T, h.T)[:3, 3:], atol=1e-9)
    assert ax.images[0].get_clim() == (-1, 1)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("code", "factor")
    written = {text.get_position(): text.get_text() for text in ax.texts}
    assert written[0, 1] == "−1.00"
    assert len(written) == 6


def test_numbers_are_left_out_where_they_do_not_fit():
    wide = RNG.normal(size=(50, 30))
    ax = plots.correlations(wide, wide)
    assert not ax.texts
    assert 2 < len(ax.get_xticks()) < 16


def test_numbers_can_be_read_on_their_colour():
    ax = plots.correlations(Z, Z)
    colours = {text.get_text(): text.get_color() for text in ax.texts}
    assert colours["1.00"] == "white"
    assert {colour for text, colour in colours.items() if text != "1.00"} == {"black"}


def test_a_diagnosis_with_true_factors():
    matrix = np.array([[0.9, -0.1]])
    ax = plots.correlations(SimpleNamespace(truth=SimpleNamespace(matrix=matrix)))
    np.testing.assert_allclose(shown(ax), matrix)
    for without in (SimpleNamespace(truth=None), Z):
        with pytest.raises(InputError, match=r"^h must be the codes, unless z is a diagnosis"):
            plots.correlations(without)


@pytest.mark.parametrize(("up_to", "kind"), [("permutation", "permutation"), ("linear", "affine")])
def test_agreement_of_every_two_fits(up_to, kind):
    fits = [Z, -Z[:, ::-1], Z @ RNG.normal(size=(3, 3))]
    ax = plots.restarts(fits, up_to)
    values = shown(ax)
    np.testing.assert_allclose(values, values.T)
    np.testing.assert_allclose(np.diag(values), 1)
    for i, j in ((0, 1), (0, 2), (1, 2)):
        assert values[i, j] == pytest.approx(agreement([fits[i], fits[j]], kind))
    assert [text.get_text() for text in ax.get_xticklabels()] == ["fit 1", "fit 2", "fit 3"]


def test_agreement_of_a_diagnosis():
    both = {"linear": np.eye(2), "permutation": np.full((2, 2), 0.5)}
    diagnosis = SimpleNamespace(restarts=SimpleNamespace(**both))
    for up_to, values in both.items():
        np.testing.assert_allclose(shown(plots.restarts(diagnosis, up_to)), values)


def test_bad_codes_are_named():
    for bad in (3, None, [Z], []):
        with pytest.raises(InputError, match=r"^source must"):
            plots.restarts(bad)
    with pytest.raises(InputError, match=r"^up_to must be one of permutation, linear"):
        plots.restarts([Z, Z], "affine")
    with pytest.raises(InputError, match=r"^z and h must have the same number of rows"):
        plots.correlations(Z, Z[:50])
