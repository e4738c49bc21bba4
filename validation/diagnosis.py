"""Is the verdict of `ContrastiveICA.diagnose` right? Known processes, matched and violated.

    python -m validation.diagnosis [--again] [NAME …]     # all, or those whose name holds a word
    python -m validation.diagnosis --truth [NAME …]       # codes that are the true factors, or a part

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

With `--truth` nothing is fitted: the true factors of sequences, clean and noisy, are handed to the diagnosis
as codes, as held-out pairs with their times, and in their order without (`timeless`). No finding about them
may be `wrong`. Then two of three are lost in several ways, and no verdict may be "recovered"; nor with the
one factor that is left as `Z`, nor where it is the only code and the observations show the others.
Thresholds were chosen with seeds from 100 to 401.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from identica import MLP, Box, InvertibleMLP, Sphere
from identica._io import write_json
from identica.diagnosis import codes_from, diagnose
from identica.diagnosis.truth import truth
from identica.diagnosis.verdict import DISTRUST, LEVELS, PERMUTATION, UNSURE
from identica.estimator import ContrastiveICA
from identica.metrics import linear_r2, mcc
from identica.spaces import Space
from validation._processes import CASES, Case
from validation._walks import JUDGED, LOST, WALKS, Matrix, Walk

RESULTS = Path(__file__).parent.parent / "results" / "diagnosis.json"
TRUTH_RESULTS = RESULTS.with_name("diagnosis_truth.json")
SEEDS = (1000,)
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


def judge_truth(walk: Walk, seed: int) -> Iterator[dict[str, Any]]:
    """Records of the true factors as codes, and of ways to lose all but one."""
    z, groups = walk.draw(seed)
    times = walk.times(len(z), groups, seed)
    space, family, n = walk.space, walk.conditional, z.shape[1]

    def record(what: str, codes: Matrix, expected: str, rows: Any = times, **more: Any) -> Any:
        # another start finds the truth with other noise, but what is lost it loses in the same way
        again = walk.blurred(-codes[:, ::-1], seed + 1) if expected == "kept" else -codes
        both = codes, again
        into: Space = space if codes.shape[1] == n else Box(codes.shape[1])
        found = diagnose(
            [codes_from(part[rows[0]], part[rows[1]], family) for part in both],
            into,
            family,
            **more,
        )
        wrong = [finding.check for finding in found.findings if finding.level == "wrong"]
        good = not wrong if expected == "kept" else found.verdict in (DISTRUST, UNSURE)
        levels = {f.check: f.level for f in found.findings if f.level != "fine"}
        return {"name": walk.name, "noise": walk.noise, "seed": seed, "codes": what} | {
            "verdict": found.verdict,
            "right": good,
            "independent": round(found.rows.independent),
            "findings": levels,
        }

    h = walk.blurred(z, seed)
    seen = InvertibleMLP(n, seed=seed, draws=1000)
    with torch.no_grad():
        x = seen(torch.from_numpy(h).float()).double().numpy()
    observed = x[times[0]], x[times[1]]
    yield record("true factors", h, "kept", times=times, observations=observed)
    ordered = np.arange(min(JUDGED, len(z) - walk.lag))
    yield record("timeless", h, "kept", (ordered, ordered + walk.lag))
    if isinstance(space, Sphere):
        return
    for lose in LOST:
        codes = walk.blurred(lose(z), seed)
        yield record(lose.__name__.replace("_", " "), codes, "lost", times=times)
    known = truth(z[times[0], :1], codes[times[0]])
    yield record("one and noise, with it as Z", codes, "lost", times=times, truth=known)
    yield record("one code", h[:, :1], "lost", times=times, observations=observed)


def main_truth(words: list[str]) -> None:
    torch.set_num_threads(1)
    records = []
    for walk in WALKS:
        for seed in SEEDS:
            if words and not any(word in walk.name for word in words):
                continue
            found = list(judge_truth(walk, seed))
            records += found
            for r in found:
                mark = "right" if r["right"] else "WRONG"
                print(
                    f"{mark} {r['name']}, noise {r['noise']}, {r['codes']}: {r['verdict']} {r['findings']}"
                )
    write_json(TRUTH_RESULTS, records)
    for what in dict.fromkeys(r["codes"] for r in records):
        these = [r for r in records if r["codes"] == what]
        verdicts = [r["verdict"] for r in these]
        counts = ", ".join(f"{verdicts.count(v)} {v}" for v in sorted(set(verdicts)))
        print(f"{what}: {sum(r['right'] for r in these)} of {len(these)} right ({counts})")


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
    options = [word for word in sys.argv[1:] if not word.startswith("--")]
    if "--truth" in sys.argv:
        main_truth(options)
    else:
        main(options, again="--again" in sys.argv)
