"""Is the verdict of `ContrastiveICA.diagnose` right? Known processes, matched and violated.

    python -m validation.diagnosis [--again] [NAME …]     # all, or those whose name holds a word

The verdict is made without the true factors, and then compared with them, over all factors of the
process, by a rule that was fixed before the unseen ones were run:

- "recovered up to permutation and scale" is right if MCC ≥ 0.95, else too trusting;
- "recovered up to a linear map" is right if R² ≥ 0.95, else too trusting;
- "uncertain" is right where an assumption is broken (so that nothing is guaranteed) or R² < 0.95, and
  too cautious where all assumptions hold and R² ≥ 0.95;
- "do not trust" is right if R² < 0.95, else too cautious.

Each case says which checks should speak (`broken`), and its record whether one of them did (`named`).
Thresholds of the diagnosis were chosen on the processes that are not marked `held_out`; those that are were
run once, afterwards. One case is marked `limit`: its data are those of another process, exactly, so no
verdict can be right for both; it is run all the same, and counted apart. A process that has its
record in results/diagnosis.json is not run again, unless `--again` is given.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import torch
from torch import nn

from identica import MLP
from identica._io import write_json
from identica.diagnosis.findings import LEVELS
from identica.diagnosis.verdict import DISTRUST, PERMUTATION, UNSURE
from identica.estimator import ContrastiveICA
from identica.metrics import linear_r2, mcc
from validation._processes import CASES, Case

RESULTS = Path(__file__).parent.parent / "results" / "diagnosis.json"
ENOUGH = 0.95


def network(shape: tuple[int, ...], n: int) -> nn.Module:
    return MLP(shape[0], n, hidden=(64, 64, 64))


def run(case: Case) -> dict[str, Any]:
    """The record of a case: the verdict, the truth, and whether they agree."""
    z, x, x_pos = (part.numpy() for part in case.data())
    began = time.process_time()
    ica = ContrastiveICA(network=network, **{"steps": 1000, "batch": 512, **case.model})
    diagnosis = ica.fit(x, x_pos).diagnose(x, x_pos)
    seconds = time.process_time() - began
    codes = ica.transform(x)
    truth = {"r2": linear_r2(z, codes), "mcc": mcc(z, codes)}
    speaking = [finding for finding in diagnosis.findings if finding.level != "fine"]
    return {
        "name": case.name,
        "held_out": case.held_out,
        "limit": case.limit,
        "broken": list(case.broken),
        "verdict": diagnosis.verdict,
        **{score: round(value, 4) for score, value in truth.items()},
        "judged": judge(diagnosis.verdict, broken=bool(case.broken), **truth),
        "named": not case.broken or any(not_fine.check in case.broken for not_fine in speaking),
        **{
            level: [f.check for f in diagnosis.findings if f.level == level]
            for level in LEVELS
            if level != "fine"
        },
        "cpu_seconds": round(seconds, 1),
        "diagnosis": json.loads(diagnosis.to_json()),
    }


def judge(verdict: str, r2: float, mcc: float, *, broken: bool) -> str:
    """The rule: "right", "too trusting" or "too cautious"."""
    if verdict in (DISTRUST, UNSURE):
        doubtful = r2 < ENOUGH or (verdict == UNSURE and broken)
        return "right" if doubtful else "too cautious"
    score = mcc if verdict == PERMUTATION else r2
    return "right" if score >= ENOUGH else "too trusting"


def main(words: list[str], *, again: bool) -> None:
    torch.set_num_threads(1)
    found = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    records = {record["name"]: record for record in found}
    for case in CASES:
        if words and not any(word in case.name for word in words):
            continue
        if again or case.name not in records:
            records[case.name] = run(case)
            RESULTS.parent.mkdir(exist_ok=True)
            write_json(RESULTS, [records[c.name] for c in CASES if c.name in records])
        print(line(records[case.name]), flush=True)
    for kind, marks in (
        ("seen", (False, False)),
        ("unseen", (True, False)),
        ("limit", (False, True)),
    ):
        these = [r for r in records.values() if (r["held_out"], r["limit"]) == marks]
        judged, named = [r["judged"] for r in these], sum(r["named"] for r in these)
        counts = ", ".join(f"{judged.count(word)} {word}" for word in sorted(set(judged)))
        print(f"{kind}: {counts or 'none yet'}; what is broken is named in {named} of {len(these)}")


def line(record: dict[str, Any]) -> str:
    """A record in a line of text."""
    return (
        f"{record['judged']:12} {record['name']}: {record['verdict']} (R² {record['r2']:.3f}, "
        f"MCC {record['mcc']:.3f}; "
        + "; ".join(f"{k}: {', '.join(record[k]) or '–'}" for k in LEVELS if k != "fine")
        + ("" if record["named"] else "; what is broken is not named")
        + ")"
    )


if __name__ == "__main__":
    options = [word for word in sys.argv[1:] if word != "--again"]
    main(options, again="--again" in sys.argv)
