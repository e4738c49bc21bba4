"""In a process of its own: the setting stays for good."""

import subprocess
import sys

import pytest

from helpers import programs


def faults(how):
    ran = subprocess.run(
        programs.command("page_faults", how),
        env=programs.environment(),
        capture_output=True,
        text=True,
    )
    if "no glibc" in ran.stderr:
        pytest.skip("no glibc here")
    assert ran.returncode == 0, ran.stderr
    return int(ran.stdout)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows counts no page faults")
def test_memory_that_was_freed_is_handed_out_again():
    """20 arrays of 64 MB are 312,500 pages of 4 kB, fewer if the pages are huge."""
    assert 10 * faults("keep") < faults("leave")
