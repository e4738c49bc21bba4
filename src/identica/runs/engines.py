"""Back ends that execute the runs of a study, through joblib: local processes, or a Ray or Dask
cluster."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from operator import itemgetter
from typing import Any

from identica._validate import count, one_of
from identica.errors import InputError

ENGINES = ("local", "ray", "dask")


@dataclass(frozen=True)
class Engine:
    """Parallel execution of runs.

    Attributes:
        width: number of runs it can execute in parallel now.
        backend: joblib's back end.
        threads: threads of each run.
        ahead: runs dispatched per worker, so that none is idle.
        call: executes one of joblib's delayed calls, for an engine limited to one worker.
    """

    width: Callable[[], int]
    backend: dict[str, Any]
    threads: int = 1
    ahead: int = 1
    call: Callable[[Any], Any] | None = None

    @contextmanager
    def places(self, width: int) -> Iterator[Callable[[Iterable[Any]], Iterable[Any]]]:
        """A function that executes joblib's delayed calls, `width` at a time; it raises if a worker dies."""
        import joblib

        if width == 1 and self.call:
            yield partial(map, self.call)
            return
        # with a single worker, joblib would execute runs in this process, which must survive a run that
        # crashes: so there are at least two workers, of which no more than `width` get runs
        places = max(2, width)
        handed = width * self.ahead if width > 1 else 1
        with joblib.parallel_config(**self.backend):
            yield joblib.Parallel(n_jobs=places, batch_size=1, pre_dispatch=handed, max_nbytes=None)


@contextmanager
def start(name: str, workers: int | None = None, address: str | None = None) -> Iterator[Engine]:
    """Start an engine, for the duration of a study.

    Args:
        name: "local", "ray" or "dask".
        workers: runs at a time; by default as many as there are cores (in the cluster).
        address: of the cluster; by default the one in RAY_ADDRESS or DASK_SCHEDULER_ADDRESS, and
            without that a cluster on this machine.
    """
    one_of("engine", name, ENGINES)
    if workers is not None:
        count("workers", workers)
    if address is not None and name == "local":
        raise InputError("address is for the engines ray and dask")
    with {"local": _local, "ray": _ray, "dask": _dask}[name](workers, address) as engine:
        yield engine


@contextmanager
def _local(workers: int | None, address: str | None) -> Iterator[Engine]:
    from joblib import cpu_count
    from joblib.externals.loky import get_reusable_executor

    cores = cpu_count()
    width = workers or cores
    own = os.environ.get("OMP_NUM_THREADS", "")  # the user's limit takes precedence
    threads = int(own) if own.isdecimal() and int(own) else max(1, cores // width)
    backend = {
        "backend": "loky",
        "inner_max_num_threads": threads,
        "initializer": _belong,
        "initargs": (os.getpid(),),
    }
    try:
        yield Engine(lambda: width, backend, threads)
    finally:
        get_reusable_executor().shutdown(wait=True, kill_workers=True)


def _belong(study: int) -> None:
    """Tie the life of this worker to the process of the study.

    Signals may reach every process of a terminal or of a batch job: only the study handles them.
    When it is killed, its workers end too, and the next study resumes from their checkpoints.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == study:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def _ray(workers: int | None, address: str | None) -> Iterator[Engine]:
    address = address or os.environ.get("RAY_ADDRESS") or "local"
    if address == "local":  # only on loopback, as on macOS; Ray reads this when it is imported
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    ray, ray_joblib = _packages("ray", "ray", "ray.util.joblib")
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    if address == "local":
        quiet |= {"include_dashboard": False, "num_cpus": workers}
    elif address != "auto":
        _reach(address)
    try:
        ray.init(address=address, **quiet)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise InputError(
            f"address: no Ray cluster answers at {address}: {one_line(error)}"
        ) from None

    def width() -> int:
        # a node that has just died stays on Ray's list for a while, and a pool would wait for it
        alive = [node for node in ray.nodes() if node["Alive"]]
        place = itemgetter("NodeManagerAddress", "NodeManagerPort")
        nodes = [node for node in alive if _answers(place(node))]
        cpus = int(sum(node["Resources"].get("CPU", 0) for node in nodes))
        if cpus == 0:
            raise InputError(f"address: the Ray cluster at {address} has no CPU left")
        return min(workers or cpus, cpus)

    def call(task: Any) -> Any:
        function, positional, named = task
        return ray.get(ray.remote(max_retries=0)(function).remote(*positional, **named))

    ray_joblib.register_ray()
    try:
        # Ray's actors reserve a core only on request. Its pool assigns runs in turn, not to idle
        # workers, so each worker needs a second one in its queue.
        backend = {"backend": "ray", "ray_remote_args": {"num_cpus": 1}}
        yield Engine(width, backend, ahead=2, call=call)
    finally:
        ray.shutdown()


@contextmanager
def _dask(workers: int | None, address: str | None) -> Iterator[Engine]:
    (distributed,) = _packages("dask", "distributed")
    address = address or os.environ.get("DASK_SCHEDULER_ADDRESS")
    if address:
        _reach(address)
        try:
            client = distributed.Client(address, timeout=10, set_as_default=False)
        except (OSError, ValueError) as error:
            raise InputError(
                f"address: no Dask scheduler answers at {address}: {one_line(error)}"
            ) from None
    else:
        cluster = distributed.LocalCluster(
            n_workers=workers, threads_per_worker=1, host="127.0.0.1", dashboard_address=None
        )
        client = distributed.Client(cluster, set_as_default=False)

    def width() -> int:
        cores = sum(client.ncores().values())
        if cores == 0:
            with suppress(TimeoutError):
                client.wait_for_workers(1, timeout=30)
            cores = sum(client.ncores().values())
        if cores == 0:
            raise InputError(f"address: the Dask scheduler at {address} has no workers")
        return min(workers or cores, cores)

    try:
        yield Engine(width, {"backend": "dask", "client": client})
    finally:
        client.close()
        if not address:
            cluster.close()


def _packages(extra: str, *names: str) -> list[Any]:
    try:
        return [import_module(name) for name in names]
    except ImportError:
        raise InputError(
            f"engine {extra} needs another package: pip install 'identica[{extra}]'"
        ) from None


def _reach(address: str) -> None:
    """Raise unless host:port accepts connections; the libraries would retry for minutes."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise InputError(f"address must look like host:port, got {address!r}")
    if not _answers((host.strip("[]"), int(port))):
        raise InputError(f"address: nothing answers at {address}")


def _answers(place: tuple[str, int]) -> bool:
    with suppress(OSError), socket.create_connection(place, timeout=5):
        return True
    return False


def one_line(error: BaseException) -> str:
    """The message of an error on one line of at most 300 characters."""
    return " ".join(str(error).split())[:300] or type(error).__name__
