import json
import os
import signal
import subprocess
import time
from threading import Thread

import pytest

from helpers import programs
from identica import InputError
from identica._io import first_free, is_locked
from identica.errors import DamagedError
from identica.runs.folder import (
    begun,
    execute,
    open_run,
    read_result,
    refuse_another,
    run_name,
    set_aside,
)

CONFIG = {"kind": "contrastive", "seed": 3, "preset": {"hidden": (8, 8), "lr": 1e-3}}
RESULT = {"scores": {"r2": 0.5, "mcc": 0.25}, "seconds": 1.5, "pairs": 100, "seed": 3}


class Work:
    """Counts how often it is called."""

    def __init__(self, result=RESULT):
        self.calls, self.result = 0, result

    def __call__(self, folder):
        self.calls += 1
        return self.result


def test_a_name_depends_on_every_setting_but_not_on_their_order():
    names = {
        run_name(config)
        for config in (
            CONFIG,
            {**CONFIG, "seed": 4},
            {**CONFIG, "kind": "supervised"},
            {**CONFIG, "preset": {"hidden": (8, 8), "lr": 2e-3}},
            {**CONFIG, "preset": {"hidden": (8,), "lr": 1e-3}},
        )
    }
    assert len(names) == 5
    assert run_name(dict(reversed(CONFIG.items()))) == run_name(CONFIG)
    assert run_name(json.loads(json.dumps(CONFIG))) == run_name(CONFIG)
    assert run_name(CONFIG).startswith("contrastive-")


def test_a_finished_run_is_never_run_again(tmp_path):
    work, folder = Work(), tmp_path / "run"
    assert execute(folder, CONFIG, work) == RESULT
    stamp = (folder / "result.json").stat().st_mtime_ns
    assert execute(folder, CONFIG, work) == RESULT
    assert work.calls == 1
    assert (folder / "result.json").stat().st_mtime_ns == stamp
    assert json.loads((folder / "config.json").read_text())["preset"]["hidden"] == [8, 8]


def test_the_checkpoint_goes_once_there_is_a_result(tmp_path):
    def work(folder):
        for name in ("checkpoint.safetensors", "progress.json", ".metrics.jsonl.7.tmp"):
            (folder / name).write_text("x")
        return RESULT

    (tmp_path / ".config.json.7.tmp").write_text("left by a writer that was killed")
    execute(tmp_path, CONFIG, work)
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {".lock", "config.json", "result.json", ".metrics.jsonl.7.tmp"}


@pytest.mark.parametrize(
    "content",
    [
        "",
        json.dumps(RESULT)[:-9],
        "[1, 2]",
        '{"hello": "there"}',
        json.dumps({**RESULT, "seed": 4}),
        json.dumps({**RESULT, "scores": {}}),
        json.dumps({**RESULT, "scores": {"r2": float("nan")}}),
        json.dumps({**RESULT, "seconds": "long"}),
        json.dumps({**RESULT, "scores": {"r2": 10**400}}),
        "[" * 100_000,
        "\udcff",
    ],
)
def test_a_foreign_or_truncated_result_is_set_aside_and_the_run_done_again(tmp_path, content):
    open_run(tmp_path, CONFIG)
    (tmp_path / "result.json").write_text(content, errors="surrogateescape")
    with pytest.raises(InputError, match=r"result\.json"):
        read_result(tmp_path, CONFIG)
    work = Work()
    assert execute(tmp_path, CONFIG, work) == RESULT
    assert work.calls == 1
    aside = tmp_path / "result.json.aside-1"
    assert aside.read_text(errors="surrogateescape") == content
    notes = (tmp_path / "notes.log").read_text()
    assert str(tmp_path / "result.json") in notes
    assert aside.name in notes
    assert read_result(tmp_path, CONFIG) == RESULT


