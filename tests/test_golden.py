"""What a refactoring must not change: a table, codes of a fit and a diagnosis, as they once came out.

The trainings are of few steps with Adam, so that rounding on another machine moves the figures by about 1e-6.
Where the fit is changed on purpose, `python tests/test_golden.py` writes the codes that come out now.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from helpers import tiny
from identica import Box, ContrastiveICA, GenerativeProcess, InvertibleMLP, Laplace, Uniform
from identica.diagnosis import codes_from, diagnose
from identica.studies import reproduce

FILE = Path(__file__).with_name("golden.json")
GOLDEN = json.loads(FILE.read_text(encoding="utf-8"))
CLOSE = 1e-3
SHORT = {"steps": 12, "batch": 64, "lr": 1e-3, "optimizer": "adam"}


def make_process():
    mixing = InvertibleMLP(3, seed=0, draws=100)
    return GenerativeProcess(Box(3), Uniform(), Laplace(0.1), mixing)


@pytest.fixture(scope="module")
def process():
    return make_process()


def test_a_table(tmp_path):
    reproduce(tiny.study(), seeds=[0, 1], preset=tiny.recipe(12), workers=1, out=tmp_path)
    table = json.loads((tmp_path / "table.json").read_text())
    found = {(r["row"], r["kind"], r["score"]): r["ours"]["mean"] for r in table}
    wanted = {(r["row"], r["kind"], r["score"]): r["mean"] for r in GOLDEN["table"]}
    assert found == pytest.approx(wanted, abs=CLOSE)


def codes_of_pairs(process):
    pairs = process.sample(400, generator=0)
    ica = ContrastiveICA(3, space="box", conditional="laplace", **SHORT, random_state=0)
    return ica.fit(pairs.x.numpy(), pairs.x_pos.numpy()).transform(pairs.x.numpy())[:6]


def codes_of_a_walk():
    walk = np.cumsum(np.random.default_rng(0).normal(size=(300, 4)), axis=0)
    ica = ContrastiveICA(2, space="sphere", **SHORT, random_state=3)
    return ica.fit(walk, lag=2).transform(walk)[::60]


def test_codes_of_pairs(process):
    assert codes_of_pairs(process) == pytest.approx(np.array(GOLDEN["codes"]), abs=CLOSE)


def test_codes_of_a_sequence():
    assert codes_of_a_walk() == pytest.approx(np.array(GOLDEN["walk"]), abs=CLOSE)


def test_a_diagnosis(process):
    z, z_pos, _, _ = process.sample(2000, generator=5)
    both = [codes_from(h, h_pos, Laplace(1.0)) for h, h_pos in [(z, z_pos), (-z, -z_pos)]]
    found, wanted = diagnose(both, Box(3), Laplace(1.0)), GOLDEN["diagnosis"]
    assert found.verdict == wanted["verdict"]
    assert [[f.check, f.level] for f in found.findings] == wanted["findings"]
    assert found.score.bits == pytest.approx(wanted["bits"], abs=CLOSE)
    assert found.dimensions.intrinsic.dimension == pytest.approx(wanted["dimension"], abs=CLOSE)
    assert found.restarts.mean_linear == pytest.approx(wanted["linear"], abs=CLOSE)


if __name__ == "__main__":
    found = {"codes": codes_of_pairs(make_process()), "walk": codes_of_a_walk()}
    now = {name: codes.round(6).astype(float).round(6).tolist() for name, codes in found.items()}
    FILE.write_text(json.dumps(GOLDEN | now, indent=1) + "\n", encoding="utf-8")
