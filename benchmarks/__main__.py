"""`python -m benchmarks [PART …]`: measure, write results/bench.json and, as tables, results/bench.md.

Parts: losses, growth, potential, samplers, steps, scores and row1; all by default (a quarter of an hour).
A part that is measured again replaces its old figures; the others stay.
"""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from benchmarks import losses, samplers, scores, steps
from benchmarks._measure import matmul_rate

RESULTS = Path(__file__).parent.parent / "results" / "bench.json"
Record = dict[str, Any]


def _milliseconds(name: str, record: dict[str, Any]) -> str:
    return f"{1e3 * record['seconds'][name]:.2f}"


@dataclass(frozen=True)
class Part:
    """What is measured, and the columns of its table."""

    title: str
    measure: Callable[[], list[Record]]
    columns: dict[str, Callable[[Record], str]]


def _seeds(key: str) -> Callable[[Record], str]:
    return lambda record: ", ".join(str(run[key]) for run in record["runs"])


SCORES: dict[str, Callable[[Record], str]] = {
    "row": lambda r: f"{r['study']}, {r['row']}",
    "published": lambda r: f"{r['score']} {r['published']}",
    "ours, by seed": _seeds("score"),
    "seconds until the published score": _seeds("seconds_to_published"),
    "allowed": lambda r: f"{r['allowed_seconds']:g}",
    "seconds in all": _seeds("seconds"),
    "the published recipe, seconds": lambda r: f"{r['recipe_seconds']:,}",
    "times faster (slowest seed)": lambda r: str(r["times_faster"]),
}
PARTS = {
    "losses": Part(
        "The loss and its gradient, fused, against every pair in memory",
        losses.against_materialised,
        {
            "similarity": lambda r: "dot product" if r["p"] is None else f"L{r['p']}",
            "batch": lambda r: f"{r['batch']:,}",
            "fused, ms": lambda r: f"{1e3 * r['fused']:.1f}",
            "in memory, ms": lambda r: f"{1e3 * r['materialised']:,.0f}",
            "ratio": lambda r: f"{r['ratio']:.0f}",
            "fused, MB": lambda r: f"{r['fused_bytes'] / 1e6:.1f}",
            "in memory, MB": lambda r: f"{r['materialised_bytes'] / 1e6:,.0f}",
        },
    ),
    "growth": Part(
        "The fused L1 loss as the batch grows",
        losses.growth,
        {
            "batch": lambda r: f"{r['batch']:,}",
            "ms": lambda r: f"{1e3 * r['fused']:.1f}",
            "ns per pair": lambda r: f"{1e9 * r['fused'] / r['batch'] ** 2:.2f}",
            "MB": lambda r: f"{r['fused_bytes'] / 1e6:.1f}",
        },
    ),
    "potential": Part(
        "InfoNCE and its gradient with a potential, against the same without, in turn",
        losses.with_potential,
        {
            "similarity": lambda r: "dot product" if r["p"] is None else f"L{r['p']}",
            "batch": lambda r: f"{r['batch']:,}",
            "without, ms": lambda r: f"{1e3 * r['plain']:.2f}",
            "its terms given, ratio": lambda r: f"{r['given'] / r['plain']:.2f}",
            "learnt (64-64 network), ratio": lambda r: f"{r['learnt'] / r['plain']:.2f}",
        },
    ),
    "samplers": Part(
        "Samplers, against as many standard normals",
        samplers.measure,
        {
            "space": lambda r: r["space"],
            "family": lambda r: r["family"],
            "ratio": lambda r: str(r["times_normals"]),
        },
    ),
    "steps": Part(
        "The training step",
        steps.measure,
        {
            "row": lambda r: f"{r['study']}, {r['row']}",
            "threads": lambda r: str(r["threads"]),
            **{
                f"{name}, ms": partial(_milliseconds, name)
                for name in ("step", "encoder", "loss", "sample")
            },
            "matrix product, GFLOP/s": lambda r: f"{r['matmul_gflops']:.0f}",
            "encoder's operations, share of that": lambda r: f"{r['share_of_matmul']:.0%}",
        },
    ),
    "scores": Part("Time to the published score", lambda: scores.measure(scores.GOALS), SCORES),
    "row1": Part(
        "Time to the published score, vMF(1)", lambda: scores.measure(scores.LONG), SCORES
    ),
}


def tables(results: dict[str, Any]) -> str:
    """All parts as Markdown."""
    return "\n".join(_table(PARTS[name], found) for name, found in results.items())


def _table(part: Part, found: dict[str, Any]) -> str:
    rows = [[cell(record) for cell in part.columns.values()] for record in found["records"]]
    lines = [list(part.columns), ["---"] * len(part.columns), *rows]
    told = f"float32 matrix product beside it: {found['matmul_gflops']:.0f} GFLOP/s"
    body = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"**{part.title}** ({told}, {found['threads']} threads)\n\n{body}\n"


def main(parts: list[str]) -> int:
    unknown = [part for part in parts if part not in PARTS]
    if unknown:
        print(f"unknown part {unknown[0]!r}: choose from {', '.join(PARTS)}", file=sys.stderr)
        return 2
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    threads = torch.get_num_threads()
    for name in parts or PARTS:
        torch.set_num_threads(threads)
        rate = matmul_rate()  # beside each part, since a machine's speed may change
        records = PARTS[name].measure()
        results[name] = {
            "matmul_gflops": round(rate / 1e9, 1),
            "threads": threads,
            "machine": f"{platform.machine()}, {platform.system()}, torch {torch.__version__}",
            "records": records,
        }
        print(f"\n{_table(PARTS[name], results[name])}", flush=True)
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")
        ordered = {name: results[name] for name in PARTS if name in results}
        RESULTS.with_suffix(".md").write_text(tables(ordered))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
