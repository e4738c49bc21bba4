"""Memory allocation of this process."""

from __future__ import annotations

import ctypes
from contextlib import suppress

TRIM_THRESHOLD, MMAP_MAX = -1, -4  # of glibc's malloc.h


def keep_freed_memory() -> bool:
    """Make glibc reuse large blocks instead of returning them to the system.

    A network on images frees and allocates the same hundreds of megabytes in each step, and zeroing new pages
    takes up to a quarter of the time. The process keeps its peak memory. Call this in processes of our own
    only, never at import; returns False without glibc.
    """
    with suppress(OSError, AttributeError, TypeError):
        mallopt = ctypes.CDLL(None).mallopt
        return bool(mallopt(MMAP_MAX, 0) and mallopt(TRIM_THRESHOLD, 2**31 - 1))
    return False
