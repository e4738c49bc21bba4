"""`identica reproduce` under torchrun: two processes do one run after the other, together."""

import json

import pytest
import torch

from helpers.groups import free_port, losses, outputs, start
from helpers.masks import TINY, boxes, study
from identica import InputError
from identica.studies import reproduce
from identica.studies.runner import plan

# The gradient of a filter of the first layer sums over eight images at 32×32 places. As in
# test_distributed.py, sums of n float32 terms that are added in another order agree within n·ε of the
# terms' size, and Adam's steps keep that share of what they change: about 1 in all, as the losses do.
ROUNDING = 8 * 32 * 32 * torch.finfo(torch.float32).eps
# Codes that agree this well may swap ranks where frames are nearly tied. Neighbours among N frames that do
# change a Spearman correlation by 12/N² at most; of 96, ten are allowed to.
SWAPS = 10 * 12 / 96**2


def test_two_processes_make_one_table_and_go_on(tmp_path, monkeypatch):
    home, out = tmp_path / "data", tmp_path / "study"
    monkeypatch.setenv("IDENTICA_DATA", str(home))
    boxes().save(home / "kitti_masks" / "kitti_masks.npz")
    chosen = study(3, 7)
    planned = plan(chosen, out, seeds=[0], preset=TINY)
    first, second = [out / "runs" / item.job.name for item in planned]
    second.mkdir(parents=True)
    (second / "checkpoint.safetensors").write_text("torn")
    (table, _), (nothing, said) = outputs(start(2, "masks_in_a_group", out, free_port()))

    # Data that cannot be read ends both, and keeps the checkpoint, from which they go on. A damaged one is
    # set aside, and both begin anew. Whoever finds a checkpoint draws the first batch once more, to see
    # whether it is that of the same run.
    for rank in range(2):
        codes, drawn = json.loads((tmp_path / f"study{rank}").read_text())
        assert codes == [2, 0]
        assert drawn == [2, 2, 1, 3]
    assert said == "identica: an image is cut short\n"
    assert (second / "checkpoint.safetensors.aside-1").read_text() == "torn"
    assert not list(first.glob("*.aside-*"))

    # one table, told by one process, with the figures of a process by itself
    assert table.startswith((out / "table.md").read_text())
    assert nothing == ""
    records = json.loads((out / "table.json").read_text())
    for folder, row, record in zip((first, second), chosen.rows, records, strict=True):
        alone = chosen.experiment(row, row.kind, 0, TINY).run(tmp_path / f"alone-{row.row}")
        expected = losses(tmp_path / f"alone-{row.row}")
        assert losses(folder) == pytest.approx(expected, abs=ROUNDING)
        assert record["ours"]["mean"] == pytest.approx(alone["scores"]["mcc"], abs=SWAPS)


def test_a_group_has_no_workers(tmp_path, monkeypatch):
    monkeypatch.setattr("identica.distributed.group", lambda: (1, 2))
    for options in ({"workers": 2}, {"engine": "ray"}):
        with pytest.raises(InputError, match="must be left out in a group"):
            reproduce(study(3), preset=TINY, out=tmp_path / "study", **options)
    assert not (tmp_path / "study").exists()
