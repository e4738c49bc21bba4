"""Conversion of a fitted estimator to plain data and tensors, and back with every value validated."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from identica import checkpoints
from identica._serialize import from_plain, to_plain
from identica._validate import count, positive
from identica.encoders import ContrastiveModel
from identica.errors import DamagedError, InputError
from identica.estimator import fit as fitting
from identica.estimator.inputs import Sessions
from identica.estimator.networks import Encoder, Network, blank_encoder, describe, given_network
from identica.estimator.pairs import ArrayPairs, PairSampler
from identica.estimator.selection import Selection
from identica.families import Family
from identica.losses import InfoNCE
from identica.potential import Potential
from identica.runs import folder as runs
from identica.spaces import Space
from identica.training import Training
from identica.training.identity import structure

if TYPE_CHECKING:
    from identica.estimator import ContrastiveICA

T = TypeVar("T", bound="ContrastiveICA")

# parameters of the session rather than of the model
LEFT_OUT = {"network": None, "device": "cpu", "folder": None, "tensorboard": False}


def state_of(ica: ContrastiveICA) -> dict[str, Any]:
    """The state of a fitted estimator, from which `restore` makes it again."""
    parameters = {name: to_plain(v) for name, v in ica.get_params().items() if name not in LEFT_OUT}
    if not isinstance(ica.random_state, (int, np.integer)):
        parameters["random_state"] = None
    fitted: dict[str, Any] = {
        "space": to_plain(ica.model_.space),
        "conditional": to_plain(ica.model_.conditional),
        "own_network": ica.network is not None,
        "shape": list(ica._shape),
        "lag": to_plain(ica.lag_),
        "temperature": ica.temperature_,
        "window": ica.window_,
        "counts": ica.counts_,
        "ring": ica.ring_.tolist(),
        "encoder": describe(_of("the encoder", ica.model_.encoder, Encoder)),
        "potential": ica.model_.potential is not None,
        "history": ica.history_,
        "bits": ica.bits_,
        "training": dict(vars(ica.training_)),
        "choices": {name: list(table.items()) for name, table in ica.evidence_.items()},
        "independent_pairs": ica.independent_pairs_,
        "starts": ica.starts_,
    }
    if ica._sessions is not None:
        means, scales, counts = ica._sessions
        both = ([row.tolist() for row in rows] for rows in (means, scales))
        fitted["sessions"] = [*both, counts]
    if hasattr(ica, "feature_names_in_"):
        fitted["feature_names_in_"] = list(ica.feature_names_in_)
    if hasattr(ica, "selection_"):
        chosen = ica.selection_
        fitted["selection_"] = {
            "space": to_plain(chosen.space),
            "conditional": to_plain(chosen.conditional),
            "table": list(chosen.table),
        }
    weights = {"model": ica.model_.state_dict(), "loss": ica._fit.loss.state_dict()}
    return {"estimator": parameters, "fitted": fitted, "weights": weights}


def place(ica: ContrastiveICA, folder: Path, sample: PairSampler, seed: int) -> Path:
    """Open the run folder of this fit, which no other fit shares, and write its config.json.

    Anything unknown before training (pairs drawn by a function, weights of a network that a function
    makes) is compared with the checkpoint by `train`.
    """
    ignored = {*LEFT_OUT, "progress", "random_state"}
    parameters, network = ica.get_params(deep=False), ica.network
    given = network if isinstance(network, nn.Module) else None
    config = {
        "kind": "fit",
        "seed": seed,
        "parameters": {k: repr(v) for k, v in parameters.items() if k not in ignored},
        "device": torch.device(ica.device).type,
        "network": structure(given) if given else network is not None,
        "weights": checkpoints.checksum(given.state_dict()) if given else None,
        "data": sample.fingerprint() if isinstance(sample, ArrayPairs) else None,
    }
    return runs.open_run(folder / runs.run_name(config), config)


def restore(kind: type[T], state: Any, path: Path, network: Network) -> T:
    """The inverse of `state_of`, for a state read from `path`."""
    if not isinstance(state, dict) or state.keys() != {"estimator", "fitted", "weights"}:
        raise InputError(f"{path} does not hold an estimator")
    try:
        own = bool(state["fitted"]["own_network"])
        made, fit = _restore(kind, state, None if not own else nn.Identity())
    except Exception as error:  # content of the wrong type, size or depth may raise anything
        raise DamagedError(f"{path} holds an estimator that is invalid: {error}") from None
    if own != (network is not None):
        raise InputError(
            "network must be given, as the estimator was fitted with one"
            if network is None
            else "network must not be given, as the estimator was fitted without one"
        )
    if network is not None:
        made.network = network
        encoder = fit.model.encoder
        encoder.network = given_network(network, made._shape, fit.model.space.dim, seed=0)
    try:
        fit.model.load_state_dict(state["weights"]["model"])
        fit.loss.load_state_dict(state["weights"]["loss"])
    except (RuntimeError, AttributeError, TypeError) as error:
        raise InputError(f"network does not fit the weights in {path}: {error}") from None
    fit.model.eval()
    made._keep(fit)
    return made


def _restore(
    kind: type[T], state: dict[str, Any], network: nn.Module | None
) -> tuple[T, fitting.Fit]:
    """Everything but the weights."""
    fitted, weights = state["fitted"], state["weights"]
    parameters = {name: from_plain(value) for name, value in state["estimator"].items()}
    made = kind(**{"marginal": "uniform", **parameters, **LEFT_OUT})  # older files have no marginal
    space = _of("space", from_plain(fitted["space"]), Space)
    conditional = _of("conditional", from_plain(fitted["conditional"]), Family)
    made._shape, made.lag_ = tuple(fitted["shape"]), from_plain(fitted["lag"])
    made.n_features_in_ = math.prod(made._shape)
    made.window_, made.counts_ = count("window", fitted["window"]), bool(fitted["counts"])
    made.ring_ = _ring(fitted.get("ring", [1.0]))  # older files have none
    made._sessions = None
    if "sessions" in fitted:
        means, scales, counts = fitted["sessions"]
        means, scales = ([np.array(row, float) for row in rows] for rows in (means, scales))
        made._sessions = Sessions(means, scales, bool(counts))
    made.independent_pairs_ = float(fitted["independent_pairs"])
    made.evidence_ = {
        str(name): {int(value): float(bits) for value, bits in table}
        for name, table in fitted["choices"].items()
    }
    if "feature_names_in_" in fitted:
        names = [_of("a feature name", name, str) for name in fitted["feature_names_in_"]]
        if len(names) != made.n_features_in_:
            raise ValueError(f"{len(names)} feature names for {made.n_features_in_} features")
        made.feature_names_in_ = np.array(names, dtype=object)
    if "selection_" in fitted:
        made.selection_ = Selection(
            _of("space", from_plain(fitted["selection_"]["space"]), Space),
            _of("conditional", from_plain(fitted["selection_"]["conditional"]), Family),
            _records(fitted["selection_"]["table"]),
        )

    def modules() -> dict[str, Any]:
        encoder = blank_encoder(fitted["encoder"], made._shape, space.dim, network)
        potential = Potential(space.dim) if fitted.get("potential") else None
        model = ContrastiveModel(space, conditional, encoder, potential=potential)
        loss = InfoNCE(conditional, learn_precision=space.dim if made.learn_precision else None)
        return {"model": model, "loss": loss}

    with torch.device("meta"):  # takes no memory, whatever sizes the file claims
        for name, module in modules().items():
            for part, blank in module.state_dict().items():
                if weights[name][part].shape != blank.shape:
                    raise ValueError(f"{part} has shape {tuple(weights[name][part].shape)}")
    temperature = positive("temperature", fitted["temperature"])
    return made, fitting.Fit(
        **modules(),
        temperature=temperature,
        history=_records(fitted["history"]),
        bits=float(fitted["bits"]),
        starts=_records(fitted["starts"]),
        training=Training(**fitted["training"]),
    )


def _ring(value: Any) -> NDArray[np.float64]:
    ring = np.array(value, float)
    if ring.ndim != 1 or len(ring) % 2 == 0 or not np.isfinite(ring).all():
        raise ValueError(f"ring has {ring.shape} coefficients")
    if len(ring) > 1 and ring[0] <= 0:
        raise ValueError(f"ring has the mean {ring[0]}")
    return ring


def _of(name: str, value: Any, kind: Any) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f"{name} is a {type(value).__name__}")
    return value


def _records(value: Any) -> list[dict[str, Any]]:
    return [_of("a record", record, dict) for record in _of("a table", value, list)]
