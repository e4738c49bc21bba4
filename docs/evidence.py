"""The tables of the page Evidence, counted from the files in results/; `docs/paste.py` pastes them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from identica.studies import catalogue, find, table
from identica.studies.study import Study, Verdict
from identica.studies.table import Entry

RESULTS = Path(__file__).parent.parent / "results"
NO_TARGETS = {
    "recordings": "nothing is published for this split: "
    "[models side by side](recordings.md#two-rats-a-mouse-and-simulated-neurons)",
    "workshop-table3": "other data than published",
    "workshop-table4": "other data than published",
}


def judged(study: Study[Any]) -> Iterator[tuple[Entry, Verdict]]:
    """The figures of a study in results/, and how they compare with the published ones."""
    folder = RESULTS / study.name
    for entry in table.collect(folder, study, table.recorded(folder, study)):
        yield entry, study.verdict(entry.target, entry.ours)


def found() -> list[Study[Any]]:
    """The studies that have a table, in the order of the catalogue."""
    return [find(name) for name in catalogue.TITLES if (RESULTS / name / table.TABLE).is_file()]


def markdown(*rows: tuple[object, ...]) -> str:
    head, *body = [f"| {' | '.join(str(cell) for cell in row)} |" for row in rows]
    return "\n".join([head, f"|{'---|' * len(rows[0])}", *body])


def studies() -> str:
    """How many figures of each study are as expected."""
    rows: list[tuple[object, ...]] = [("study", "figures", "compared", "as expected", "seeds")]
    for study in found():
        verdicts = list(judged(study))
        good = [verdict.good for _, verdict in verdicts if verdict.good is not None]
        seeds = sorted({entry.ours.seeds for entry, _ in verdicts})
        outcome = (len(good), sum(good)) if good else ("–", NO_TARGETS[study.name])
        shown = f"{seeds[0]}–{seeds[-1]}" if len(seeds) > 1 else seeds[0]
        rows.append((f"`{study.name}`", len(verdicts), *outcome, shown))
    return markdown(*rows)


def shortfalls() -> str:
    """Every figure that is not as expected."""
    rows: list[tuple[object, ...]] = [
        ("study", "row", "model", "score", "published", "ours", "difference")
    ]
    for study in found():
        for entry, verdict in judged(study):
            if verdict.good is False and entry.target.published is not None:
                published, ours = entry.target.published.mean, entry.ours.mean
                rows.append((
                    f"`{study.name}`", entry.row.row, entry.target.kind,
                    study.label(entry.target).split()[-1],
                    f"{100 * published:.2f}", f"{100 * ours:.2f} ({entry.ours.seeds})",
                    f"{100 * (ours - published):+.2f}".replace("-", "−"),
                ))  # fmt: skip
    return markdown(*rows)


def checks() -> str:
    """What the programs of validation/ found."""

    def read(name: str) -> Any:
        return json.loads((RESULTS / name).read_text("utf-8"))

    selection = read("selection.json").values()
    diagnosis, truth = read("diagnosis.json"), read("diagnosis_truth.json")
    guarantees = read("guarantees.json")["summary"]
    mutants = [record for found in read("mutants.json") for record in found["mutants"]]
    verdicts = Counter(record["verdict"] for record in mutants)
    same = sum(record.get("note", "").startswith("equivalent") for record in mutants)
    frames = read("sprites.json")["real_frames"]
    right = sum(record["judged"] == "right" for record in diagnosis)
    wrong = ", ".join(f"{r['name']} ({r['judged']})" for r in diagnosis if r["judged"] != "right")
    marginal = {
        name: {m: [r["r2"] for r in found if r["marginal"] == m] for m in ("uniform", "any")}
        for name, found in read("any_marginal.json").items()
    }
    uneven = {
        kind: [r["mcc"] for r in read("anisotropic.json") if r["precision"] == kind]
        for kind in ("one for all", "learnt")
    }
    return markdown(
        ("question", "command", "file in `results/`", "outcome"),
        (
            "Does `guarantee` promise what training finds, and nothing that a counterexample refutes?",
            "`python -m validation.guarantees`",
            "`guarantees.json`",
            f"{guarantees['kept']} of {guarantees['promised']} promises kept, "
            f"{guarantees['promised with a counterexample']} refuted; of "
            f"{guarantees['without a promise']} pairs without a promise, "
            f"{guarantees['with a counterexample']} have a counterexample",
        ),
        (
            "Is a verdict of `diagnose` right, compared with the true factors?",
            "`python -m validation.diagnosis`",
            "`diagnosis.json`",
            f"{right} of {len(diagnosis)} right; wrong: {wrong}",
        ),
        (
            "Does `diagnose` accept true factors as codes, and reject codes that lack one?",
            "`python -m validation.diagnosis --truth`",
            "`diagnosis_truth.json`",
            f"{sum(record['right'] for record in truth)} of {len(truth)} right",
        ),
        (
            '"auto": are the true space and family selected?',
            "`python -m validation.selection`",
            "`selection.json`",
            f"{sum(r['right_family'] and r['right_space'] for r in selection)} of {len(selection)} processes",
        ),
        (
            "`learn_precision`: MCC where precisions are spread twenty-fold",
            "`python -m validation.anisotropic`",
            "`anisotropic.json`",
            "; ".join(
                f"{kind}: {', '.join(f'{m:.2f}' for m in mcc)}" for kind, mcc in uneven.items()
            ),
        ),
        (
            "`ContrastiveICA` on data with known factors, with its default training",
            "`python -m validation.own_data`",
            "`own_data.json`",
            "[table](own-data.md)",
        ),
        (
            '`marginal="any"` beside "uniform" on the same data: R², lowest over seeds',
            "`python -m validation.any_marginal`",
            "`any_marginal.json`",
            "; ".join(
                f"{name}: {min(r2['uniform']):.3f} → {min(r2['any']):.3f}"
                for name, r2 in marginal.items()
                if r2["any"]
            ),
        ),
        (
            "How far from a linear map is the minimum of the published loss, with a marginal around "
            "a pole of a sphere? R² in %",
            "`python -m validation.meridians`",
            "`meridians.json`",
            "; ".join(
                f"`{r['study']}` row {r['row']}: {100 * r['lowest loss']['r2']:.2f}"
                for r in read("meridians.json")
            ),
        ),
        (
            "Codes trained by labels, beside CEBRA-Behavior",
            "`python -m validation.labels`",
            "`labels.json`",
            "[table](recordings.md#labels)",
        ),
        (
            "Which properties of a recording bend the ring of head directions?",
            "`python -m validation.ring`",
            "`ring.json`",
            "[table](recordings.md#why-the-ring-is-bent)",
        ),
        (
            "Are re-rendered dSprites the original ones?",
            "`python -m benchmarks.sprites`",
            "`sprites.json`",
            f"{frames['bit_exact']} of {frames['frames']} real frames bit for bit; "
            "the archive was not at hand",
        ),
        (
            "Speed, compared with plain implementations in the same run",
            "`python -m benchmarks`",
            "`bench.json`",
            "[table](speed.md#figures)",
        ),
        (
            "Do the tests notice small faults in the code?",
            "`python -m validation.mutants`",
            "`mutants.json`",
            f"{verdicts['caught']} of {len(mutants)} mutants caught, {same} of the others change nothing",
        ),
    )
