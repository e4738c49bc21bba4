"""Formulas as they are drawn."""

import re
from xml.etree import ElementTree

import pytest

pytest.importorskip("mkdocs", reason="needs identica[docs]")

import markdown

import maths


@pytest.mark.parametrize(
    ("formula", "drawn"),
    [
        ("x", "<mi>x</mi>"),
        ("x_i", "<msub><mi>x</mi><mi>i</mi></msub>"),
        ("x_ij", "<msub><mi>x</mi><mrow><mi>i</mi><mi>j</mi></mrow></msub>"),
        ("x²", "<msup><mi>x</mi><mo>2</mo></msup>"),
        ("ZᵀH", "<msup><mi>Z</mi><mo>T</mo></msup><mi>H</mi>"),
        ("x_p^p", "<msubsup><mi>x</mi><mi>p</mi><mi>p</mi></msubsup>"),
        ("e^{−x}", '<msup><mi>e</mi><mrow><mo stretchy="false">−</mo><mi>x</mi></mrow></msup>'),
        ("max_π", "<munder><mi>max</mi><mi>π</mi></munder>"),
        ("a < b", '<mi>a</mi><mo stretchy="false">&lt;</mo><mi>b</mi>'),
        (
            "h\u0303_2",
            '<msub><mover accent="true"><mi>h</mi><mo stretchy="false">~</mo></mover><mn>2</mn></msub>',
        ),
    ],
)
def test_how_a_formula_is_drawn(formula, drawn):
    found = maths.mathml(formula)
    assert found == f'<math display="block"><mrow>{drawn}</mrow></math>'
    ElementTree.fromstring(found)


def test_nothing_of_a_formula_is_lost():
    formula = "L = −E log[ e^{s(h, k)/τ} / (e^{s(h, k)/τ} + Σ_j e^{s(h, h_j)/τ}) ],   w = 0.3"
    text = "".join(ElementTree.fromstring(maths.mathml(formula)).itertext())
    assert text == re.sub(r"[\s_^{}]", "", formula).replace("Σ", "∑")


@pytest.mark.parametrize(
    ("text", "drawn"),
    [
        ("h_j", "h<sub>j</sub>"),
        ("R^n", "R<sup>n</sup>"),
        ("e^{−x/2}", "e<sup>−x/2</sup>"),
        ("λ_k^2", "λ<sub>k</sub><sup>2</sup>"),
        ("z_ij", "z<sub>ij</sub>"),
    ],
)
def test_indices_in_running_text(text, drawn):
    page = markdown.markdown(f"the code {text}, where", extensions=[maths.Maths()])
    assert page == f'<p>the code <span class="scripted">{drawn}</span>, where</p>'


@pytest.mark.parametrize(
    "text", ["h_pos", "x_pos", "`h_j`", "n_components", "L_AU(.5, 1)", "a_b_c"]
)
def test_names_of_python_stay_as_they_are(text):
    page = markdown.markdown(text, extensions=[maths.Maths()])
    assert "<sub>" not in page
