import json
import re

import numpy as np
import pytest

from helpers.walks import noisy
from identica import ContrastiveICA
from identica.cli import main

OPTIONS = ["--components", "2", "--steps", "3", "--seed", "4"]


@pytest.fixture
def table(tmp_path):
    x = np.random.default_rng(0).normal(size=(40, 2)).cumsum(axis=0)
    lines = [f"{a},{b},{k // 20}" for k, (a, b) in enumerate(x)]
    path = tmp_path / "walk.csv"
    path.write_text("\n".join(["left,right,day", *lines]) + "\n")
    return x, path


def test_codes_model_and_history_of_a_table(table, tmp_path, capsys):
    x, path = table
    out = tmp_path / "out"
    command = ["fit", str(path), "--out", str(out), "--groups", "day", "--lag", "1-2", *OPTIONS]
    assert main([*command, "--tensorboard"]) == 0
    starts = json.loads((out / "result.json").read_text())["starts"]
    runs = sorted(path.parent.name for path in (out / "tensorboard").glob("*/events.*"))
    assert runs == sorted(f"start-{k + 1}" for k in range(len(starts)))
    printed, err = capsys.readouterr()
    assert "fit, start 1 of 7:" in err  # the progress bar
    for name in ("codes.npy", "codes.csv", "estimator.safetensors", "metrics.jsonl"):
        assert str(out / name) in printed
        assert (out / name).exists()
    codes = np.load(out / "codes.npy")
    expected = ContrastiveICA(2, steps=3, random_state=4).fit(
        x, lag=(1, 2), groups=np.repeat([0, 1], 20)
    )
    assert np.array_equal(codes, expected.transform(x))
    assert np.allclose(np.loadtxt(out / "codes.csv", delimiter=",", skiprows=1), codes, atol=1e-6)
    assert np.array_equal(ContrastiveICA.load(out / "estimator.safetensors").transform(x), codes)
    result = json.loads((out / "result.json").read_text())
    assert result["seed"] == 4
    assert 0 <= result["scores"]["share"] <= 1
    assert not (out / "checkpoint.safetensors").exists()


def test_a_density_is_learnt_on_demand(table, tmp_path):
    x, path = table
    out = tmp_path / "out"
    assert main(["fit", str(path), "--out", str(out), "--marginal", "any", *OPTIONS]) == 0
    assert ContrastiveICA.load(out / "estimator.safetensors").marginal == "any"
    codes = ContrastiveICA(2, steps=3, random_state=4, marginal="any")
    expected = codes.fit(np.c_[x, np.repeat([0, 1], 20)]).transform(np.c_[x, np.repeat([0, 1], 20)])
    assert np.array_equal(np.load(out / "codes.npy"), expected)


def test_a_page_says_how_far_to_trust_the_codes(tmp_path, capsys):
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(200, 2))
    unrelated = rng.uniform(size=(200, 2))
    np.savez(tmp_path / "pairs.npz", x=x, other=unrelated)
    out = tmp_path / "out"
    command = ["fit", str(tmp_path / "pairs.npz"), "--positives", "other", "--out", str(out)]
    assert main([*command, *OPTIONS]) == 0
    printed = capsys.readouterr().out
    assert f"diagnosis: {out / 'diagnosis.html'}" in printed
    assert "Verdict: do not trust. Nothing can be predicted: " in printed
    assert "Do not trust" in (out / "diagnosis.html").read_text(encoding="utf-8")
    assert json.loads((out / "diagnosis.json").read_text())["verdict"] == "do not trust"
    assert json.loads((out / "result.json").read_text())["verdict"] == "do not trust"


