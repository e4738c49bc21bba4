from pathlib import Path

import pytest

from identica.datasets.root import data_root, find
from identica.errors import InputError


def test_root_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("IDENTICA_DATA", str(tmp_path / "mine"))
    assert data_root() == tmp_path / "mine"
    monkeypatch.delenv("IDENTICA_DATA")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert data_root() == tmp_path / "identica"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative/is/ignored")
    assert data_root() == Path.home() / ".cache" / "identica"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert data_root() == Path.home() / ".cache" / "identica"


def test_find_names_where_it_looked_and_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.setenv("IDENTICA_DATA", str(tmp_path))
    with pytest.raises(InputError, match="fetch it from there") as caught:
        find("a", "b.npz", get="fetch it from there")
    assert str(tmp_path / "a" / "b.npz") in str(caught.value)
    assert "IDENTICA_DATA" in str(caught.value)
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b.npz").touch()
    assert find("a", "b.npz", get="") == tmp_path / "a" / "b.npz"


def test_a_home_that_does_not_exist_is_told(monkeypatch):
    monkeypatch.setenv("IDENTICA_DATA", "~nobody-of-this-name/data")
    with pytest.raises(InputError, match="IDENTICA_DATA must be a folder"):
        data_root()
