"""`python -m benchmarks [PART …]`: measure, print as tables, write results/bench.json.

Parts: losses, growth, samplers, steps, scores (all of these by default) and row1 (an hour).
A part that is measured again replaces its old figures; the others stay.
"""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from benchmarks import losses, samplers, scores, steps
from benchmarks._measure import matmul_rate

RESULTS = Path(__file__).parent.parent / "results" / "bench.json"
PARTS: dict[str, Callable[[float], Any]] = {
    "losses": lambda rate: losses.against_materialised(),
    "growth": lambda rate: losses.growth(),
    "samplers": lambda rate: samplers.measure(),
    "steps": steps.measure,
    "scores": lambda rate: scores.measure(scores.GOALS),
    "row1": lambda rate: scores.measure(scores.LONG),
}


def table(records: list[dict[str, Any]]) -> str:
    """Records as a Markdown table."""
    names = list(records[0])
    lines = [names, ["---"] * len(names), *([_cell(r[n]) for n in names] for r in records)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, dict):
        return ", ".join(f"{k} {_cell(v)}" for k, v in value.items())
    if isinstance(value, list):
        return "; ".join(map(_cell, value))
    return str(value)


def main(parts: list[str]) -> int:
    unknown = [part for part in parts if part not in PARTS]
    if unknown:
        print(f"unknown part {unknown[0]!r}: choose from {', '.join(PARTS)}", file=sys.stderr)
        return 2
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for part in parts or [name for name in PARTS if name != "row1"]:
        rate = matmul_rate()  # beside each part, since a machine's speed may change
        records = PARTS[part](rate)
        results[part] = {
            "matmul_gflops": round(rate / 1e9, 1),
            "threads": torch.get_num_threads(),
            "machine": f"{platform.machine()}, {platform.system()}, torch {torch.__version__}",
            "records": records,
        }
        print(f"\n## {part} (float32 matrix product: {rate / 1e9:.0f} GFLOP/s)\n\n{table(records)}")
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
