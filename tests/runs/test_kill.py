"""A study that is stopped again and again ends with the table of an undisturbed one."""

import json
import os
import random
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest

from helpers import programs, tiny
from helpers.counting import Count
from helpers.counting import study as counting
from helpers.waiting import alive, children, wait_for
from identica import cli
from identica.studies import catalogue, table


def begin(module, *arguments):
    return subprocess.Popen(
        programs.command(module, *arguments),
        env=programs.environment(),
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def kept(out):
    """How far each run is, as far as it is kept."""
    found = set()
    for name in ("checkpoint.safetensors", "result.json"):
        for path in out.glob(f"runs/*/{name}"):
            with suppress(FileNotFoundError):
                found.add((path, path.stat().st_mtime_ns))
    return found


def finished(out):
    """The finished runs, and which file their result is: one that is written again is another."""
    found = {path: path.stat() for path in out.glob("runs/*/result.json")}
    return {path: (stat.st_ino, stat.st_mtime_ns) for path, stat in found.items()}


def tidy_up(pid):
    """Remove what joblib's processes share, since the one that would do so was killed with them."""
    for path in Path("/dev/shm").glob(f"*loky-{pid}-*"):
        path.unlink()
    for path in Path("/dev/shm").glob(f"joblib_memmapping_folder_{pid}_*"):
        shutil.rmtree(path)


def kill_again_and_again(times, moments, out, module, *arguments):
    """Kill the whole study at random moments of its work; nothing finished may be touched."""
    results = {}
    for _ in range(times):
        study, seen = begin(module, *arguments), kept(out)
        for _ in range(moments.randint(1, 6)):
            wait_for(lambda seen=seen: kept(out) - seen or study.poll() is not None)  # noqa: B023
            seen |= kept(out)
        time.sleep(moments.uniform(0, 0.1))
        os.killpg(study.pid, signal.SIGKILL)
        _, told = study.communicate(timeout=600)
        tidy_up(study.pid)
        assert study.returncode == -signal.SIGKILL, told  # it was not done by then
        assert results.items() <= finished(out).items()
        results = finished(out)
    study = begin(module, *arguments)
    _, told = study.communicate(timeout=600)
    assert study.returncode == 0, told
    assert results.items() <= finished(out).items()
    assert not list(out.glob("runs/*/checkpoint.safetensors"))
    assert not list(out.glob("runs/*/*.aside-*"))


def test_nothing_is_lost_and_nothing_done_twice(tmp_path):
    kill_again_and_again(5, random.Random(1), tmp_path, "six_runs", tmp_path)
    study = counting([Count(n, steps=60) for n in range(1, 7)])
    records = table.records(study, table.collect(tmp_path, study))
    assert [(r["row"], r["ours"]["mean"]) for r in records] == [(n, 3 / 60) for n in range(1, 7)]
    for log in tmp_path.glob("runs/*/counted.log"):
        steps = [int(line.split()[0]) for line in log.read_text().splitlines()]
        assert sorted(set(steps)) == list(range(60))
        assert len(steps) <= 60 + 5  # a kill costs the step that was not kept, at most


def test_real_training_ends_with_the_same_table(tmp_path):
    options = ["tiny", "--rows", "1,3", "--seeds", "2", "--out", tmp_path]
    kill_again_and_again(2, random.Random(2), tmp_path, "reproduce", *options)
    assert len(finished(tmp_path)) == 6
    undisturbed = []
    for row in (tiny.ROWS[0], tiny.ROWS[2]):
        for kind in ("identity", "supervised", "contrastive"):
            alone = tmp_path / "alone" / f"{row.row}-{kind}"
            result = tiny.experiment(row, kind, seed=2, steps=200).run(alone)
            undisturbed.append((row.row, kind, result["scores"][row.score]))
    found = json.loads((tmp_path / "table.json").read_text())
    assert [(r["row"], r["kind"]) for r in found] == [run[:2] for run in undisturbed]
    # workers may have other numbers of threads, hence sums in another order: 200 steps amplify the
    # rounding of float32 to some 1e-6
    scores = [score for *_, score in undisturbed]
    assert [r["ours"]["mean"] for r in found] == pytest.approx(scores, abs=2e-5)
    for path in tmp_path.glob("runs/*/metrics.jsonl"):
        lines = path.read_text().splitlines()
        assert [json.loads(line)["step"] for line in lines] == list(range(20, 201, 20))


def shared(pid):
    """What joblib's processes share, as long as somebody is to remove it."""
    return [
        path
        for path in Path("/dev/shm").iterdir()
        if f"-{pid}-" in path.name or f"_{pid}_" in path.name
    ]


STOPPED = "identica: stopped; the same command resumes from here"


@pytest.mark.parametrize("everybody", [True, False], ids=["the terminal", "the study"])
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_stopped_study_ends_cleanly_and_says_how_to_go_on(tmp_path, number, code, everybody):
    study = begin("reproduce", "endless", "--seeds", "0,1", "--workers", "2", "--out", tmp_path)
    wait_for(lambda: len(kept(tmp_path)) == 2)
    processes = children(study.pid)
    assert shared(study.pid)
    (os.killpg if everybody else os.kill)(study.pid, number)  # a terminal tells every process
    out, told = study.communicate(timeout=600)
    assert study.returncode == code
    assert told.splitlines()[-1] == STOPPED
    assert "Traceback" not in told
    assert "died" not in told
    assert out == ""
    assert not list(tmp_path.glob("runs/.session-*"))
    wait_for(lambda: not any(map(alive, processes)))
    assert not shared(study.pid)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_study_that_is_stopped_while_it_draws(tmp_path, monkeypatch, capsys, number, code):
    class Drawn(type(counting([Count(1)]))):
        def pictures(self, row, runs):
            try:
                signal.raise_signal(number)
            except KeyboardInterrupt:  # as compiled code does that calls back into Python
                raise RuntimeError("error in a callback") from None

    monkeypatch.setitem(catalogue.STUDIES, "drawn", Drawn("drawn", "Drawn", [Count(1)]))
    before = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]
    assert cli.main(["reproduce", "drawn", "--seeds", "0", "--out", str(tmp_path)]) == code
    assert capsys.readouterr().err.splitlines()[-1] == STOPPED
    assert [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)] == before
    assert not (tmp_path / "report.html").exists()