@pytest.mark.parametrize("config", ['{"kind": "another"}', '{"kind": "contr'])
@pytest.mark.parametrize("with_result", [True, False])
def test_a_folder_of_another_run_is_cleared_but_nothing_is_lost(tmp_path, config, with_result):
    (tmp_path / "config.json").write_text(config)
    (tmp_path / "checkpoint.safetensors").write_text("theirs")
    if with_result:
        (tmp_path / "result.json").write_text(json.dumps(RESULT))
    work = Work()
    assert execute(tmp_path, CONFIG, work) == RESULT
    assert work.calls == 1
    assert (tmp_path / "config.json.aside-1").read_text() == config
    assert (tmp_path / "checkpoint.safetensors.aside-1").read_text() == "theirs"
    assert (tmp_path / "result.json.aside-1").exists() == with_result


@pytest.mark.parametrize("config", [{**CONFIG, "seed": 4}, {**CONFIG, "kind": "supervised"}])
def test_the_result_of_another_configuration_is_not_read(tmp_path, config):
    execute(tmp_path, CONFIG, Work())
    assert read_result(tmp_path, CONFIG) == RESULT
    with pytest.raises(InputError, match=r"config\.json belongs to another run"):
        read_result(tmp_path, {**CONFIG, "preset": {}})
    with pytest.raises(InputError, match=r"config\.json belongs to another run"):
        read_result(tmp_path, config)


@pytest.mark.parametrize("part", ["parts/wide", "parts/fit-1/candidates/0"])
def test_parts_of_a_run_that_begins_anew_are_set_aside(tmp_path, part):
    """A damaged part, however deep, costs the run its parts, and none of them is deleted."""
    open_run(tmp_path, CONFIG)
    (tmp_path / part).mkdir(parents=True)
    (tmp_path / part / "checkpoint.safetensors").write_text("torn")
    (tmp_path / "parts" / "other").mkdir()

    def work(folder):
        if (folder / "parts").exists():
            raise DamagedError("a part is damaged")
        (folder / "parts").mkdir()
        return RESULT

    assert begun(tmp_path)
    assert execute(tmp_path, CONFIG, work) == RESULT
    aside = tmp_path / part.replace("parts", "parts.aside-1")
    assert (aside / "checkpoint.safetensors").read_text() == "torn"
    assert (tmp_path / "parts.aside-1" / "other").exists()
    assert "parts.aside-1" in (tmp_path / "notes.log").read_text()
    assert not (tmp_path / "parts").exists()  # those of a finished run go


def test_a_damaged_checkpoint_is_set_aside_and_the_run_begun_anew(tmp_path):
    checkpoint = tmp_path / "checkpoint.safetensors"
    (tmp_path / "metrics.jsonl").write_text("{}\n")
    open_run(tmp_path, CONFIG)
    checkpoint.write_text("torn")

    def work(folder):
        if checkpoint.exists():
            raise DamagedError(f"{checkpoint} is damaged")
        assert not (folder / "metrics.jsonl").exists()
        return RESULT

    assert execute(tmp_path, CONFIG, work) == RESULT
    assert (tmp_path / "checkpoint.safetensors.aside-1").read_text() == "torn"
    assert "checkpoint.safetensors is damaged" in (tmp_path / "notes.log").read_text()


@pytest.mark.parametrize("error", [ArithmeticError, InputError])
def test_a_run_that_fails_keeps_its_checkpoint(tmp_path, error):
    def work(folder):
        (folder / "checkpoint.safetensors").write_text("good")
        raise error("the loss became nan, or an image is cut short")

    with pytest.raises(error):
        execute(tmp_path, CONFIG, work)
    assert not (tmp_path / "notes.log").exists()
    assert (tmp_path / "checkpoint.safetensors").read_text() == "good"
    assert not (tmp_path / "result.json").exists()
    assert not is_locked(tmp_path / ".lock")


def test_bad_input_of_a_fresh_run_is_not_blamed_on_a_checkpoint(tmp_path):
    def work(folder):
        raise InputError("lr must be greater than 0")

    with pytest.raises(InputError, match="lr must be"):
        execute(tmp_path, CONFIG, work)
    assert not (tmp_path / "notes.log").exists()


