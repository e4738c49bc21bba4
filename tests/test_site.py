"""The site: it builds without warnings, its links lead somewhere, and it reads well in a browser."""

import os
import re
import subprocess
import sys
import threading
import time
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

import pytest

import blocks
import identica
from helpers.browser import browser
from identica import metrics

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("material", reason="needs identica[docs]")
    pytest.importorskip("mkdocstrings", reason="needs identica[docs]")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return folder


class Page(HTMLParser):
    """What a page links to, what it loads, and which anchors it has."""

    def __init__(self, path):
        super().__init__()
        self.path, self.links, self.loads, self.anchors = path, set(), set(), set()
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.anchors.add(found.get("id"))
        if tag == "a" and "href" in found:
            self.links.add(found["href"])
        elif "src" in found:
            self.loads.add(found["src"])
        elif tag == "link" and found.get("rel") not in ("canonical", "prev", "next"):
            self.loads.add(found["href"])


@pytest.fixture(scope="module")
def built(site):
    found = {path: Page(path) for path in site.rglob("*.html")}
    assert len(found) > 20
    return found


def test_links_and_images_lead_somewhere(built):
    missing = set()
    for path, page in built.items():
        if path.name == "404.html":  # is shown anywhere, so its links begin at the root
            continue
        for link in page.links | page.loads:
            target, anchor = urldefrag(link)
            if urlsplit(link).scheme:
                continue
            there = (path.parent / unquote(target)).resolve() if target else path
            known = built.get(there)
            if not there.is_file() or (known and anchor and unquote(anchor) not in known.anchors):
                missing.add(f"{path.name}: {link}")
    assert not missing


def test_nothing_is_loaded_from_elsewhere(built):
    loaded = {address for page in built.values() for address in page.loads}
    assert any(address.endswith(".css") for address in loaded)
    assert not [address for address in loaded if urlsplit(address).netloc]
    styles = (ROOT / "docs" / "extra.css").read_text("utf-8")
    assert "url(" not in styles


def test_the_reference_holds_every_public_name(built):
    anchors = {a for page in built.values() for a in page.anchors if a}
    ends = {anchor.rpartition(".")[2] for anchor in anchors if anchor.startswith("identica.")}
    assert not set(identica.__all__) - ends
    functions = {name for name in metrics.__all__ if name[0].islower()}
    assert not functions - ends


def test_doctests_are_shown_as_code(built):
    """Markdown would take >>> for a quotation."""
    pages = [path.read_text("utf-8") for path in built if path.parent.name == "api"]
    assert sum(page.count('class="gp">&gt;&gt;&gt; </span>') for page in pages) > 100
    assert not [page for page in pages if "<blockquote>" in page]


def test_docstrings_have_no_markup_that_the_reference_does_not_render(built):
    pages = [path.read_text("utf-8") for path in built if path.parent.name == "api"]
    assert not [role for page in pages for role in re.findall(r"\.\. \w+::|:\w+:<code>", page)]


def test_formulas_are_drawn(built):
    """None is left as text in a block of code."""
    pages = {path: path.read_text("utf-8") for path in built}
    assert sum(page.count('<math display="block">') for page in pages.values()) > 20
    code = re.compile(r"<pre.*?</pre>", re.DOTALL)
    raw = re.compile(r"[Σ∝‖]|\be\^\{")
    left = [
        (path.name, text)
        for path, page in pages.items()
        for block in code.findall(page)
        if raw.search(text := re.sub("<[^>]+>", "", block)) and "c1" not in block  # comments may
    ]
    assert not left


def test_every_module_has_a_page_with_an_example():
    package = ROOT / "src" / "identica"
    rooms = {path.stem for path in package.iterdir() if path.stem[0] not in "._"} - {"py"}
    named = {
        module
        for page in (DOCS / "api").glob("*.md")
        for module in re.findall(r"^::: identica\.(\w+)", page.read_text("utf-8"), re.M)
        if any(blocks.blocks(page.read_text("utf-8")))
    }
    assert rooms - named == {"cli", "report"}  # not for programs: commands, and what they write


def test_names_that_share_a_line_stay_together(built):
    """As in `a, b: text`, which is not an `a` of type `b`."""
    pages = [path.read_text("utf-8") for path in built if path.parent.name == "api"]
    assert [page for page in pages if re.search(r">\w+,\u00a0\w+</span></code>", page)]
    assert not [page for page in pages if re.search(r">\w+,</span></code>", page)]


def test_no_two_entries_of_the_menu_have_the_same_name():
    text = (ROOT / "mkdocs.yml").read_text("utf-8")
    names = re.findall(r"^ +- ([^:\n]+): \S+\.md$", text[text.index("\nnav:") :], re.M)
    assert len(names) == len(PAGES)
    assert len(set(names)) == len(names)


# --- in a browser -----------------------------------------------------------------------------------


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def address(site):
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


