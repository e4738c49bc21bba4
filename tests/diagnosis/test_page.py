import pytest

from helpers.codes import judged, pairs, same
from identica import Box, Laplace, Sphere, VonMisesFisher
from identica.diagnosis import codes_from, diagnose
from identica.diagnosis.page import write_diagnosis_page
from identica.diagnosis.truth import truth


@pytest.fixture(scope="module")
def found():
    z, z_pos = pairs(Box(2), Laplace(0.05), 500)
    codes = [codes_from(part, part_pos, Laplace(0.05)) for part, part_pos in [(z, z_pos)] * 2]
    return diagnose(codes, Box(2), Laplace(0.05), truth=truth(z, z))


@pytest.mark.parametrize("kind", ["box", "sphere", "constant"])
def test_the_page_stands_alone(found, kind, tmp_path):
    if kind == "sphere":
        found = judged([same, same], Sphere(3), VonMisesFisher(10.0))
    elif kind == "constant":
        found = judged([lambda z: 0 * z, lambda z: 0 * z], Box(2), Laplace(0.05))
    write_diagnosis_page(tmp_path / "page.html", found)
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert found.verdict in text.lower()
    assert all(finding.check in text for finding in found.findings)
    assert text.count("data:image/png;base64,") == 5 + (found.truth is not None)
    assert "http" not in text
    for heading in ("Factor by factor", "Every metric"):
        assert (heading in text) == (found.truth is not None)