def test_damage_that_no_earlier_attempt_left_is_the_error_of_the_run(tmp_path):
    work = Work()

    def damaging(folder):
        (folder / "checkpoint.safetensors").write_text(f"attempt {work.calls}")
        work(folder)
        raise DamagedError("the disk is failing")

    with pytest.raises(DamagedError, match="disk is failing"):
        execute(tmp_path, CONFIG, damaging)
    assert work.calls == 1
    assert not list(tmp_path.glob("*.aside-*"))
    with pytest.raises(DamagedError, match="disk is failing"):
        execute(tmp_path, CONFIG, damaging)
    assert work.calls == 3  # once more without the checkpoint of the first
    assert (tmp_path / "checkpoint.safetensors.aside-1").read_text() == "attempt 1"


@pytest.mark.parametrize(
    "wrong", [{"scores": {"r2": float("nan")}}, {"scores": {}}, {"seed": 4}, {"pairs": None}]
)
def test_a_result_that_could_not_be_read_again_is_an_error(tmp_path, wrong):
    work = Work({**RESULT, **wrong})
    with pytest.raises(ArithmeticError, match="no finite scores, or another seed"):
        execute(tmp_path, CONFIG, work)
    assert work.calls == 1
    assert not (tmp_path / "result.json").exists()


def test_the_first_that_is_free_is_held_and_waited_for(tmp_path):
    paths, given = [tmp_path / "a", tmp_path / "b"], []

    def third():
        with first_free(paths) as number:
            given.append(number)

    waiting = Thread(target=third)
    with first_free(paths) as one:
        with first_free(paths) as other:
            waiting.start()
            waiting.join(0.7)
            assert (one, other, given) == (0, 1, [])
        waiting.join(60)
        assert given == [1]
    with first_free(paths) as again:
        assert again == 0


def test_set_aside_never_overwrites(tmp_path):
    for text in ("one", "two"):
        (tmp_path / "result.json").write_text(text)
        set_aside(tmp_path / "result.json")
    assert (tmp_path / "result.json.aside-1").read_text() == "one"
    assert (tmp_path / "result.json.aside-2").read_text() == "two"


def begin(folder, seconds):
    return subprocess.Popen(
        programs.command("slow_run", folder, seconds),
        env=programs.environment(),
        stdout=subprocess.PIPE,
        text=True,
    )


def test_two_processes_never_work_on_the_same_run(tmp_path):
    both = [begin(tmp_path, 1.0) for _ in range(2)]
    assert [process.communicate(timeout=600)[0].strip() for process in both] == ["0.5", "0.5"]
    assert (tmp_path / "began.log").read_text() == "x"


def test_a_lock_dies_with_its_process(tmp_path):
    killed = begin(tmp_path, 600)
    while not (tmp_path / "began.log").exists() and killed.poll() is None:
        time.sleep(0.02)
    assert is_locked(tmp_path / ".lock")
    os.kill(killed.pid, signal.SIGKILL)
    killed.communicate()
    assert not is_locked(tmp_path / ".lock")
    assert begin(tmp_path, 0).communicate(timeout=600)[0].strip() == "0.5"
    assert (tmp_path / "began.log").read_text() == "xx"


def test_another_run_is_refused_by_what_differs(tmp_path):
    config = {"kind": "fit", "seed": 0, "data": {"bytes": 3, "sha256": "a"}, "model": {"lag": None}}
    open_run(tmp_path, config)
    open_run(tmp_path, config)
    other = {**config, "data": {"bytes": 4, "sha256": "b"}, "model": {"lag": [1, 2]}, "more": 1}
    told = r"other content of data, lag= default → \[1, 2\], more= default → 1\)"
    with pytest.raises(InputError, match=told):
        open_run(tmp_path, other)
    many = {**config, "seed": 1, "a": 1, "b": 2, "c": 3, "d": 4}
    with pytest.raises(InputError, match=r"seed= 0 → 1, a= default → 1, b= default → 2 and 2 more"):
        open_run(tmp_path, many)
    # what is not said need not be compared, and is as usual
    refuse_another(tmp_path, {"seed": 0, "restarts": 2}, {"restarts": 2})
    with pytest.raises(InputError, match="restarts= 2 → 3"):
        refuse_another(tmp_path, {"seed": 0, "restarts": 3}, {"restarts": 2})
    refuse_another(tmp_path / "nothing", config)
