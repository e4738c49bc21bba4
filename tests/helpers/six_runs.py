"""Six counting runs by two workers, without the page of a study and so without torch: it starts in no
time. python -m helpers.six_runs OUT"""

import sys
from pathlib import Path

from helpers.counting import Count, study
from identica.runs import engines, pool
from identica.studies import table

ROWS = [Count(n, steps=60, pause=0.01) for n in range(1, 7)]

if __name__ == "__main__":
    out, counted = Path(sys.argv[1]), study(ROWS)
    kind, seed = "contrastive", 3
    jobs = {(row.row, kind, seed): counted.experiment(row, kind, seed, "fast") for row in ROWS}
    table.register(out, counted, {use: job.name for use, job in jobs.items()})
    with engines.start("local", 2) as local:
        failures = pool.run_all(local, list(jobs.values()), (out / "runs").resolve())
        assert not failures, failures
