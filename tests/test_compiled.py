"""Compiled functions give the same bits whether they were just compiled or found on disk."""

import subprocess

from helpers import programs


def test_the_first_process_computes_what_later_ones_do(tmp_path):
    """A run that was stopped is resumed by a process that finds what an earlier one compiled."""
    here = programs.environment(NUMBA_CACHE_DIR=str(tmp_path))
    first, second = (
        subprocess.run(
            programs.command("bits"), env=here, capture_output=True, text=True, check=True
        ).stdout
        for _ in range(2)
    )
    assert len(first.splitlines()) == 6
    assert first == second
