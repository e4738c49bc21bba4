"""An engine with one worker, until stdin is closed: python -m helpers.started_engine ray|dask"""

import sys

from identica.runs import engines

if __name__ == "__main__":
    with engines.start(sys.argv[1], 1) as started:
        print(started.width(), flush=True)
        sys.stdin.read()
