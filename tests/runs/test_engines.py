import json
import os
import subprocess
import sys
from contextlib import nullcontext
from types import SimpleNamespace

import pytest
from joblib import cpu_count

from helpers import programs
from helpers.counting import Count, jobs
from helpers.waiting import alive, children, wait_for
from identica import InputError
from identica.runs import engines, pool


def results(folder):
    found = {p.parent.name: json.loads(p.read_text()) for p in folder.glob("*/result.json")}
    return {name: result["scores"]["r2"] for name, result in found.items()}


def lines(folder, job, name="counted.log"):
    return (folder / job.name / name).read_text().splitlines()


def test_every_run_is_done_once_with_its_share_of_threads(tmp_path, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    todo = jobs(Count(1), Count(2), seeds=(0, 1))
    with engines.start("local", workers=2) as local:
        assert pool.run_all(local, todo, tmp_path) == {}
    assert results(tmp_path) == {job.name: job.config["seed"] / 5 for job in todo}
    for job in todo:
        steps, _, threads = zip(*(line.split() for line in lines(tmp_path, job)), strict=True)
        assert steps == ("0", "1", "2", "3", "4")
        assert set(threads) == {str(max(1, cpu_count() // 2))}
    assert not list(tmp_path.glob(".session-*"))


def test_a_run_has_the_threads_that_the_user_asked_for(tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    [job] = jobs(Count(1))
    with engines.start("local", workers=1) as local:
        assert pool.run_all(local, [job], tmp_path) == {}
    assert {line.split()[2] for line in lines(tmp_path, job)} == {"3"}


def test_one_worker_is_not_this_process_and_does_one_run_at_a_time(tmp_path):
    todo = jobs(Count(1, pause=0.05), Count(2, pause=0.05))
    with engines.start("local", workers=1) as local:
        assert pool.run_all(local, todo, tmp_path) == {}
    pids = {line.split()[1] for job in todo for line in lines(tmp_path, job)}
    assert str(os.getpid()) not in pids
    spans = []
    for job in todo:
        times = [(tmp_path / job.name / n).stat().st_mtime for n in ("config.json", "result.json")]
        spans.append(times)
    (_, end), (begin, _) = sorted(spans)
    assert end <= begin + 0.01


def test_dead_workers_and_failures_cost_no_other_run(tmp_path):
    """One run kills its worker once, one kills every worker, one raises: all others are done."""
    said = []
    todo = jobs(
        Count(1, pause=0.02), Count(2, crashes=1), Count(3, crashes=99), Count(4, fails=True),
        Count(5, pause=0.02), Count(6, pause=0.02),
    )  # fmt: skip
    with engines.start("local", workers=2) as local:
        failures = pool.run_all(local, todo, tmp_path, said.append)
    poison, raising = todo[2].name, todo[3].name
    assert set(failures) == {poison, raising}
    assert failures[raising] == "ArithmeticError: the loss became nan at step 0"
    assert failures[poison].startswith("its worker died")
    assert set(results(tmp_path)) == {job.name for job in todo} - {poison, raising}
    assert len((tmp_path / poison / "deaths.log").read_text()) <= 3
    assert any("a worker died" in text for text in said)
    for job in (todo[0], todo[4], todo[5]):  # they went on from where they were
        assert len({line.split()[0] for line in lines(tmp_path, job)}) == 5


def test_workers_end_when_the_study_is_killed(tmp_path):
    process = subprocess.Popen(
        programs.command("long_runs", tmp_path), env=programs.environment(), start_new_session=True
    )
    wait_for(lambda: len(list(tmp_path.glob("*/progress.json"))) == 2)
    pids = children(process.pid)
    assert len(pids) >= 2
    process.kill()
    process.wait()
    wait_for(lambda: not any(alive(pid) for pid in pids))
    # the next study finds nothing in its way
    assert list(tmp_path.glob(".session-*"))
    with engines.start("local", workers=2) as local:
        assert pool.run_all(local, jobs(Count(3)), tmp_path) == {}
    assert not list(tmp_path.glob(".session-*"))


def test_a_folder_that_a_worker_does_not_see_is_named(tmp_path):
    (job,) = jobs(Count(1))
    name, why = pool.do(job, tmp_path / job.name, tmp_path / ".session-x", 1)
    assert name == job.name
    assert f"{tmp_path} is not shared" in why


def test_a_run_nobody_waits_for_stops_and_keeps_its_place(tmp_path, monkeypatch):
    monkeypatch.setattr(pool, "TICK", 0.0)
    (job,) = jobs(Count(1, pause=0.01))
    session = tmp_path / ".session-x"
    session.touch()
    steps = []

    def stopping(folder, tick):
        def once(step, steps_):
            steps.append(step)
            tick(step, steps_)
            if step == 2:
                session.unlink()

        return job.run(folder, once)

    cut = SimpleNamespace(name=job.name, config=job.config, pairs=5, run=stopping)
    _, why = pool.do(cut, tmp_path / job.name, session, 1)
    assert "StoppedError" in why
    assert (tmp_path / job.name / "checkpoint.safetensors").read_text() == "3"
    assert not (tmp_path / job.name / "progress.json").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("slurm",), "engine must be one of local, ray, dask"),
        (("local", 0), "workers must be a whole number of at least 1"),
        (("local", None, "127.0.0.1:1"), "address is for the engines ray and dask"),
    ],
)
def test_bad_engines(arguments, message):
    with pytest.raises(InputError, match=message), engines.start(*arguments):
        pass


@pytest.mark.parametrize("name", ["ray", "dask"])
@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("127.0.0.1:1", "nothing answers at 127.0.0.1:1"),
        ("somewhere", "address must look like host:port, got 'somewhere'"),
        ("tcp://127.0.0.1:99999", "address must look like host:port"),
    ],
)
def test_an_address_where_nobody_is(name, address, message):
    pytest.importorskip({"ray": "ray", "dask": "distributed"}[name])
    # our own words: the libraries, which would try for minutes, were not asked
    with pytest.raises(InputError, match=message), engines.start(name, None, address):
        pass


