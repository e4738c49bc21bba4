import re
from pathlib import Path

from identica import Training
from identica.training import train

README = Path(__file__).parent.parent / "README.md"


def test_the_code_of_the_readme_runs(monkeypatch, capsys):
    """As written, but for the length of the training."""

    def short(objective, sample, training=None, **options):
        return train(objective, sample, Training(steps=3, batch=32), **options)

    for module in ("training", "fitting"):
        monkeypatch.setattr(f"identica.{module}.train", short)
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert blocks
    for block in blocks:
        exec(block, {})
    out = capsys.readouterr().out
    assert "Not guaranteed" in out
    scores = [float(word) for line in out.splitlines()[-2:] for word in line.split()]
    assert len(scores) == 3
    assert all(0 < score < 1 for score in scores)


def test_every_module_of_the_readme_exists():
    table = re.findall(r"^\| `(\w+)` \|", README.read_text(encoding="utf-8"), re.MULTILINE)
    package = README.parent / "src" / "identica"
    missing = [
        n for n in table if not (package / f"{n}.py").exists() and not (package / n).is_dir()
    ]
    assert table
    assert not missing
