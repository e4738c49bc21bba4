"""How many pages the system hands out for 20 arrays of 64 MB: python -m helpers.page_faults keep|leave"""

import resource
import sys

import numpy as np

from identica.runs.memory import keep_freed_memory

if __name__ == "__main__":
    if sys.argv[1] == "keep" and not keep_freed_memory():
        sys.exit("no glibc")
    for _ in range(3):
        np.ones(8_000_000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        np.ones(8_000_000)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
