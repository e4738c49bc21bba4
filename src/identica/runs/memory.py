"""How this process gets its memory."""

from __future__ import annotations

import ctypes
from contextlib import suppress

TRIM_THRESHOLD, MMAP_MAX = -1, -4  # of glibc's malloc.h


def keep_freed_memory() -> bool:
    """Let glibc hand out large blocks again instead of asking the system for new ones each time.

    A network on images frees and asks for the same hundreds of megabytes in each step, and to have them
    zeroed page by page takes up to a quarter of it. The process holds on to the most that it ever
    needed. For processes of our own, so never at import; False where there is no glibc.
    """
    with suppress(OSError, AttributeError, TypeError):
        mallopt = ctypes.CDLL(None).mallopt
        return bool(mallopt(MMAP_MAX, 0) and mallopt(TRIM_THRESHOLD, 2**31 - 1))
    return False
