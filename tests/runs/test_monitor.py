import io
import json

import pytest

from helpers.counting import Count, study
from identica._io import locked
from identica.runs.folder import note
from identica.runs.monitor import Watch


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def jobs():
    table = study([Count(1, steps=10), Count(2, steps=10), Count(3, steps=10)])
    return [table.experiment(row, "contrastive", 0, "fast") for row in table.rows]


def labels(jobs):
    return {job.name: f"row {number}" for number, job in enumerate(jobs, 1)}


def tell(folder, job, session, step, doing=""):
    (folder / job.name).mkdir(exist_ok=True)
    told = {"session": session, "step": step, "steps": 10, "doing": doing}
    (folder / job.name / "progress.json").write_text(json.dumps(told))


def finish(folder, job):
    (folder / job.name / "progress.json").unlink()
    (folder / job.name / "result.json").write_text("{}")


def test_a_terminal_has_a_line_for_the_study_and_one_for_each_active_run(tmp_path, jobs):
    stream = Terminal()
    watch = Watch("counting", jobs, labels(jobs), 4, tmp_path, stream)
    with locked(tmp_path / ".session-1"):
        tell(tmp_path, jobs[0], ".session-1", 0)
        tell(tmp_path, jobs[1], ".session-gone", 9)  # of a study that was killed
        watch.look()
        assert stream.getvalue().splitlines() == [
            "counting: 4 of 7 runs done",
            "  row 1 0 % (step 0 of 10)",
        ]
        tell(tmp_path, jobs[0], ".session-1", 0, "images, 64 of 100")
        watch.look()
        assert stream.getvalue().splitlines()[-1] == "  row 1 0 % (images, 64 of 100)"
        tell(tmp_path, jobs[0], ".session-1", 5)
        watch.look()
        text = stream.getvalue().split("\x1b[2F\x1b[J")[2]  # two lines up, and written over
        assert text.startswith("counting: 4 of 7 runs done, about ")
        assert "row 1 50 % (step 5 of 10)" in text
        finish(tmp_path, jobs[0])
        watch.look()
        assert stream.getvalue().splitlines()[-1].startswith("\x1b[2F\x1b[Jcounting: 5 of 7 runs")


def test_elsewhere_there_is_a_plain_line_now_and_then(tmp_path, jobs):
    stream = io.StringIO()
    with locked(tmp_path / ".session-1"):
        with Watch("counting", jobs, labels(jobs), 0, tmp_path, stream) as watch:
            tell(tmp_path, jobs[0], ".session-1", 3)
            for _ in range(5):
                watch.look()
        lines = stream.getvalue().splitlines()
    assert lines[0] == "counting: 0 of 3 runs done"
    assert len(lines) == 2
    assert "\x1b" not in stream.getvalue()


def test_new_notes_are_passed_on_once(tmp_path, jobs):
    (tmp_path / jobs[0].name).mkdir()
    note(tmp_path / jobs[0].name, "an old note")
    stream = io.StringIO()
    watch = Watch("counting", jobs, labels(jobs), 0, tmp_path, stream)
    note(tmp_path / jobs[0].name, "result.json is foreign")
    watch.look()
    watch.look()
    assert stream.getvalue() == "identica: result.json is foreign\n"


def test_time_left_counts_what_each_kind_takes(tmp_path, jobs, monkeypatch):
    now = 100.0
    monkeypatch.setattr("identica.runs.monitor.time.monotonic", lambda: now)
    stream = Terminal()
    watch = Watch("counting", jobs, labels(jobs), 0, tmp_path, stream)
    with locked(tmp_path / ".session-1"):
        tell(tmp_path, jobs[0], ".session-1", 0, "images, 0 of 100")
        watch.look()
        now = 1000.0  # what comes before the first step is not counted
        tell(tmp_path, jobs[0], ".session-1", 0)
        watch.look()
        now = 1060.0
        tell(tmp_path, jobs[0], ".session-1", 5)
        watch.look()
    # 60 s for half of a run; half of it and two more are left, one at a time
    assert "about 5 min left" in stream.getvalue()