def test_a_worker_of_ray_reserves_one_core_and_dead_nodes_count_for_nothing(monkeypatch):
    """With a stand-in, as the real one takes half a minute to start; see test_clusters.py for that."""
    nodes = [
        {"Alive": alive, "NodeManagerAddress": "a", "NodeManagerPort": k, "Resources": {"CPU": 3.0}}
        for k, alive in enumerate((True, True, False, True))
    ]
    nodes.append({**nodes[0], "NodeManagerPort": 4, "Resources": {"GPU": 1.0}})  # has no cores
    done = []
    ray = SimpleNamespace(
        init=lambda **options: done.append(options["num_cpus"]),
        nodes=lambda: nodes,
        shutdown=lambda: done.append("shutdown"),
    )
    parts = [ray, SimpleNamespace(register_ray=lambda: None)]
    monkeypatch.setattr(engines, "_packages", lambda *_: parts)
    monkeypatch.setattr(engines, "_answers", lambda place: place != ("a", 3))
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setenv("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    for workers, width in ((None, 6), (4, 4), (100, 6)):
        with engines.start("ray", workers) as engine:
            assert engine.width() == width
            assert engine.backend == {"backend": "ray", "ray_remote_args": {"num_cpus": 1}}
        assert done[-2:] == [workers, "shutdown"]
    nodes.clear()
    with (
        engines.start("ray") as engine,
        pytest.raises(InputError, match="has no CPU left"),
    ):
        engine.width()


def test_a_package_that_is_not_there_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match=r"identica\[ray\]"), engines.start("ray"):
        pass


@pytest.mark.parametrize(
    ("workers", "told", "width", "threads"),
    [
        (None, None, 8, 1),
        (3, None, 3, 2),
        (1, None, 1, 8),
        (16, None, 16, 1),
        (3, "5", 3, 5),
        (3, "1", 3, 1),
        (3, "0", 3, 2),  # not a number of threads
        (3, "many", 3, 2),
    ],
)
def test_cores_are_shared_out_among_the_runs(workers, told, width, threads, monkeypatch):
    monkeypatch.setattr("joblib.cpu_count", lambda: 8)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if told is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", told)
    with engines.start("local", workers) as local:
        assert (local.width(), local.threads) == (width, threads)
        assert local.backend["inner_max_num_threads"] == threads


def test_errors_in_one_line_of_bearable_length():
    assert engines.one_line(ValueError("a\n  b\tc")) == "a b c"
    assert engines.one_line(KeyboardInterrupt()) == "KeyboardInterrupt"
    assert engines.one_line(ValueError("x" * 500)) == "x" * 300


@pytest.mark.parametrize(
    ("address", "looks"), [("localhost:65535", True), ("localhost:65536", False), (":80", False)]
)
def test_an_address_is_a_host_and_a_port(address, looks, monkeypatch):
    asked = []
    monkeypatch.setattr(engines, "_answers", lambda place: asked.append(place) or True)
    if looks:
        engines._reach(address)
        engines._reach("tcp://[::1]:8786")
        assert asked == [("localhost", 65535), ("::1", 8786)]
    else:
        with pytest.raises(InputError, match="address must look like host:port"):
            engines._reach(address)


def test_the_longest_runs_come_first(tmp_path):
    todo = jobs(Count(1, steps=2), Count(2, steps=9), Count(3, steps=4))
    begun = []

    def do(tasks):
        for function, arguments, options in tasks:
            begun.append(arguments[0].pairs)
            yield function(*arguments, **options)

    engine = SimpleNamespace(width=lambda: 1, threads=1, places=lambda width: nullcontext(do))
    assert pool.run_all(engine, todo, tmp_path) == {}
    assert begun == [9, 4, 2]


def test_progress_is_reported_at_intervals(tmp_path, monkeypatch):
    times = iter([100.0, 100.9, 101.1])
    monkeypatch.setattr(pool.time, "monotonic", lambda: next(times))
    session = tmp_path / ".session-x"
    session.touch()
    tick = pool._reporter(tmp_path, session)
    for step, told in ((1, 1), (2, 1), (3, 3)):
        tick(step, 10, "drawing")
        found = {"session": ".session-x", "step": told, "steps": 10, "doing": "drawing"}
        assert pool.read_progress(tmp_path) == found


def test_runs_that_saw_two_workers_die_are_tried_one_by_one(tmp_path):
    todo, widths, said = jobs(Count(1), Count(2)), [], []

    def die(tasks):
        for _, (_, folder, session, _), _ in tasks:
            folder.mkdir(exist_ok=True)
            pool._reporter(folder, session)(1, 5)
        raise RuntimeError("a worker\nwas killed")

    def places(width):
        widths.append(width)
        return nullcontext(die)

    engine = SimpleNamespace(width=lambda: 4, threads=1, places=places)
    failures = pool.run_all(engine, todo, tmp_path, said.append)
    assert widths == [2, 2, 1, 1]
    why = "its worker died: a worker was killed"
    assert failures == {job.name: why for job in todo}
    assert said == ["a worker died; runs under way are tried again: 2"] * 2
