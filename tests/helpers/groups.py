"""Groups of processes, as torchrun starts them."""

import json
import socket
import subprocess

from helpers import programs


def start(number, module, *arguments, **more):
    """The processes of a group, as torchrun starts them, on this machine; each runs a module."""
    common = {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(free_port()),
        "WORLD_SIZE": str(number),
        "GLOO_SOCKET_IFNAME": "lo",
        **more,
    }
    return [
        subprocess.Popen(
            programs.command(module, *arguments),
            env=programs.environment(**common, RANK=str(rank), LOCAL_RANK=str(rank)),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(number)
    ]


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def outputs(group):
    """What each process of a group prints and says; none outlives the test."""
    try:
        # compiling the loss takes minutes on a busy machine
        return [process.communicate(timeout=600) for process in group]
    finally:
        for process in group:
            with process:
                process.kill()


def losses(folder):
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    return {r["step"]: r["loss"] for r in map(json.loads, lines)}
