import errno
import json
import os
import stat

import pytest

from identica import InputError
from identica._io import make_folder, replacing, write_json, write_text


def test_a_full_disk_leaves_the_old_file_and_no_other(tmp_path):
    path = tmp_path / "table.json"
    path.write_text("old")

    def write():
        with replacing(path) as temporary:
            temporary.symlink_to("/dev/full")  # where every write fails as on a full disk
            temporary.write_text("new")

    with pytest.raises(OSError, match="No space left") as raised:
        write()
    assert (raised.value.errno, raised.value.filename) == (errno.ENOSPC, str(path))
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_errors_name_the_file_that_they_are_about(tmp_path):
    path = tmp_path / "codes.npy"
    with pytest.raises(OSError, match="5 requested and 3 written") as raised, replacing(path):
        raise OSError("5 requested and 3 written")  # as NumPy says it
    assert raised.value.filename == str(path)
    with pytest.raises(FileNotFoundError) as raised, replacing(path):
        (tmp_path / "another").read_text()
    assert raised.value.filename == str(tmp_path / "another")
    with pytest.raises(FileNotFoundError) as raised:
        write_text(tmp_path / "no folder" / "table.md", "text")
    assert raised.value.filename == str(tmp_path / "no folder" / "table.md")


def test_only_regular_files_are_replaced(tmp_path):
    pipe, folder = tmp_path / "pipe", tmp_path / "folder"
    os.mkfifo(pipe)
    folder.mkdir()
    (tmp_path / "link").symlink_to(pipe)
    for path in (pipe, tmp_path / "link"):
        with pytest.raises(InputError, match="not a regular file"):
            write_text(path, "text")
    with pytest.raises(IsADirectoryError) as raised:
        write_text(folder, "text")
    assert raised.value.filename == str(folder)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "link", "pipe"]


def test_a_symbolic_link_stays(tmp_path):
    (tmp_path / "store").mkdir()
    file, link = tmp_path / "store" / "report.html", tmp_path / "report.html"
    link.symlink_to(file)
    for text in ("first", "second"):  # it points nowhere at first
        write_text(link, text)
        assert (link.is_symlink(), file.read_text()) == (True, text)
    assert list((tmp_path / "store").iterdir()) == [file]


def test_names_that_are_not_utf8_come_back(tmp_path):
    data = {"file": os.fsdecode(b"caf\xe9.csv"), "score": "R²"}
    write_json(tmp_path / "config.json", data)
    assert json.loads((tmp_path / "config.json").read_text(encoding="utf-8")) == data


def test_null_characters_are_refused(tmp_path):
    with pytest.raises(InputError, match="out must not contain a null character"):
        make_folder("out", tmp_path / "a\0b")
    with pytest.raises(InputError, match="null character"):
        write_text(tmp_path / "a\0b", "text")
