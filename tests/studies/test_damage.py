"""A real run whose checkpoint or metrics are damaged begins anew, and ends as if nothing had been."""

import pytest

from helpers import tiny
from identica import InputError, checkpoints
from identica.runs import folder as runs

EXPERIMENT = tiny.experiment(tiny.ROWS[0], steps=20)
CONFIG = EXPERIMENT.config


class StopError(Exception):
    pass


def work(stop=None):
    def tick(step, steps):
        if step == stop:
            raise StopError

    return lambda out: EXPERIMENT.run(out, tick)


def truncate(data):
    return data[: len(data) // 2]


def spoil_header(data):
    return data[:40] + b"\xff" + data[41:]


def fewer_lines(data):
    return b""


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("checkpoint.safetensors", truncate),
        ("checkpoint.safetensors", spoil_header),
        ("checkpoint.safetensors", fewer_lines),
        ("metrics.jsonl", truncate),
    ],
)
def test_damage_costs_time_but_nothing_else(tmp_path, name, damage):
    with pytest.raises(StopError):
        runs.execute(tmp_path, CONFIG, work(stop=17))
    (tmp_path / "metrics.jsonl").write_bytes(b'{"step": 15, "loss": 1.0}\n')  # it is at step 15
    whole = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(damage(whole))
    result = runs.execute(tmp_path, CONFIG, work())
    assert (tmp_path / f"{name}.aside-1").read_bytes() == damage(whole)
    assert name in (tmp_path / "notes.log").read_text()
    assert result["scores"] == EXPERIMENT.run(tmp_path / "undisturbed")["scores"]
    assert (tmp_path / "model.safetensors").exists()
    assert not (tmp_path / "checkpoint.safetensors").exists()


def test_a_checkpoint_without_its_metrics_is_not_trusted(tmp_path):
    """It stands at the last step, so nothing would be recorded of the whole training."""

    def killed_at_the_end(out):
        EXPERIMENT.run(out)
        raise StopError

    with pytest.raises(StopError):
        runs.execute(tmp_path, CONFIG, killed_at_the_end)
    (tmp_path / "metrics.jsonl").unlink()
    result = runs.execute(tmp_path, CONFIG, work())
    assert "without its metrics" in (tmp_path / "notes.log").read_text()
    assert len((tmp_path / "metrics.jsonl").read_text().splitlines()) == 1
    assert result["seed"] == 0


def test_what_is_wrong_with_the_data_is_not_held_against_the_checkpoint(tmp_path):
    """Once the data is mended, the run goes on from where it was, to the same score."""
    seen = []

    def read(out, torn):
        def tick(step, steps):
            seen.append(step)
            if step == torn:
                raise InputError("an image is cut short")

        return EXPERIMENT.run(out, tick)

    with pytest.raises(InputError, match="cut short"):
        runs.execute(tmp_path, CONFIG, lambda out: read(out, torn=17))
    assert checkpoints.load(tmp_path / "checkpoint.safetensors")["step"] == 15
    result = runs.execute(tmp_path, CONFIG, lambda out: read(out, torn=None))
    assert seen == [*range(18), *range(15, 20)]
    assert result["scores"] == EXPERIMENT.run(tmp_path / "undisturbed")["scores"]
    assert not (tmp_path / "notes.log").exists()
    assert not list(tmp_path.glob("*.aside-*"))
