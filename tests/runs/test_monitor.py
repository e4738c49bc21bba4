import io
import json
from os import terminal_size

import pytest

from helpers.counting import Count, study
from identica._io import locked
from identica.runs.folder import note
from identica.runs.monitor import Seen, Watch, duration


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


def test_time_left_is_for_what_is_left_of_each_kind_at_its_own_pace(tmp_path):
    """A run seen from the middle on counts from there; other kinds go at the slowest pace known."""
    kinds = {"contrastive": study([Count(1, steps=10)]), "supervised": study([Count(2, steps=30)])}
    jobs = [table.experiment(table.rows[0], kind, 0, "fast") for kind, table in kinds.items()]
    watch = Watch("counting", jobs, labels(jobs), 0, tmp_path, io.StringIO())
    assert watch._seconds_left(1) is None
    watch.seen[jobs[0].name] = Seen(first=100.0, last=108.0, before=0.2, done=0.6)
    # 4 of 10 pairs took 8 s, and 4 are left; the other 30 take 2 s each, too
    assert watch._seconds_left(1) == pytest.approx(8 + 60)
    assert watch._seconds_left(2) == pytest.approx(34)
    watch.seen[jobs[1].name] = Seen(first=100.0, last=103.0, before=0.0, done=0.1)
    assert watch._seconds_left(1) == pytest.approx(8 + 27)


def test_a_run_is_told_as_starting_until_its_steps_are_known(tmp_path, jobs, monkeypatch):
    monkeypatch.setattr(
        "identica.runs.monitor.shutil.get_terminal_size", lambda: terminal_size((20, 5))
    )
    stream = Terminal()
    watch = Watch("counting", jobs, labels(jobs), 0, tmp_path, stream)
    with locked(tmp_path / ".session-1"):
        tell(tmp_path, jobs[0], ".session-1", 0)
        told = json.loads((tmp_path / jobs[0].name / "progress.json").read_text())
        (tmp_path / jobs[0].name / "progress.json").write_text(json.dumps(told | {"steps": 0}))
        watch.look()
        # a column of the terminal stays free
        assert stream.getvalue().splitlines() == ["counting: 0 of 3 ru", "  row 1 starting"]
        tell(tmp_path, jobs[0], ".session-1", 10)  # not done before its result is there
        watch.look(plainly=True)
    last = stream.getvalue().splitlines()[-1]
    assert "counting: 0 of 3 runs done" in last
    assert last.endswith("; row 1 100 % (step 10 of 10)")


def test_runs_that_are_done_when_they_are_first_seen_took_no_time(tmp_path, jobs, monkeypatch):
    now = 100.0
    monkeypatch.setattr("identica.runs.monitor.time.monotonic", lambda: now)
    stream = io.StringIO()
    watch = Watch("counting", jobs, labels(jobs), 0, tmp_path, stream)
    for job in jobs[:2]:
        (tmp_path / job.name).mkdir()
        (tmp_path / job.name / "result.json").write_text("{}")
    watch.look(plainly=True)
    assert stream.getvalue() == "counting: 2 of 3 runs done\n"
    # nor do they tell the pace: that of the third is 4 of its 10 pairs in 8 s, with 4 to go
    watch.seen[jobs[2].name] = Seen(first=100.0, last=108.0, before=0.2, done=0.6)
    assert watch._seconds_left(1) == pytest.approx(8)
    now = 129.9  # half a minute between two plain lines
    watch.look()
    assert len(stream.getvalue().splitlines()) == 1
    now = 130.1
    watch.look()
    assert len(stream.getvalue().splitlines()) == 2


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        *(
            (0.4, "0 s"),
            (89.4, "89 s"),
            (90, "2 min"),
            (89 * 60, "89 min"),
            (90 * 60, "1 h 30 min"),
        ),
        (7300, "2 h 2 min"),
    ],
)
def test_durations_in_words(seconds, words):
    assert duration(seconds) == words


def test_the_clock_of_a_run_stops_when_it_is_done(tmp_path, jobs, monkeypatch):
    """However long others go on, it took as long as it took; and it is done though it is told of again."""
    now = 100.0
    monkeypatch.setattr("identica.runs.monitor.time.monotonic", lambda: now)
    watch = Watch("counting", jobs, labels(jobs), 0, tmp_path, io.StringIO())
    with locked(tmp_path / ".session-1"):
        tell(tmp_path, jobs[0], ".session-1", 2)
        watch.look(plainly=True)
        now = 108.0
        finish(tmp_path, jobs[0])
        watch.look(plainly=True)
        assert watch.seen[jobs[0].name][:4] == (100.0, 108.0, 0.2, 1)
        now = 500.0
        watch.look(plainly=True)
        tell(tmp_path, jobs[0], ".session-1", 3)
        watch.look(plainly=True)
    assert watch.seen[jobs[0].name][:4] == (100.0, 108.0, 0.2, 1)
    # 8 of its 10 pairs took 8 s, and 20 are left
    assert watch._seconds_left(1) == pytest.approx(20)


@pytest.mark.parametrize(("step", "shown"), [(10, 0.999), (9, 0.9), (1, 0.1)])
def test_a_run_is_not_done_before_its_result(tmp_path, jobs, monkeypatch, step, shown):
    watch = Watch("counting", jobs, labels(jobs), 0, tmp_path, io.StringIO())
    with locked(tmp_path / ".session-1"):
        tell(tmp_path, jobs[0], ".session-1", 1)
        watch.look(plainly=True)
        tell(tmp_path, jobs[0], ".session-1", step)
        watch.look(plainly=True)
    seen = watch.seen[jobs[0].name]
    assert seen.done == pytest.approx(shown)
    assert seen.before == pytest.approx(0.1)
