"""HTML for notebooks: nothing gets through unescaped, and it is legible on any background."""

import re
from html.parser import HTMLParser

import pytest

from identica import _html
from identica.diagnosis import codes_from, diagnose
from identica.diagnosis.verdict import Finding
from identica.estimator import ContrastiveICA
from identica.estimator.selection import Selection
from identica.families import Laplace
from identica.spaces import Box
from identica.studies import Outcome
from identica.theory import Guarantee
from identica.theory.promise import Change

EVIL = "<script>alert('x')</script> \" onload=x"


class Named(Laplace):
    """A family whose name is an attack."""

    def __repr__(self):
        return EVIL


def diagnosed(**more):
    z = Box(2).sample(300, generator=0)
    z_pos = Laplace(0.05).sample(Box(2), z, generator=1)
    found = diagnose([codes_from(z, z_pos, Laplace(1.0))] * 2, Box(2), Named(1.0))
    evil = Finding(EVIL, "wrong", EVIL, EVIL, EVIL)
    object.__setattr__(found, "findings", [evil, *found.findings])
    return found


SHOWN = {
    "guarantee": Guarantee(None, EVIL, (EVIL,), EVIL, (Change((EVIL,), EVIL, EVIL),)),
    "diagnosis": diagnosed(),
    "selection": Selection(
        Box(2),
        Named(1.0),
        [{"space": EVIL, "conditional": EVIL, "bits": 1, "behind": 0, "error": 0, "unevenness": 0}],
    ),
    "estimator": ContrastiveICA(3, space=EVIL),
    "study": Outcome(
        None,
        f"# {EVIL}\n\n| a\\|b | {EVIL} |\n| --- | --- |\n| 1 | {EVIL} |\n\n{EVIL}\n",
        {"r": EVIL},
    ),
}


class Tags(HTMLParser):
    """The tags and attributes of a piece of HTML, which must all be closed."""

    def __init__(self, text):
        super().__init__()
        self.seen, self.attributes, self.open = set(), set(), []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.seen.add(tag)
        self.open.append(tag)
        self.attributes |= {name for name, _ in attributes}

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.mark.parametrize("kind", SHOWN)
def test_no_script_gets_through(kind):
    shown = SHOWN[kind]._repr_html_()
    tags = Tags(shown)
    assert "script" not in tags.seen
    assert tags.attributes <= {"style"}
    assert "&lt;script&gt;" in shown


@pytest.mark.parametrize("kind", SHOWN)
def test_it_is_small_and_leaves_the_background_alone(kind):
    shown = SHOWN[kind]._repr_html_()
    assert len(shown) < 12_000
    assert "background" not in shown
    allowed = {_html.GOOD, _html.WARN, _html.BAD, _html.PLAIN}
    assert set(re.findall(r"color:(#\w+)", shown)) <= allowed


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_colours_are_legible_on_dark_and_on_light():
    dark = luminance("#111111")
    for colour in (_html.GOOD, _html.WARN, _html.BAD, _html.PLAIN):
        own = luminance(colour)
        assert 1.05 / (own + 0.05) >= 4.5  # WCAG AA of text
        assert (own + 0.05) / (dark + 0.05) >= 3.0  # and of bold text


def test_a_long_table_scrolls_in_its_own_frame():
    shown = _html.table(["a", "b"], [(k, k) for k in range(100)])
    assert shown.startswith("<div style='max-height:")
    assert shown.count("<tr>") == 101


def test_a_table_of_a_study_has_its_cells():
    shown = Outcome(None, "# T\n\n| a\\|b | c |\n| --- | --- |\n| 1 | 2 |\n\nIn %.\n")._repr_html_()
    cells = re.findall(r"<t[dh][^>]*>([^<]*)</t[dh]>", shown)
    assert cells == ["a|b", "c", "1", "2"]
    assert "In %." in shown
    assert (
        "No run is finished yet." in Outcome(None, "# T\n\nNo run is finished yet.\n")._repr_html_()
    )


def test_a_diagnosis_shows_its_verdict_and_hides_the_rest():
    found = diagnosed()
    shown = found._repr_html_()
    assert found.verdict.capitalize() in shown
    first, rest = shown.split("<details>")
    assert first.count("<li>") == 1
    assert rest.count("<li>") == len(found.findings) - 1
