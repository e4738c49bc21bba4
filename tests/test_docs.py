"""The pages: their code runs, their commands exist, and their tables are those of the results."""

import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

import blocks
import paste
from identica import InputError, Training, cli
from identica.studies import find
from identica.training import train

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))


def named(page):
    return str(page.relative_to(DOCS))


@pytest.fixture
def short(monkeypatch, tmp_path):
    """Trainings of three steps, judged by few pairs, in a folder of their own."""

    def briefly(objective, sample, training=None, **options):
        usual = training or Training()
        batch = min(64, usual.batch)
        brief = replace(usual, steps=3, batch=batch, optimizer="adam", score_every=1)
        return train(objective, sample, brief, **options)

    monkeypatch.setattr("identica.training.train", briefly)
    monkeypatch.setattr("identica.estimator.fit.train", briefly)
    for size in ("fit.JUDGED", "prepare.MEASURED", "contrastive_ica.SCORED", "selection.HELD_OUT"):
        monkeypatch.setattr(f"identica.estimator.{size}", 256)
    monkeypatch.chdir(tmp_path)


# --- code -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", blocks.pages(), ids=named)
def test_the_code_of_a_page_runs_and_prints_what_the_page_says(page, short):
    absent = []
    for block, printed in blocks.run_all(page):
        if isinstance(printed, InputError):
            assert "IDENTICA_DATA" in str(printed)  # that, and nothing else, may stop it
            absent.append(f"{block.title}: {printed}")
            continue
        if block.label == "prints":
            assert printed == block.printed
        elif block.label == "prints, after training":  # the numbers of a short one differ
            assert masked(printed) == masked(block.printed)
        elif block.label == "prints, after a full training":  # so do the words
            assert printed
            assert block.printed
        else:
            assert not block.label
    if absent:
        pytest.skip(absent[0])


def masked(printed):
    """The lines without their numbers and spaces, in any order."""
    return sorted(re.sub(r"-?\d+\.?\d*|\s+", "", line) for line in printed.splitlines())


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_no_code_escapes_the_tests(page):
    text = page.read_text("utf-8")
    found = len(list(blocks.blocks(text)))
    assert len(re.findall(r"```\s*(?:python|py)\b", text)) == found
    assert text.count('title="prints') == sum(bool(b.label) for b in blocks.blocks(text))


def test_blocks_are_found_as_written():
    text = 'a\n```python title="t"\nx = 1\nprint(x)\n```\n\n```text title="prints"\n1\n```\nb\n'
    [block] = blocks.blocks(text)
    assert block[:5] == ("x = 1\nprint(x)\n", 2, "t", "prints", "1\n")
    assert text[slice(*block.span)] == "1\n"
    assert blocks.run(block, Path("page.md"), {}) == "1\n"
    with pytest.raises(ZeroDivisionError) as error:
        blocks.run(block._replace(code="\n1 / 0\n"), Path("page.md"), {})
    assert error.traceback[-1].lineno + 1 == 4  # as in the page


def test_what_code_prints_is_put_below_it(tmp_path):
    page = tmp_path / "page.md"
    needs = '```python title="needs data"\nfrom identica import InputError\nraise InputError\n```\n'
    needs += needs.replace("from identica import InputError", "this_is_not_reached")
    old = '```python\nprint(2 * {})\n```\n\n```text title="prints"\nold\n```\n'
    page.write_text(old.format(1) + needs + old.format(2))
    blocks.refresh(page)
    assert re.findall(r'prints"\n(.*)\n', page.read_text()) == ["2", "4"]


def commands():
    for page in [*PAGES, ROOT / "CONTRIBUTING.md"]:
        for block in re.findall(r"^```sh\n(.*?)^```", page.read_text("utf-8"), re.M | re.S):
            yield from block.splitlines()


def test_every_command_exists():
    makefile = (ROOT / "Makefile").read_text("utf-8")
    seen = set()
    for line in commands():
        match shlex.split(line, comments=True):
            case ["identica", *arguments]:
                args = cli.parser().parse_args(arguments)  # exits where it does not understand
                if args.command == "reproduce" and args.study is not None:
                    find(args.study)
                seen.add(args.command)
            case ["make", target]:
                assert f"\n{target}:" in makefile
            case ["python", script, *_]:
                assert (ROOT / script).is_file()
    assert {"reproduce", "report", "data"} <= seen


# --- pictures and tables ----------------------------------------------------------------------------


def test_pictures_are_small_and_can_be_drawn_again(short, tmp_path):
    import matplotlib.pyplot as plt

    import pictures

    plt.switch_backend("svg")
    pictures.main(tmp_path, steps=3)
    drawn = {path.name for path in tmp_path.glob("*.svg")}
    assert drawn == {path.name for path in (DOCS / "img").iterdir()}
    for path in (DOCS / "img").iterdir():
        assert 1_000 < path.stat().st_size < 100_000
    # what needs no training comes out the same, but for the last of the two digits that are kept
    number = r"-?\d+(?:\.\d+)?"
    again, kept = [(f / "families.svg").read_text("utf-8") for f in (tmp_path, DOCS / "img")]
    assert re.sub(number, "", again) == re.sub(number, "", kept)
    again, kept = [list(map(float, re.findall(number, text))) for text in (again, kept)]
    assert again == pytest.approx(kept, rel=1e-9, abs=0.011)


def test_pasted_tables_are_those_of_the_results():
    assert paste.main(check=True) == 0


def test_the_architecture_has_a_line_for_every_room():
    page = (DOCS / "architecture.md").read_text("utf-8")
    cells = re.findall(r"^\| (`.*?`) \|", page, re.M)
    named = [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]
    package = ROOT / "src" / "identica"
    rooms = {path.stem for path in package.iterdir() if path.stem[0] not in "._"} - {"py"}
    assert sorted(named) == sorted(rooms)
