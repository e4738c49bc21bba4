"""Finished runs with made-up scores."""

from functools import partial

from identica.runs.folder import execute
from identica.studies import table
from identica.studies.runner import plan
from identica.studies.theorem1 import Theorem1


def _told(result, folder):
    return result


def fake(folder, study, *, seeds=(0, 1), preset="fast", skip=(), scores=None):
    """Finished runs with made-up scores: row/100 + seed/1000, or as told."""
    names = {}
    for item in plan(study, folder, seeds=seeds, preset=preset):
        for use in item.uses:
            names[use] = item.job.name
        row, kind, seed = item.uses[0]
        if (row, kind, seed) in skip:
            continue
        record = next(r for r in study.rows if r.row == row)
        wanted = [t.score for t in study.targets(record) if t.kind == kind]
        found = scores(row, kind, seed) if scores else row / 100 + seed / 1000
        result = {"scores": dict.fromkeys(wanted, found), "seconds": 2.0, "pairs": 1, "seed": seed}
        if isinstance(study, Theorem1):
            result["errors"] = dict.fromkeys(wanted, 0.01)
        execute(folder / "runs" / item.job.name, item.job.config, partial(_told, result))
    table.register(folder, study, names)
    return folder