def test_what_is_chosen_is_said(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("identica.estimator.selection.COMPONENTS", (1, 2))
    x = noisy(2400, columns=3)[1]
    np.save(tmp_path / "x.npy", x)
    out = tmp_path / "out"
    command = ["fit", str(tmp_path / "x.npy"), "--out", str(out), "--steps", "3", "--no-diagnosis"]
    assert main([*command, "--lag", "auto", "--components", "auto"]) == 0
    printed, result = capsys.readouterr().out, json.loads((out / "result.json").read_text())
    ica = ContrastiveICA.load(out / "estimator.safetensors")
    expected = ContrastiveICA(steps=3).fit(x, lag="auto")
    assert ica.evidence_ == expected.evidence_
    assert ica.window_ == expected.window_ > 1
    for name, value in (("lag", ica.lag_), ("window", ica.window_), ("n_components", 1)):
        value = np.load(out / "codes.npy").shape[1] if name == "n_components" else value
        # shares of the best, since bits of different choices must not be compared
        option = {"n_components": "components"}.get(name, name)
        assert re.search(
            rf"^chosen: --{option} {value}, the .* \((?=.*100%)1: \d+%.*\)$", printed, re.M
        )
        assert result[name] == value
    [score] = re.findall(r"^held-out score: (\S+) bits \(highest possible: (\S+);", printed, re.M)
    assert float(score[0]) == pytest.approx(ica.bits_, abs=1e-3)
    assert float(score[1]) <= np.log2(2400 / 8) + 0.1
    assert np.array_equal(np.load(out / "codes.npy"), expected.transform(x))


def test_a_window_and_the_line_on_trust(table, tmp_path, capsys):
    x, path = table
    out = tmp_path / "out"
    command = ["fit", str(path), "--out", str(out), "--groups", "day", "--window", "3", *OPTIONS]
    assert main(command) == 0
    printed = capsys.readouterr().out
    assert re.search(r"^held-out score: ", printed, re.M)
    assert re.search(r"^warning: .*do not trust the codes", printed, re.M)
    groups = np.repeat([0, 1], 20)
    ica = ContrastiveICA(2, window=3, steps=3, random_state=4).fit(x, groups=groups)
    assert np.array_equal(np.load(out / "codes.npy"), ica.transform(x, groups=groups))
    # where codes are deleted, they are written again from the same windows
    (out / "codes.npy").unlink()
    assert main(command) == 0
    assert np.array_equal(np.load(out / "codes.npy"), ica.transform(x, groups=groups))


def test_few_pairs_are_fitted_but_not_judged(table, tmp_path, capsys):
    _, path = table
    out = tmp_path / "out"
    assert main(["fit", str(path), "--out", str(out), *OPTIONS]) == 0
    assert "diagnosis: none\nDATA must hold at least 100 pairs" in capsys.readouterr().out
    assert not (out / "diagnosis.html").exists()
    silent = tmp_path / "silent"
    assert main(["fit", str(path), "--out", str(silent), "--no-diagnosis", *OPTIONS]) == 0
    assert "diagnosis" not in capsys.readouterr().out


def test_a_finished_fit_is_not_done_again_and_another_one_is_refused(
    table, tmp_path, monkeypatch, capsys
):
    _, path = table
    command = ["fit", str(path), "--out", str(tmp_path / "out"), *OPTIONS]
    assert main(command) == 0
    first = capsys.readouterr().out

    def never(*args, **kwargs):
        raise AssertionError("fitted again")

    monkeypatch.setattr("identica.estimator.fit.fit", never)
    assert main(command) == 0
    assert capsys.readouterr().out == first
    assert main([*command, "--lag", "2"]) == 2
    assert "holds another run" in capsys.readouterr().err

    def unread(*args, **kwargs):
        raise AssertionError("data were read before settings were compared")

    monkeypatch.setattr("identica.estimator.files.read", unread)
    others = ["--lag", "2-4", "--drop", "day", "--precision"]
    assert main([*command, *others]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert "(--lag default → [2, 4], --precision False → True, --drop default → day)" in line
    assert "choose another folder, or delete this one" in line


def test_positives_of_an_npz(tmp_path):
    x = np.random.default_rng(0).normal(size=(40, 3))
    np.savez(tmp_path / "pairs.npz", x=x, other=x + 0.1)
    out = tmp_path / "out"
    command = ["fit", str(tmp_path / "pairs.npz"), "--positives", "other", "--out", str(out)]
    assert main([*command, *OPTIONS]) == 0
    expected = ContrastiveICA(2, steps=3, random_state=4).fit(x, x + 0.1).transform(x)
    assert np.array_equal(np.load(out / "codes.npy"), expected)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--lag", "x"], "lag must be"),
        (["--space", "bx"], "space must be one of"),
        (["--groups", "week"], "groups must be"),
        (["--marginal", "normal"], "marginal must be one of any, uniform"),
        (["--seed", str(2**64)], "seed must be"),
        (["--lag", str(10**12)], "lag must be smaller than the number of rows"),
        (["--lag", f"1-{10**12}"], "lag must be smaller than the number of rows"),
        (["--lag", "9" * 5000], "lag must be"),
        (["--components", str(10**12)], "components must be a whole number or auto"),
        (["--components", str(10**8)], "--components must be at most 1000"),
        (["--components", "0"], "components must be a whole number of at least 1"),
        (["--components", "two"], "components must be a whole number or auto"),
        (["--window", "wide"], "window must be a whole number or auto"),
        (["--window", "0"], "window must be a whole number of at least 1"),
        (["--window", "39"], "window must leave at least 2 pairs"),
        (["--window", "2.5"], "window must be a whole number or auto"),
        (["--lag", "automatic"], "or auto, got 'automatic'"),
        (["--columns", "left,up"], "columns must name columns of"),
        (["--drop", "up"], "which has left, right, day, got 'up'"),
        (["--index", "up"], "index must be a name in DATA, which has left, right, day"),
        (["--index", "left"], "DATA (by 'left') must be in order of time, but row"),
        (["--missing", "fill"], "missing must be one of raise, drop"),
        (["--restarts", "1"], "restarts must be a whole number of at least 2"),
        (["--batch", "0"], "batch must be"),
        (["--lr", "nan"], "lr must be"),
        (["--device", "nonsense"], "device must be"),
        (["--array", "x"], "array selects one of several arrays in a file"),
    ],
)
def test_bad_options_are_one_line(table, tmp_path, capsys, options, message):
    _, path = table
    assert main(["fit", str(path), "--out", str(tmp_path / "out"), *options]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert len(err.splitlines()) == 1
    assert not (tmp_path / "out").exists()  # a second try must not find it taken


def test_data_that_do_not_exist(tmp_path, capsys):
    assert main(["fit", str(tmp_path / "none.npy"), "--out", str(tmp_path / "out")]) == 2
    assert "none.npy does not exist" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.fixture
def recording(tmp_path):
    """Observations with positives and labels, each in a file of its own."""
    rng = np.random.default_rng(0)
    np.save(tmp_path / "x.npy", rng.normal(size=(40, 2)))
    np.save(tmp_path / "after.npy", rng.normal(size=(40, 2)))
    np.save(tmp_path / "day.npy", np.repeat([0, 1], 20))
    return tmp_path


@pytest.mark.parametrize("option", ["--positives", "--groups"])
def test_a_result_belongs_to_the_content_of_every_file(recording, capsys, option):
    name = {"--positives": "after.npy", "--groups": "day.npy"}[option]
    out = recording / "out"
    command = ["fit", str(recording / "x.npy"), option, str(recording / name), "--out", str(out)]
    command += [*OPTIONS, "--no-diagnosis"]
    assert main(command) == 0
    before = (out / "codes.npy").read_bytes()
    values = np.load(recording / name)
    values[20:] = values[:20]
    np.save(recording / name, values)
    capsys.readouterr()
    assert main(command) == 2
    assert "holds another run" in capsys.readouterr().err
    assert (out / "codes.npy").read_bytes() == before
    # the same content under another name is the same input
    np.save(recording / "x2.npy", np.load(recording / "x.npy"))
    command[1] = str(recording / "x2.npy")
    command[command.index(str(out))] = str(recording / "out2")
    assert main(command) == 0


def test_a_change_in_the_middle_of_a_large_file_is_noticed(tmp_path, capsys):
    x = np.random.default_rng(0).normal(size=(150_000, 2))  # 2.4 MB
    np.save(tmp_path / "x.npy", x)
    command = ["fit", str(tmp_path / "x.npy"), "--out", str(tmp_path / "out"), *OPTIONS]
    command.append("--no-diagnosis")
    assert main(command) == 0
    x[75_000] += 1
    np.save(tmp_path / "x.npy", x)
    assert main(command) == 2
    assert "holds another run" in capsys.readouterr().err


def test_deleted_codes_are_written_again_and_a_deleted_model_is_fitted_again(
    recording, monkeypatch, capsys
):
    out = recording / "out"
    command = ["fit", str(recording / "x.npy"), "--out", str(out), *OPTIONS, "--no-diagnosis"]
    assert main(command) == 0
    first, codes = capsys.readouterr().out, (out / "codes.npy").read_bytes()
    (out / "codes.npy").unlink()
    (out / "codes.csv").unlink()
    with monkeypatch.context() as patch:
        patch.setattr("identica.estimator.fit.fit", None)  # which is not needed
        assert main(command) == 0
    assert capsys.readouterr().out == first
    assert (out / "codes.npy").read_bytes() == codes
    assert (out / "codes.csv").exists()
    (out / "codes.npy").unlink()
    (out / "estimator.safetensors").write_bytes(b"damaged")
    assert main(command) == 0
    assert (out / "codes.npy").read_bytes() == codes
    (out / "estimator.safetensors").unlink()
    assert main(command) == 0
    assert (out / "estimator.safetensors").exists()
    assert (out / "result.json.aside-1").exists()


def test_a_deleted_diagnosis_is_made_again(tmp_path):
    x = np.random.default_rng(0).uniform(size=(200, 2))
    np.savez(tmp_path / "pairs.npz", x=x, other=x + 0.01)
    out = tmp_path / "out"
    command = ["fit", str(tmp_path / "pairs.npz"), "--positives", "other", "--out", str(out)]
    assert main([*command, *OPTIONS]) == 0
    (out / "diagnosis.html").unlink()
    assert main([*command, *OPTIONS]) == 0
    assert (out / "diagnosis.html").exists()


def test_a_vector_of_positives_is_refused(tmp_path, capsys):
    np.savez(tmp_path / "a.npz", x=np.ones((40, 2)), y=np.arange(40))
    command = ["fit", str(tmp_path / "a.npz"), "--array", "x", "--positives", "y"]
    assert main([*command, "--out", str(tmp_path / "out"), *OPTIONS]) == 2
    assert "positives must have shape" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_rows_without_a_group_are_refused(tmp_path, capsys):
    np.savez(tmp_path / "a.npz", x=np.ones((4, 2)), day=np.array([1, 1, np.nan, np.nan]))
    command = ["fit", str(tmp_path / "a.npz"), "--array", "x", "--groups", "day"]
    assert main([*command, "--out", str(tmp_path / "out"), *OPTIONS]) == 2
    assert "groups must label every row, but row 2" in capsys.readouterr().err


def test_settings_of_the_training(table, tmp_path, monkeypatch):
    _, path = table
    made, asked = [], []
    fit, diagnose = ContrastiveICA.fit, ContrastiveICA.diagnose

    def fitted(self, *args, **options):
        made.append(self.get_params())
        return fit(self, *args, **options)

    def judged(self, *args, restarts, **options):
        asked.append(restarts)
        return diagnose(self, *args, restarts=restarts, **options)

    monkeypatch.setattr(ContrastiveICA, "fit", fitted)
    monkeypatch.setattr(ContrastiveICA, "diagnose", judged)
    command = ["fit", str(path), "--out", str(tmp_path / "out"), "--groups", "day", *OPTIONS]
    command += ["--batch", "8", "--lr", "0.02", "--device", "cpu", "--restarts", "3"]
    assert main(command) == 0
    given = {"batch": 8, "lr": 0.02, "device": "cpu", "progress": True}
    assert given.items() <= made[0].items()
    assert asked == [3]
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert config["restarts"] == 3
    assert config["estimator"]["batch"] == 8


def test_a_fit_without_new_options_has_the_configuration_it_always_had(table, tmp_path):
    _, path = table
    assert main(["fit", str(path), "--out", str(tmp_path / "out"), *OPTIONS, "--no-diagnosis"]) == 0
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert not {"columns", "drop", "index", "restarts"} & config.keys()
    assert not {"batch", "lr", "missing"} & config["estimator"].keys()


def test_the_rules_that_are_printed_are_those_of_the_choice():
    from identica.cli.fit import CHOSEN
    from identica.estimator.selection import NEARLY
    from identica.estimator.windows import NEARLY as WIDE
    from identica.estimator.windows import shortest

    assert f"{WIDE:.0%}" in CHOSEN["window"]
    assert f"{NEARLY:.0%}" in CHOSEN["n_components"]
    assert f"{shortest.__defaults__[0]:.0%}" in CHOSEN["lag"]
