import numpy as np
import pytest

from helpers.codes import pairs, rotation
from identica import Box, Laplace
from identica.diagnosis import codes_from, diagnose
from identica.diagnosis.truth import _rounded, truth
from identica.diagnosis.verdict import DISTRUST, LINEAR, PERMUTATION


def test_true_factors_decide():
    z, z_pos = pairs(Box(3), Laplace(0.05), 400)
    turned = z @ rotation(3)
    code = codes_from(z, z_pos, Laplace(0.05))
    for h, expected in ((-z, PERMUTATION), (turned, LINEAR), (np.exp(4 * z), DISTRUST)):
        found = truth(z, h)
        diagnosis = diagnose([code, code], Box(3), Laplace(0.05), truth=found)
        assert diagnosis.verdict == expected
    assert found.r2.shape == (3,)
    rotated = truth(z, turned)
    assert rotated.procrustes < 1e-9
    assert rotated.isometry < 1e-9


def test_every_metric():
    """Factors themselves score 1, their mixture loses what is code by code, constants score 0."""
    z = pairs(Box(3), Laplace(0.05))[0]
    best, turned, nothing = (truth(z, h).scores for h in (-z, z @ rotation(3), np.ones_like(z)))
    names = {name.split()[0].lower() for name in best}
    assert names >= {
        "r²",
        "mcc",
        "dci",
        "infomec",
        "mig",
        "sap",
        "modularity",
        "betavae",
        "factorvae",
    }
    loose = {"MIG"}  # cannot reach 1 for continuous factors
    assert all(value > 0.9 for name, value in best.items() if name not in loose)
    assert turned["R²"] == pytest.approx(1)
    for name in ("MCC", "MIG", "SAP", "DCI disentanglement", "InfoMEC modularity"):
        assert turned[name] < 0.9 * best[name]
        assert nothing[name] == pytest.approx(0, abs=1e-9)
    one = truth(z[:, :1], z).scores
    assert one["R²"] == pytest.approx(1)
    coarse = np.round(z * 3)  # discrete factors
    assert truth(coarse, coarse).scores["BetaVAE"] == 1


def test_factors_are_rounded_to_ten_levels_of_equal_size():
    z = np.random.default_rng(0).permutation(np.arange(100.0))
    few = np.arange(100) % 10 * 3.5
    eleven = np.arange(100) % 11
    found = _rounded(np.stack([z, few, eleven], 1))
    assert found[:, 0].tolist() == [min(int(x // 9.9), 9) for x in z]
    assert found[:, 1].tolist() == (np.arange(100) % 10).tolist()
    levels = np.quantile(eleven, np.arange(1, 10) / 10)
    assert found[:, 2].tolist() == [sum(x >= level for level in levels) for x in eleven]
