"""The same study on real clusters on loopback, of two workers, one of which is killed half-way."""

import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from helpers import programs
from helpers.groups import free_port
from helpers.waiting import wait_for

ENVIRONMENT = programs.environment(
    PYTHONWARNINGS="ignore",
    RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO="0",
    # the nodes of Ray's cluster know each other by this, made up for the test
    RAY_AUTH_MODE="token",
    RAY_AUTH_TOKEN=secrets.token_hex(32),
)


@contextmanager
def process(*command, log, **options):
    """A process that is killed at the end, with all that it started."""
    with log.open("a") as file:
        child = subprocess.Popen(
            command, env=ENVIRONMENT, start_new_session=True, stdout=file, stderr=file, **options
        )
    try:
        yield child
    finally:
        kill(child)


def family(pid):
    """A process and all its descendants."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
    found = {pid}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def kill(child):
    """Kill a process and all its descendants at once, as when a machine goes down."""
    for pid in family(child.pid):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    child.wait()


def answers(host, port):
    try:
        with socket.create_connection((host, port), timeout=1):
            return True
    except OSError:
        return False


@contextmanager
def ray_cluster(tmp_path):
    """A head and a worker with one CPU each; Ray wants a short path for its sockets."""
    pytest.importorskip("ray")
    ray = str(Path(sys.executable).with_name("ray"))
    port = free_port()
    address = f"127.0.0.2:{port}"  # it takes 127.0.0.1 for a mistake, and would find another one
    common = ["--node-ip-address=127.0.0.2", "--num-cpus=1", "--disable-usage-stats", "--block"]
    common += ["--object-store-memory=80000000"]
    folder = tempfile.mkdtemp(prefix="ray-", dir="/tmp")
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        head = [f"--port={port}", "--include-dashboard=false", f"--temp-dir={folder}"]
        log = tmp_path / "nodes.log"
        stack.enter_context(process(ray, "start", "--head", *head, *common, log=log))
        wait_for(lambda: answers("127.0.0.2", port))
        worker = process(ray, "start", f"--address={address}", *common, log=log)
        victim = stack.enter_context(worker)
        wait_for(lambda: log.read_text().count("Ray runtime started") == 2)
        yield address, victim


@contextmanager
def dask_cluster(tmp_path):
    """A scheduler and two workers of one thread each."""
    pytest.importorskip("distributed")
    port = free_port()
    address = f"tcp://127.0.0.1:{port}"
    dask = [sys.executable, "-m", "distributed.cli.dask_"]
    log = tmp_path / "nodes.log"
    with ExitStack() as stack:
        scheduler = [*dask[:2], f"{dask[2]}scheduler", "--host=127.0.0.1", f"--port={port}"]
        stack.enter_context(process(*scheduler, "--no-dashboard", log=log, cwd=tmp_path))
        wait_for(lambda: answers("127.0.0.1", port))
        worker = [*dask[:2], f"{dask[2]}worker", address, "--host=127.0.0.1", "--nthreads=1"]
        worker += ["--no-dashboard", f"--local-directory={tmp_path}"]
        stack.enter_context(process(*worker, log=log, cwd=tmp_path))
        victim = stack.enter_context(process(*worker, log=log, cwd=tmp_path))
        wait_for(lambda: log.read_text().count("Registered to") == 2)
        yield address, victim


CLUSTERS = {"ray": ray_cluster, "dask": dask_cluster}


@pytest.mark.parametrize("engine", CLUSTERS)
def test_a_study_outlives_one_of_two_nodes(engine, tmp_path):
    out = tmp_path / "study"
    with CLUSTERS[engine](tmp_path) as (address, victim):
        options = ["--engine", engine, "--address", address, "--out", str(out)]
        study = subprocess.Popen(
            programs.command("reproduce", "four", "--seeds", "1", *options),
            env=ENVIRONMENT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            # two runs under way at once: both nodes are at work
            wait_for(lambda: len(workers(out)) == 2 or study.poll() is not None)
            time.sleep(0.5)
            kill(victim)
            _, told = study.communicate(timeout=600)
        finally:
            study.kill()
    assert study.returncode == 0, told
    assert len(workers(out)) >= 2
    table = json.loads((out / "table.json").read_text())
    assert [(r["row"], r["ours"]["seeds"], r["ours"]["mean"]) for r in table] == [
        (row, 1, 1 / 8) for row in range(1, 5)
    ]
    for log in out.glob("runs/*/counted.log"):  # nothing lost, and done again what was under way
        steps = [int(line.split()[0]) for line in log.read_text().splitlines()]
        assert sorted(set(steps)) == list(range(8))
        assert len(steps) <= 10
    assert "counting: 4 of 4 runs done" in told


def workers(out):
    """The processes that have counted."""
    logs = [log.read_text() for log in out.glob("runs/*/counted.log")]
    return {line.split()[1] for log in logs for line in log.splitlines()}


@pytest.mark.parametrize("engine", ["dask"])  # Ray's takes a quarter of a minute to start
def test_a_cluster_of_our_own(engine, tmp_path):
    """Without an address a cluster is started on this machine."""
    pytest.importorskip("distributed")
    options = ["--engine", engine, "--rows", "1,2", "--workers", "2", "--out", str(tmp_path)]
    run = programs.command("reproduce", "four", "--seeds", "1", *options)
    done = subprocess.run(run, env=ENVIRONMENT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert "2 of 2 runs done" in done.stderr
    assert len(json.loads((tmp_path / "table.json").read_text())) == 2


def listening(pid):
    """The addresses at which a process and its descendants take connections, as in /proc/net."""
    sockets = set()
    for each in family(pid):
        with suppress(OSError):
            sockets |= {os.readlink(path) for path in Path(f"/proc/{each}/fd").iterdir()}
    lines = [
        line.split()
        for name in ("tcp", "tcp6")
        for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]
    ]
    return {
        line[1].split(":")[0]
        for line in lines
        if line[3] == "0A" and f"socket:[{line[9]}]" in sockets
    }


@pytest.mark.parametrize(
    "engine", CLUSTERS
)  # a quarter of a minute for Ray's, which nothing less shows
def test_a_cluster_of_our_own_listens_on_loopback_alone(engine):
    pytest.importorskip({"ray": "ray", "dask": "distributed"}[engine])
    with subprocess.Popen(
        programs.command("started_engine", engine),
        env=ENVIRONMENT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as study:
        assert study.stdout.readline() == "1\n"
        found = listening(study.pid)
        study.stdin.close()
    assert study.returncode == 0
    assert found
    assert found <= {"0100007F", "0000000000000000FFFF00000100007F", "0" * 24 + "01000000"}
