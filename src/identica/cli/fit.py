"""identica fit: codes of the observations in a file."""

from __future__ import annotations

import argparse
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from identica._validate import count
from identica.cli.arguments import add_seed, suggest, whole
from identica.cli.codes import CODES, PICTURE, TABLE, draw_codes, write_codes
from identica.cli.streams import say
from identica.cli.words import in_shell
from identica.errors import InputError

if TYPE_CHECKING:
    from identica.estimator import ContrastiveICA
    from identica.estimator.files import Observations

ESTIMATOR, PAGE, DIAGNOSIS = "estimator.safetensors", "diagnosis.html", "diagnosis.json"
# the rule by which each is chosen
CHOSEN = {
    "window": "the widest with 80% of the best evidence",
    "lag": "the shortest with 97% of the best evidence",
    "n_components": "the fewest with 97% of the best evidence",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.description = (
        "Fit an encoder to pairs of observations and write the codes. Without --positives, rows are a "
        "sequence in time, and each row is paired with the next. A second fit, from another random start, "
        "shows how far the codes can be trusted. A fit that was killed resumes when called again."
    )
    add = parser.add_argument
    add(
        "data",
        type=Path,
        metavar="DATA",
        help="observations: .npy, .npz, .csv, .parquet, .h5 or .zarr, or a folder of PNG or JPEG images",
    )
    add(
        "--out",
        type=Path,
        default=Path("identica-fit"),
        metavar="DIR",
        help="folder for codes, model, history and diagnosis (default: %(default)s)",
    )
    add("--components", metavar="N", help="number of codes (default: auto)")
    space = add(
        "--space",
        default="box",
        metavar="NAME",
        help="space of the codes: box, sphere, unbounded or auto (default: %(default)s)",
    )
    suggest(space, ("box", "sphere", "unbounded", "auto"))
    conditional = add(
        "--conditional",
        metavar="NAME",
        help="how positives vary: normal, laplace, gennorm3, vmf or auto (default: vmf on a sphere, "
        "normal elsewhere)",
    )
    suggest(conditional, ("normal", "laplace", "gennorm3", "vmf", "auto"))
    add(
        "--lag",
        metavar="N",
        help="steps in time between the members of a pair: 1, a range such as 1-5, or auto (default: 1)",
    )
    add(
        "--window",
        default="auto",
        metavar="N",
        help="length of the moving average over rows, or auto (default: %(default)s)",
    )
    add(
        "--groups",
        metavar="NAME",
        help="column, array or other file with the sequence that each row belongs to",
    )
    add(
        "--index",
        metavar="NAME",
        help="column with the time of each row, as numbers or dates such as 2024-02-29 12:00; no pair "
        "spans a gap (default: an index column written by pandas)",
    )
    add("--columns", metavar="A,B", help="columns to use (default: all others)")
    add("--drop", metavar="A,B", help="columns to leave out")
    missing = add(
        "--missing",
        default="raise",
        metavar="WHAT",
        help="raise an error if cells are empty or NaN, or drop such rows, which no pair spans (default: "
        "%(default)s)",
    )
    suggest(missing, ("raise", "drop"))
    add(
        "--positives",
        metavar="NAME",
        help="array or other file with the positive of each row",
    )
    add("--array", metavar="NAME", help="array of observations, of several in a file (default: x)")
    add("--precision", action="store_true", help="learn how much each factor varies within pairs")
    add(
        "--marginal",
        metavar="NAME",
        help="uniform, or any to learn the density of the factors as well (default: uniform)",
    )
    add(
        "--steps",
        type=int,
        metavar="N",
        help="maximum number of training steps; training stops earlier if held-out evidence no longer "
        "grows",
    )
    chosen = "(default: chosen by held-out evidence)"
    add("--batch", type=whole, metavar="N", help=f"batch size {chosen}")
    add("--lr", type=float, metavar="X", help=f"learning rate {chosen}")
    add("--device", default="cpu", help="device to train on, such as cuda (default: %(default)s)")
    add("--plot", action="store_true", help=f"plot the codes over time ({PICTURE})")
    add("--tensorboard", action="store_true", help="write the history for TensorBoard")
    add(
        "--restarts",
        type=whole,
        default=2,
        metavar="N",
        help="number of fits that the diagnosis compares, including the first (default: %(default)s)",
    )
    add("--no-diagnosis", action="store_true", help="skip the second fit and the diagnosis")
    add_seed(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the command, and print where the results are."""
    from identica.diagnosis import MOST_FITS
    from identica.estimator import ContrastiveICA
    from identica.estimator import files as own_data
    from identica.runs import folder as runs

    lag, seed, restarts = (
        _lag(args.lag),
        _seed(args.seed),
        count("restarts", args.restarts, 2, MOST_FITS),
    )
    parameters: dict[str, Any] = {
        "n_components": _number("components", args.components),
        "window": _number("window", args.window),
        "space": args.space,
        "conditional": args.conditional,
        "learn_precision": args.precision,
        "steps": args.steps,
        "random_state": seed,
    }
    usual = {"batch": None, "lr": None, "missing": "raise", "marginal": None}
    parameters |= _given(args, usual)
    others = {"columns": None, "drop": None, "index": None, "restarts": 2}
    settings = {
        "array": args.array,
        "lag": lag,
        "diagnosis": not args.no_diagnosis,
        "estimator": parameters,
    }
    before = os.path.exists(args.out)  # not Path.exists, which may raise
    # before reading, which may take a while
    runs.refuse_another(args.out, settings | {name: getattr(args, name) for name in others}, others)
    names = ("array", "positives", "groups", "columns", "drop", "index", "missing")
    found = own_data.read(args.data, **{name: getattr(args, name) for name in names})
    # a file is identified by its content, a column or array by its name
    inputs = {name: getattr(args, name) for name in ("data", "positives", "groups")}
    inputs |= {name: own_data.fingerprint(path) for name, path in found.files.items()}
    config = {"kind": "fit", "seed": seed, **inputs, **settings, **_given(args, others)}
    runs.open_run(args.out, config)
    parts = args.out / runs.PARTS
    ica = ContrastiveICA(
        **parameters,
        device=args.device,
        progress=not args.quiet,
        folder=parts,
        tensorboard=args.tensorboard,
    )

    def work(folder: Path) -> dict[str, Any]:
        wanted = 0 if args.no_diagnosis else restarts
        return fit_into(folder, ica, found, lag, restarts=wanted, words=args.words)

    for note in found.notes:
        say(note)
    try:
        restore(args.out, config, found)
        result = runs.execute(args.out, config, work)
    except InputError:
        if not runs.begun(args.out):  # leave room for another try
            (args.out / runs.CONFIG).unlink(missing_ok=True)
            if not before:
                (args.out / runs.LOCK).unlink(missing_ok=True)
                with suppress(OSError):  # not empty
                    args.out.rmdir()
        raise
    print(
        f"codes: {args.out / CODES} ({' × '.join(map(str, result['shape']))}), {args.out / TABLE}"
    )
    if args.plot:
        draw_codes(args.out / PICTURE, _codes_in(args.out), found.groups, found.stamps)
        print(f"picture: {args.out / PICTURE}")
    print(f"model: {args.out / ESTIMATOR}, for ContrastiveICA.load")
    print(f"history: {args.out / runs.METRICS}")
    if "selection" in result:
        print(result["selection"]["words"])
    for name, table in result["choices"].items():
        top = max(bits for _, bits in table)
        evidence = ", ".join(
            f"{value}: {bits / top if top > 0 else 1:.0%}" for value, bits in table
        )
        chosen = in_shell(f"{name}={result[name]}", args.words)
        print(f"chosen: {chosen}, {CHOSEN[name]} ({evidence})")
    print(
        f"held-out score: {result['bits']:.3f} bits (highest possible: {result['possible_bits']:.3f}; "
        f"worst of {len(result['starts'])} starts: {result['worst']:.3f})"
    )
    if result["warning"]:
        print(f"warning: {in_shell(result['warning'], args.words)}")
    if "diagnosis" in result:
        print(
            f"diagnosis: {args.out / PAGE} (with other pairs held out, so with another score)"
            if result["verdict"]
            else "diagnosis: none"
        )
        print(in_shell(result["diagnosis"], args.words))
    return 0


def fit_into(
    folder: Path,
    ica: ContrastiveICA,
    data: Observations,
    lag: Any,
    *,
    restarts: int,
    words: dict[str, str],
) -> dict[str, Any]:
    """Fit an estimator to the content of a file, and write codes, model and diagnosis (of `restarts` fits, or
    none); return the content of result.json."""
    import warnings

    from identica._io import make_folder
    from identica.errors import TrustWarning
    from identica.runs.folder import PARTS
    from identica.training import History, write_metrics

    where = {"X_pos": data.positives, "groups": data.groups, "lag": lag}
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", TrustWarning)
        ica.fit(data.x, **where)
    ica.save(folder / ESTIMATOR)
    write_metrics(folder, History(ica.history_))
    for events in (folder / PARTS).glob("**/tensorboard/*"):  # parts go once all is done
        start = events.parents[1].name
        events.replace(make_folder("out", folder / "tensorboard" / start) / events.name)
    codes = ica.transform(data.x, groups=data.groups)
    write_codes(folder, codes, data.stamps)
    bits, possible = ica.bits_, ica.starts_[0]["possible_bits"]
    result = {
        "scores": {"share": min(1.0, max(0.0, bits / possible))},
        "bits": bits,
        "possible_bits": possible,
        "worst": min(start["bits"] for start in ica.starts_),
        "warning": next((str(w.message) for w in said if w.category is TrustWarning), None),
        "choices": {name: list(table.items()) for name, table in ica.evidence_.items()},
        "window": ica.window_,
        "lag": ica.lag_,
        "n_components": codes.shape[-1],
        "shape": list(codes.shape),
        "seconds": ica.history_[-1]["seconds"],
        "pairs": int(ica.history_[-1]["step"]) * ica.training_.batch,
        "starts": ica.starts_,
        "seed": ica.random_state,
    }
    if hasattr(ica, "selection_"):
        result["selection"] = {"words": str(ica.selection_), "table": ica.selection_.table}
    if restarts:
        result.update(diagnose_into(folder, ica, data.x, {**where, "restarts": restarts}, words))
    return result


def restore(folder: Path, config: dict[str, Any], data: Observations) -> None:
    """Write the codes of a finished fit again if they were deleted; set its result aside if anything
    else was, so that the fit is done again."""
    from identica.estimator import ContrastiveICA
    from identica.runs import folder as runs

    def missing(*names: str) -> list[str]:
        return [name for name in names if not (folder / name).exists()]

    with runs.claim(folder):
        try:
            result = runs.read_result(folder, config)
        except InputError:  # `execute` starts over
            return
        if result is None:
            return
        try:
            judged = (PAGE, DIAGNOSIS) if result.get("verdict") else ()
            if gone := missing(ESTIMATOR, runs.METRICS, *judged):
                raise InputError(f"{', '.join(gone)} of a finished fit missing")
            if missing(CODES, TABLE):
                ica = ContrastiveICA.load(folder / ESTIMATOR)
                write_codes(folder, ica.transform(data.x, groups=data.groups), data.stamps)
        except InputError as error:
            aside = runs.set_aside(folder / runs.RESULT)
            runs.note(folder, f"{error}; {aside.name} set aside, and the fit is done again")


def _codes_in(folder: Path) -> Any:
    from identica.datasets.reading import map_npy

    return map_npy(folder / CODES)


def _given(args: argparse.Namespace, usual: dict[str, Any]) -> dict[str, Any]:
    """Options that differ from their defaults; without the others, older configurations stay valid."""
    return {
        name: getattr(args, name) for name, value in usual.items() if getattr(args, name) != value
    }


def diagnose_into(
    folder: Path, ica: ContrastiveICA, x: Any, where: dict[str, Any], words: dict[str, str]
) -> dict[str, Any]:
    """Write the diagnosis of a fitted estimator as a page and as JSON; its verdict and its text."""
    from dataclasses import replace

    from identica._io import replacing
    from identica.diagnosis.page import write_diagnosis_page

    try:
        found = ica.diagnose(x, **where)
    except InputError as error:  # data that suffice for a fit may be too few for a diagnosis
        return {"verdict": None, "diagnosis": str(error)}
    findings = [replace(f, advice=in_shell(f.advice, words)) for f in found.findings]
    found = replace(found, findings=findings)
    write_diagnosis_page(folder / PAGE, found)
    with replacing(folder / DIAGNOSIS) as temporary:
        temporary.write_text(found.to_json(), encoding="utf-8")
    return {"verdict": found.verdict, "diagnosis": str(found)}


def _number(name: str, text: str | None) -> int | str | None:
    """A whole number or auto."""
    if text is None or text == "auto":
        return text
    if not re.fullmatch(r"\d{1,9}", text):
        raise InputError(f"{name} must be a whole number or auto, got {text!r}")
    return count(name, int(text))


def _lag(text: str | None) -> int | tuple[int, int] | str | None:
    if text is None or text == "auto":
        return text
    found = re.fullmatch(r"(\d{1,18})(?:-(\d{1,18}))?", text)
    if not found:
        raise InputError(
            f"lag must be a number such as 1, a range such as 1-5, or auto, got {text!r}"
        )
    low, high = int(found[1]), found[2]
    return low if high is None else (low, int(high))


def _seed(seed: int) -> int:
    if count("seed", seed, at_least=0) >= 2**63:
        raise InputError(f"seed must be below 2**63, got {seed}")
    return seed
