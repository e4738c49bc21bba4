"""In a process of its own: the setting stays for good."""

import subprocess
import sys

import pytest

COUNT = """
import resource, sys
import numpy as np
from identica.runs.memory import keep_freed_memory

if sys.argv[1] == "keep" and not keep_freed_memory():
    sys.exit("no glibc")
for _ in range(3):
    np.ones(8_000_000)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    np.ones(8_000_000)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(how):
    ran = subprocess.run([sys.executable, "-c", COUNT, how], capture_output=True, text=True)
    if "no glibc" in ran.stderr:
        pytest.skip("no glibc here")
    assert ran.returncode == 0, ran.stderr
    return int(ran.stdout)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows counts no page faults")
def test_memory_that_was_freed_is_handed_out_again():
    """20 arrays of 64 MB are 312,500 pages of 4 kB, fewer if the pages are huge."""
    assert 10 * faults("keep") < faults("leave")