SEEN = """return {
  title: document.title,
  heading: document.querySelector("h1").firstChild.textContent,
  pictures: [...document.querySelectorAll("article img")].map(i => i.complete && i.naturalWidth),
  width: document.documentElement.scrollWidth,
  screen: innerWidth,
}"""
RESULTS = "return [...document.querySelectorAll('.md-search-result__link')].map(a => a.href)"


def until(found, seconds=30):
    """What a function finds, as soon as it is not empty."""
    end = time.monotonic() + seconds
    while not (value := found()) and time.monotonic() < end:
        time.sleep(0.1)
    return value


@pytest.mark.parametrize(("width", "mobile"), [(1280, False), (390, True)])
def test_the_first_page_in_a_browser(address, tmp_path, width, mobile):
    with browser(tmp_path / "profile", width, 900, mobile=mobile) as window:
        window.open(f"{address}/index.html")
        until(lambda: all(window.script(SEEN)["pictures"]))
        seen = window.script(SEEN)
        assert "identica" in seen["title"]
        assert seen["heading"] == "identica"
        assert len(seen["pictures"]) == 2
        assert all(seen["pictures"])
        assert seen["width"] <= seen["screen"] == width
        # the menu is in sight, or behind a button
        menu = "return document.querySelector('.md-nav--primary').getBoundingClientRect().left >= 0"
        assert window.script(menu) != mobile
        if mobile:
            window.click("label.md-header__button[for=__drawer]")
            assert until(lambda: window.script(menu))
        else:
            window.type("input.md-search__input", "Laplace")
            assert any("famil" in link for link in until(lambda: window.script(RESULTS)))
        assert [entry for entry in window.console() if entry["level"] == "SEVERE"] == []


WRAPPED = """const count = css => document.querySelectorAll(css).length;
return count("article table:not([class])") === count(".md-typeset__scrollwrap")"""
WIDE = """return [...document.querySelectorAll(".md-typeset__scrollwrap")]
  .filter(e => e.scrollWidth > e.clientWidth).map(e => e.textContent.trim().slice(0, 60))"""


@pytest.mark.parametrize(("width", "mobile"), [(1280, False), (390, True)])
def test_no_page_is_wider_than_the_screen(address, tmp_path, width, mobile):
    """Nor is a table, but on a phone it may scroll."""
    names = [page.relative_to(DOCS).with_suffix(".html") for page in PAGES]
    with browser(tmp_path / "profile", width, 900, mobile=mobile) as window:
        for name in names:
            window.open(f"{address}/{name}")
            assert until(lambda: window.script(WRAPPED)), name  # by a script of the theme
            assert (name, window.script(SEEN)["width"]) == (name, width)
            assert mobile or (name, window.script(WIDE)) == (name, [])


def test_search_without_a_server(site, tmp_path):
    with browser(tmp_path / "profile", 1280, 900) as window:
        window.open((site / "api" / "spaces.html").as_uri())
        window.type("input.md-search__input", "Laplace")
        links = until(lambda: window.script(RESULTS))
        assert any("families" in link for link in links)
        window.open(links[0])
        assert "identica" in window.script(SEEN)["title"]
        assert [entry for entry in window.console() if entry["level"] == "SEVERE"] == []


def test_light_and_dark(address, tmp_path):
    scheme = "return document.body.getAttribute('data-md-color-scheme')"
    with browser(tmp_path / "profile", 1280, 900) as window:
        window.open(f"{address}/start.html")
        before = window.script(scheme)
        window.click("form[data-md-component=palette] label:not([hidden])")
        assert {before, window.script(scheme)} == {"default", "slate"}
        assert window.script("return document.querySelectorAll('[data-clipboard-target]').length")


INK = """return [...document.querySelectorAll("figure.plot svg text")].map(t => getComputedStyle(t).fill)"""


def test_pictures_of_examples_have_the_colour_of_the_text(address, tmp_path):
    text = "return getComputedStyle(document.querySelector('article')).color"
    switch = "document.body.setAttribute('data-md-color-scheme', arguments[0])"
    with browser(tmp_path / "profile", 1280, 900) as window:
        window.open(f"{address}/examples/own_loop.html")
        seen = set()
        for scheme in ("default", "slate"):
            window.script(switch, scheme)
            seen.add(until(lambda: window.script(text)))
            assert set(window.script(INK)) == {window.script(text)}
        assert len(seen) == 2


@pytest.mark.parametrize("page", ["index", "own_pairs"])
def test_examples_on_a_phone(address, tmp_path, page):
    with browser(tmp_path / "profile", 390, 900, mobile=True) as window:
        window.open(f"{address}/examples/{page}.html")
        seen = window.script(SEEN)
        assert seen["width"] <= seen["screen"] == 390
        assert [entry for entry in window.console() if entry["level"] == "SEVERE"] == []
