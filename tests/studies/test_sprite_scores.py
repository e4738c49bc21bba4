"""The scores of sprites on codes that are known, and how they compare with the published ones."""

import numpy as np
import pytest
import torch

from identica import Training
from identica.recipes import Recipe
from identica.studies import find
from identica.studies.published import METRICS
from identica.studies.published import WORKSHOP_TABLE2 as DSPRITES_ROWS
from identica.studies.published import WORKSHOP_TABLE3 as DISCRETE_ROWS
from identica.studies.published import WORKSHOP_TABLE4 as CONTINUOUS_ROWS
from identica.studies.sprites import Scoring, SpritesExperiment
from identica.studies.study import Ours
from identica.studies.table import pooled


class Written:
    """Images that hold their factors in the first line of pixels, for encoders that read them."""

    def sample(self, n, rng):
        return np.random.default_rng(rng).integers(0, (3, 6, 5, 4, 4), size=(n, 5))

    def images(self, factors):
        images = np.zeros((len(factors), 64, 64), np.uint8)
        images[:, 0, :5] = factors
        return images


def noise(n, k):
    return torch.randn(n, k, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def read(x):
    """Each factor in a code of its own, and five codes that know nothing."""
    return torch.cat([-3.0 * x[:, 0, [4, 2, 0, 1, 3]].double(), noise(len(x), 5)], 1)


def turned(x):
    """The factors turned by a rotation that mixes all of them."""
    z = x[:, 0, :5].double() / torch.tensor([3.0, 6, 5, 4, 4], dtype=torch.float64)
    return z @ torch.linalg.qr(noise(5, 5))[0]


def test_scores_of_codes_that_are_known():
    scoring = Scoring(train=1000, test=500, images=3000, watched=10)

    class Codes(torch.nn.Module):
        def __init__(self, encode):
            super().__init__()
            self.forward = encode

    def score(encode, row=DSPRITES_ROWS[0]):
        experiment = SpritesExperiment(row, 0, Recipe(Training()), scoring, original=False)
        return experiment.scores(Written(), Codes(encode))

    perfect, mixed = score(read), score(turned)
    assert set(perfect) == {*METRICS, "mcc"}
    for name in ("mcc", "beta_vae", "factor_vae", "mig"):
        # noise seems to know a little of a factor, by the counts of a thousand rows
        assert perfect[name] == pytest.approx(1.0, abs=0.04), name
    assert perfect["dci"] > 0.95
    assert perfect["modularity"] == pytest.approx(0.5, abs=0.02)  # half of the codes are noise
    for name in ("mcc", "mig", "dci"):
        assert mixed[name] < perfect[name] - 0.15, name
    nothing = score(lambda x: torch.zeros(len(x), 10))  # a posterior that has collapsed
    for name, value in nothing.items():
        assert value == pytest.approx(0.2 if name == "beta_vae" else 0.0, abs=0.06), name
    only = score(read, CONTINUOUS_ROWS[0])
    assert only == {"mcc": pytest.approx(1.0)}


def test_the_median_and_its_deviation():
    results = [{"scores": {"mig": value}} for value in (0.1, 0.2, 0.9, 0.4)]
    found = pooled(results, "mig", "median")
    assert found.mean == pytest.approx(0.3)
    assert found.std == pytest.approx((0.2 + 0.1 + 0.6 + 0.1) / 4)
    assert found.seeds == 4
    assert pooled(results, "mig").mean == pytest.approx(0.4)


@pytest.mark.parametrize(
    ("row", "score", "ours", "word", "good"),
    [
        (DSPRITES_ROWS[0], "mig", Ours(0.25, 0.02, 5, 0.0), "within", True),  # 26.6
        (DSPRITES_ROWS[0], "mig", Ours(0.24, 0.02, 5, 0.0), "below", False),
        (DSPRITES_ROWS[0], "mig", Ours(0.2645, 0.0, 1, 0.0), "within", True),
        (DSPRITES_ROWS[0], "mig", Ours(0.9, 0.0, 1, 0.0), "above", True),
        (DSPRITES_ROWS[0], "mcc", Ours(0.9, 0.0, 1, 0.0), "–", None),
        (DISCRETE_ROWS[0], "mig", Ours(0.0, 0.0, 1, 0.0), "below", None),  # of other data
    ],
)
def test_verdicts(row, score, ours, word, good):
    study = find("workshop-table2")
    target = next(target for target in study.targets(row) if target.score == score)
    assert study.verdict(target, ours) == (word, good)
