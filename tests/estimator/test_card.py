"""An estimator in a notebook."""

import numpy as np
import pytest
import sklearn
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from identica import ContrastiveICA

ROWS = np.random.default_rng(0).normal(size=(200, 3)).cumsum(axis=0)


@pytest.fixture(scope="module")
def fitted():
    return ContrastiveICA(2, steps=3, batch=16, window=1).fit(ROWS)


def test_before_and_after_fit(fitted):
    assert "not fitted" in ContrastiveICA(2)._repr_html_()
    assert "n_components=2" in ContrastiveICA(2)._repr_html_()
    shown = fitted._repr_html_()
    for words in (
        "fitted",
        "steps=3",
        "2 codes of 3 columns",
        "Normal(std=1.0)",
        "lag 1, window 1",
    ):
        assert words in shown
    assert f"{fitted.bits_:.2f} held-out bits per pair" in shown
    assert fitted._repr_mimebundle_()["text/html"] == shown
    assert fitted._repr_mimebundle_()["text/plain"] == repr(fitted)


def test_the_verdict_is_that_of_the_last_fit():
    ica = ContrastiveICA(2, steps=3, batch=16, window=1).fit(ROWS)
    assert "not diagnosed yet" in ica._repr_html_()
    verdict = ica.diagnose(ROWS).verdict
    assert f"verdict: {verdict}" in ica._repr_html_()
    assert "not diagnosed yet" in ica.fit(ROWS)._repr_html_()


def test_scikit_learn_decides_whether_and_shows_pipelines(fitted):
    with sklearn.config_context(display="text"):
        assert not hasattr(fitted, "_repr_html_")
        assert set(fitted._repr_mimebundle_()) == {"text/plain"}
    assert "ContrastiveICA" in make_pipeline(StandardScaler(), fitted)._repr_html_()
