"""Ctrl-C and SIGTERM as exceptions, so that whatever is open is closed and cleaned up."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Terminated(KeyboardInterrupt):
    """SIGTERM, which is cleaned up after as Ctrl-C is."""


KINDS = {signal.SIGINT: KeyboardInterrupt, signal.SIGTERM: Terminated}


@contextmanager
def stoppable() -> Iterator[None]:
    """Raise `KeyboardInterrupt` on Ctrl-C and `Terminated` on SIGTERM, and nothing else after that.

    Compiled code that calls back into Python, such as matplotlib's, may turn the one that is raised
    within it into an error of its own: whatever ends the block after a signal is that signal.
    """
    if threading.current_thread() is not threading.main_thread():  # which alone has handlers
        yield
        return
    stopped: list[type[KeyboardInterrupt]] = []

    def stop(number: int, _: FrameType | None) -> None:
        stopped.append(KINDS[signal.Signals(number)])
        raise stopped[0]

    before = {number: signal.getsignal(number) for number in KINDS}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:  # as in a job in the background of a shell
            signal.signal(number, stop)
    try:
        yield
    except BaseException:
        if stopped:
            raise stopped[0] from None
        raise
    finally:
        for number, handler in before.items():
            if handler is not None:  # set by something other than Python
                signal.signal(number, handler)
