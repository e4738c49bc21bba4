"""Ctrl-C and SIGTERM as exceptions, so that whatever is open is closed and cleaned up."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Terminated(KeyboardInterrupt):
    """SIGTERM, handled like Ctrl-C."""


KINDS = {signal.SIGINT: KeyboardInterrupt, signal.SIGTERM: Terminated}


@contextmanager
def stoppable() -> Iterator[None]:
    """Raise `KeyboardInterrupt` on Ctrl-C and `Terminated` on SIGTERM, and make sure that neither is lost.

    Python swallows exceptions raised in the callback of a weak reference: the signal is then sent again.
    Compiled code may raise an error of its own instead. matplotlib has many of both.
    """
    main_thread = threading.main_thread().ident
    if threading.get_ident() != main_thread:  # which alone has handlers
        yield
        return
    received: list[int] = []
    again: list[threading.Timer] = []

    def stop(number: int, _: object) -> None:
        # a second SIGTERM must not stop the clean-up
        if number != signal.SIGTERM or number not in received:
            received.append(number)
            raise KINDS[signal.Signals(number)]

    def dropped(what: sys.UnraisableHookArgs) -> None:
        if received and issubclass(what.exc_type, KeyboardInterrupt):
            again.append(threading.Timer(0.01, signal.pthread_kill, [main_thread, received.pop()]))
            again[-1].start()
        else:
            hook(what)

    hook, sys.unraisablehook = sys.unraisablehook, dropped
    before = {
        number: signal.signal(number, stop)
        for number in KINDS
        # ignored in a job in the background of a shell
        if signal.getsignal(number) not in (signal.SIG_IGN, None)
    }
    try:
        yield
    except Exception:
        if received:
            raise KINDS[signal.Signals(received[-1])] from None
        raise
    finally:
        for timer in again:
            timer.cancel()
        for number, handler in before.items():
            signal.signal(number, handler)
        sys.unraisablehook = hook
