"""A run that takes a while: python -m helpers.slow_run FOLDER SECONDS"""

import sys
import time
from pathlib import Path

from identica.runs.folder import execute


def work(folder):
    with (folder / "began.log").open("a") as log:
        log.write("x")
    time.sleep(float(sys.argv[2]))
    return {"scores": {"r2": 0.5}, "seconds": 0.0, "pairs": 0, "seed": 0}


if __name__ == "__main__":
    print(execute(Path(sys.argv[1]), {"kind": "slow", "seed": 0}, work)["scores"]["r2"])
