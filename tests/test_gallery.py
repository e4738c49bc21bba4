"""The examples: they run, show what their pages show, and become notebooks."""

import json
import re

import numpy as np
import pytest

import gallery
from identica.metrics import mcc

# what the text of an example claims, in the names it leaves behind
CLAIMS = {
    "three_factors": lambda n: mcc(n["pairs"].z, n["codes"]) > 0.95,
    "broken_assumption": lambda n: n["second"] < 0.2 < 0.8 < n["first"],
    "own_pairs": lambda n: n["ica"].model_.space.dim == 2 and n["diagnosis"].findings,
    "recording": lambda n: n["found"].shape == (len(n["data"]), 3),
    "images": lambda n: mcc(n["place"], n["codes"]) > 0.9,
    "own_loop": lambda n: n["records"][-1]["mcc"] > 0.9,
    "any_marginal": lambda n: np.corrcoef(n["estimate"], n["truth"])[0, 1] > 0.9,
    "own_family": lambda n: mcc(n["test"].z, n["codes"]) > 0.9,
}


def masked(text):
    return re.sub(r"\d+\.?\d*", "", text)


@pytest.mark.parametrize("name", gallery.NAMES)
def test_an_example_runs_and_shows_what_its_page_shows(name):
    names = {}
    shown = [each for _, each in gallery.run(name, names)]
    assert CLAIMS[name](names)
    page = (gallery.PAGES / f"{name}.md").read_text("utf-8")
    printed = re.findall(r'```text title="prints"\n(.*?)\n```', page, re.DOTALL)
    assert [masked(each.printed.rstrip()) for each in shown if each.printed] == list(
        map(masked, printed)
    )
    assert page.count('<div class="shown">') == sum(bool(each.html) for each in shown)
    assert page.count("--8<--") == sum(len(each.pictures) for each in shown)


def test_pages_are_those_of_the_scripts():
    """If this fails, run `python docs/gallery.py`."""
    assert {path.stem for path in gallery.SCRIPTS.glob("*.py")} == set(gallery.NAMES)
    assert [name for name in gallery.NAMES if not gallery.is_current(name)] == []
    assert (gallery.PAGES / "index.md").read_text("utf-8") == gallery.gallery()
    for name in gallery.NAMES:
        page = (gallery.PAGES / f"{name}.md").read_text("utf-8")
        for cell in gallery.cells((gallery.SCRIPTS / f"{name}.py").read_text("utf-8")):
            assert cell.text.replace("plt.show()\n", "").strip() in page


def test_figures_of_others_are_not_shown(tmp_path, monkeypatch):
    import matplotlib.pyplot as plt

    (tmp_path / "quiet.py").write_text("# %%\nprint(1)\n")
    monkeypatch.setattr(gallery, "SCRIPTS", tmp_path)
    plt.figure()
    assert [shown.pictures for _, shown in gallery.run("quiet")] == [[]]


@pytest.mark.parametrize("path", sorted(gallery.PAGES.glob("img/*.svg")), ids=lambda p: p.stem)
def test_pictures_have_the_colours_of_the_page(path):
    text = path.read_text("utf-8")
    assert path.stat().st_size < 150_000
    assert "currentColor" in text
    assert gallery.INK not in text
    assert not re.search(r"<(script|style|metadata|!)", text)  # what would reach beyond the picture
    fills = re.findall(r"<text[^>]*?(?:fill: )(#\w+)", text)
    assert set(fills) <= {"#ffffff", "#000000", "#d55e00", "#0072b2"}  # in cells, and of two axes


# --- notebooks ----------------------------------------------------------------------------------------

SCRIPT = """# %% [markdown]
# # Title
#
# A paragraph
# of two lines.

# %%
x = 1
print(x)
x + 1

# %%
if x:

    y = 2
"""


def test_cells_of_a_script():
    text, first, second = gallery.cells(SCRIPT)
    assert text == ("markdown", "# Title\n\nA paragraph\nof two lines.\n", 1)
    assert first == ("code", "x = 1\nprint(x)\nx + 1\n", 7)
    assert second.text == "if x:\n\n    y = 2\n"


@pytest.mark.parametrize("name", gallery.NAMES)
def test_scripts_become_notebooks(name):
    text = (gallery.SCRIPTS / f"{name}.py").read_text("utf-8")
    made = json.loads(gallery.notebook(text))
    assert (made["nbformat"], made["nbformat_minor"]) == (4, 5)
    ids = [cell["id"] for cell in made["cells"]]
    assert len(set(ids)) == len(ids)
    assert made["cells"][0]["cell_type"] == "markdown"
    assert "".join(made["cells"][0]["source"]).startswith("# ")
    code = ["".join(c["source"]) for c in made["cells"] if c["cell_type"] == "code"]
    for each in code:
        compile(each, name, "exec")
    # nothing is lost: what is no text is code
    plain = re.sub(r"^#.*\n|\n", "", text, flags=re.MULTILINE)
    assert re.sub(r"^#.*\n|\n", "", "\n".join(code), flags=re.MULTILINE) == plain


def test_a_cell_shows_what_it_prints_draws_and_ends_with(tmp_path, monkeypatch):
    monkeypatch.setattr(gallery, "SCRIPTS", tmp_path)
    (tmp_path / "one.py").write_text(
        "# %%\n"
        "import matplotlib.pyplot as plt\n"
        "from identica import Box, Laplace\n"
        "from identica.estimator.selection import Selection\n"
        "_ = plt.subplots()[1].set_title('<b>')\n"
        "plt.show()\n"
        "print(3)\n"
        "Selection(Box(2), Laplace(1.0), [])\n"
        "# %%\n"
        "1 / 0\n"
    )
    running = gallery.run("one")
    _, shown = next(running)
    assert shown.printed == "3\n"
    assert "Chosen: Laplace(scale=1.0)" in shown.html
    [picture] = shown.pictures
    assert picture.startswith("<svg ")
    assert "&lt;b&gt;" in picture
    with pytest.raises(ZeroDivisionError) as error:
        next(running)
    assert error.traceback[-1].lineno + 1 == 10  # as in the script


def test_the_site_has_scripts_and_notebooks(tmp_path):
    (tmp_path / "examples").mkdir()
    gallery.on_post_build({"site_dir": str(tmp_path)})
    found = {path.name for path in (tmp_path / "examples").iterdir()}
    assert found == {f"{name}.{ending}" for name in gallery.NAMES for ending in ("py", "ipynb")}
