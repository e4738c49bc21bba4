"""How long the metrics take that need nothing but codes and factors.

    python -m benchmarks.metrics        # writes results/metrics.json (about a minute)

10,000 codes of ten dimensions, smooth mixtures of five factors with some noise: factors with the
numbers of values of dSprites, and continuous ones.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._measure import matmul_rate, seconds
from identica._io import write_json
from identica.datasets import dsprites
from identica.metrics import dci, mcc, mig, modularity, sap

RESULTS = Path(__file__).parent.parent / "results" / "metrics.json"
POINTS, CODES = 10_000, 10


def main() -> None:
    rng = np.random.default_rng(0)
    results: dict[str, Any] = {"matmul_gflops": round(matmul_rate() / 1e9, 1)}
    discrete = dsprites.sample(POINTS, rng)
    for name, z in {"discrete": discrete, "continuous": rng.random((POINTS, 5))}.items():
        standard = (z - z.mean(0)) / z.std(0)
        h = np.tanh(standard @ rng.normal(size=(5, CODES))) + 0.1 * rng.normal(size=(POINTS, CODES))
        spent = {
            metric.__name__: round(seconds(partial(metric, z, h), repeat=1, warm_up=0), 2)
            for metric in (mig, dci, sap, modularity, mcc)
        }
        results[name] = {"seconds": spent, "all": round(sum(spent.values()), 1)}
        print(name, results[name], flush=True)
    write_json(RESULTS, results)


if __name__ == "__main__":
    main()
