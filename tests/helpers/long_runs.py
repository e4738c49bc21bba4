"""Two runs of a quarter of an hour by two workers: python -m helpers.long_runs OUT"""

import sys
from pathlib import Path

from helpers.counting import Count, jobs
from identica.runs import engines, pool

if __name__ == "__main__":
    with engines.start("local", workers=2) as local:
        # the second sleeps through all of it: a worker must not have to say how far it is to notice
        pool.run_all(local, jobs(Count(1, 900, 0.1), Count(2, 1, 900)), Path(sys.argv[1]))
