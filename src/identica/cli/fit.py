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
from identica.errors import InputError

if TYPE_CHECKING:
    from identica.estimator import ContrastiveICA
    from identica.estimator.files import Observations

ESTIMATOR, PAGE, DIAGNOSIS = "estimator.safetensors", "diagnosis.html", "diagnosis.json"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.description = (
        "Fit an encoder to pairs of observations and write their codes. Rows of one sequence are "
        "paired with later ones, unless positives are given. Then fit once more, from another start, and "
        "say how far the codes can be trusted. A killed fit resumes when called again."
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
    add("--components", metavar="N", help="number of codes (default: auto, to choose)")
    space = add(
        "--space",
        default="box",
        help="box, sphere, unbounded, or auto to choose (default: %(default)s)",
    )
    suggest(space, ("box", "sphere", "unbounded", "auto"))
    conditional = add(
        "--conditional",
        help="normal, laplace, gennorm3, vmf, or auto to choose (default: vmf on a sphere, "
        "else normal)",
    )
    suggest(conditional, ("normal", "laplace", "gennorm3", "vmf", "auto"))
    add(
        "--lag",
        metavar="N",
        help="steps between the members of a pair: 1, or 1-5, or auto to choose (default: 1)",
    )
    add(
        "--window",
        default="auto",
        metavar="N",
        help="rows around each that are averaged, or auto to choose (default: %(default)s)",
    )
    add(
        "--groups",
        metavar="NAME",
        help="column of the table, array or other file that tells sequences apart",
    )
    add(
        "--index",
        metavar="NAME",
        help="column of the table with the time of each row; pairs never span a gap (default: the one "
        "that was written as an index)",
    )
    add("--columns", metavar="A,B", help="columns of the table to use (default: all others)")
    add("--drop", metavar="A,B", help="columns of the table not to use")
    missing = add(
        "--missing",
        default="raise",
        help="drop leaves rows with empty cells or NaN out, and no pair spans one (default: %(default)s "
        "an error)",
    )
    suggest(missing, ("raise", "drop"))
    add(
        "--positives",
        metavar="NAME",
        help="array or other file with the positive of each observation",
    )
    add("--array", metavar="NAME", help="observations in a file of several arrays (default: x)")
    add("--precision", action="store_true", help="learn a precision for each factor")
    add(
        "--marginal",
        help="any, to learn the density of the factors too, or uniform (default: uniform)",
    )
    add(
        "--steps",
        type=int,
        metavar="N",
        help="most steps of training, which ends when held-out evidence no longer grows",
    )
    chosen = "(default: held-out evidence decides)"
    add("--batch", type=whole, metavar="N", help=f"pairs in a batch {chosen}")
    add("--lr", type=float, metavar="X", help=f"learning rate {chosen}")
    add("--device", default="cpu", help="where to train, such as cuda (default: %(default)s)")
    add("--plot", action="store_true", help=f"draw the codes over time as well ({PICTURE})")
    add("--tensorboard", action="store_true", help="write the history for TensorBoard as well")
    add(
        "--restarts",
        type=whole,
        default=2,
        metavar="N",
        help="models that the diagnosis compares, with the first (default: %(default)s)",
    )
    add("--no-diagnosis", action="store_true", help="do not fit once more to judge the codes")
    add_seed(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Do the command, and say where things are."""
    from identica.estimator import ContrastiveICA
    from identica.estimator import files as own_data
    from identica.runs import folder as runs

    lag, seed, restarts = _lag(args.lag), _seed(args.seed), count("restarts", args.restarts, 2)
    names = ("array", "positives", "groups", "columns", "drop", "index", "missing")
    found = own_data.read(args.data, **{name: getattr(args, name) for name in names})
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
    # an input is known by its content where it is a file, else by its name in the data
    inputs = {name: getattr(args, name) for name in ("data", "positives", "groups")}
    inputs |= {name: own_data.fingerprint(path) for name, path in found.files.items()}
    config = {
        "kind": "fit",
        "seed": seed,
        **inputs,
        "array": args.array,
        "lag": lag,
        "diagnosis": not args.no_diagnosis,
        "estimator": parameters,
        **_given(args, {"columns": None, "drop": None, "index": None, "restarts": 2}),
    }
    before = os.path.exists(args.out)  # not Path.exists, which may raise
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
        return fit_into(folder, ica, found, lag, restarts=0 if args.no_diagnosis else restarts)

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
        draw_codes(args.out / PICTURE, _codes_in(args.out), found.groups)
        print(f"picture: {args.out / PICTURE}")
    print(f"model: {args.out / ESTIMATOR}, for ContrastiveICA.load")
    print(f"history: {args.out / runs.METRICS}")
    if "selection" in result:
        print(result["selection"]["words"])
    for name, table in result["choices"].items():
        evidence = ", ".join(f"{value}: {bits:.2f}" for value, bits in table)
        print(f"{name}: {result[name]} (held-out bits by {name}: {evidence})")
    print(
        f"held-out score: {result['bits']:.3f} bits of {result['possible_bits']:.3f} possible, "
        f"of starts that reached {result['worst']:.3f} and more"
    )
    if result["warning"]:
        print(f"warning: {result['warning']}")
    if "diagnosis" in result:
        print(f"diagnosis: {args.out / PAGE}" if result["verdict"] else "diagnosis: none")
        print(result["diagnosis"])
    return 0


def fit_into(
    folder: Path, ica: ContrastiveICA, data: Observations, lag: Any, *, restarts: int = 2
) -> dict[str, Any]:
    """Fit an estimator to what a file held, and write codes, model and diagnosis (of so many restarts, or
    none); what result.json says."""
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
    write_codes(folder, codes)
    bits, possible = ica.bits_, ica.starts_[0]["possible_bits"]
    result = {
        "scores": {"share": min(1.0, max(0.0, bits / possible))},
        "bits": bits,
        "possible_bits": possible,
        "worst": min(start["bits"] for start in ica.starts_),
        "warning": next((str(w.message) for w in said if w.category is TrustWarning), None),
        "choices": {name: list(table.items()) for name, table in ica.choices_.items()},
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
        result.update(diagnose_into(folder, ica, data.x, {**where, "restarts": restarts}))
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
                write_codes(
                    folder,
                    ContrastiveICA.load(folder / ESTIMATOR).transform(data.x, groups=data.groups),
                )
        except InputError as error:
            aside = runs.set_aside(folder / runs.RESULT)
            runs.note(folder, f"{error}; {aside.name} set aside, and the fit is done again")


def _codes_in(folder: Path) -> Any:
    from identica.datasets.reading import map_npy

    return map_npy(folder / CODES)


def _given(args: argparse.Namespace, usual: dict[str, Any]) -> dict[str, Any]:
    """Options that are not as usual: a fit without them has the same folder as before there were any."""
    return {
        name: getattr(args, name) for name, value in usual.items() if getattr(args, name) != value
    }


def diagnose_into(
    folder: Path, ica: ContrastiveICA, x: Any, where: dict[str, Any]
) -> dict[str, Any]:
    """Write the diagnosis of a fitted estimator as a page and as JSON; its verdict and its words."""
    from identica._io import replacing
    from identica.diagnosis.page import write_diagnosis_page

    try:
        found = ica.diagnose(x, **where)
    except InputError as error:  # what is enough for a fit may be too little to judge it
        return {"verdict": None, "diagnosis": str(error)}
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
