"""Calls of the public interface that work, small enough to be repeated hundreds of times."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial
from io import StringIO
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch
from torch.utils.data import Dataset

import identica as ii
from identica import baselines, metrics, resnet, studies, theory
from identica.augment import simclr
from identica.diagnosis import Codes, codes_from, diagnose
from identica.training import Stopping
from validation._data_calls import Base, data_bases


@cache
def factors() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(60, 3))


@cache
def labels() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 3, size=(60, 3))


def process(scale: float = 0.1) -> ii.GenerativeProcess:
    mixing = ii.InvertibleMLP(3, seed=0, draws=10)
    return ii.GenerativeProcess(ii.Box(3), ii.Uniform(), ii.Laplace(scale), mixing)


def model() -> ii.ContrastiveModel:
    return ii.ContrastiveModel(ii.Box(3), ii.Laplace(1.0), ii.MLP(3, 3, hidden=(8,)))


def objective() -> ii.Contrastive:
    return ii.Contrastive(model(), ii.InfoNCE(ii.Laplace(1.0)))


@cache
def fitted(**parameters: Any) -> ii.ContrastiveICA:
    settings: dict[str, Any] = {"steps": 2, "batch": 8, **parameters}
    return ii.ContrastiveICA(2, network=ii.MLP(3, 2, hidden=(8,)), **settings).fit(factors())


def fit(X: Any, X_pos: Any, groups: Any, lag: Any, labels: Any, **parameters: Any) -> Any:
    settings: dict[str, Any] = {"n_components": 2, "steps": 2, "batch": 8, "space": "box"}
    network = ii.MLP(3, 2, hidden=(8,))
    ica = ii.ContrastiveICA(**settings | {"network": network} | parameters)
    return ica.fit(X, X_pos, lag=lag, groups=groups, labels=labels)


def loaded(folder: Path, **arguments: Any) -> Any:
    fitted().save(folder / "saved")
    return ii.ContrastiveICA.load(**arguments)


def counterexample(**arguments: Any) -> Any:
    """A search that settles in a step, on a small batch."""
    small = {"SETTLE": 1, "BATCH": 16, "HELD_OUT": 1}
    with mock.patch.multiple("identica.theory.counterexamples", **small):
        return ii.counterexample(**arguments)


class Items(Dataset[Any]):
    """A data set, all of whose items but the first are the same."""

    def __init__(self, item: Any) -> None:
        self.item = item

    def __len__(self) -> int:
        return 60

    def __getitem__(self, index: int) -> Any:
        return self.item if index else (torch.zeros(3), torch.zeros(3))


def from_sources(source: str, x: Any, x_pos: Any) -> Any:
    """Fit to pairs that a function, an iterable or a data set gives."""
    network, given = ii.MLP(3, 2, hidden=(8,)), (x, x_pos)
    X = {
        "function": lambda size, generator: given,
        "iterable": iter([given] * 3),
        "data set": Items(given),
    }[source]
    return ii.ContrastiveICA(2, steps=2, batch=8, network=network).fit(X)


def reproduce(**arguments: Any) -> studies.Outcome:
    """All of `reproduce` but the runs themselves."""
    with mock.patch("identica.runs.pool.run_all", return_value={}):
        return studies.reproduce(**arguments, stream=StringIO())


def bases(folder: Path) -> Iterator[Base]:
    """One call for every name, and for the methods that people use."""
    z, whole = factors(), labels()
    code = torch.from_numpy(z).float()
    inside = torch.rand(60, 3, generator=torch.Generator().manual_seed(0))
    on_sphere = torch.nn.functional.normalize(code, dim=1)

    yield from data_bases(folder)

    # spaces
    yield Base("Sphere", ii.Sphere, {"dim": 3, "radius": 1.0})
    yield Base("Box", ii.Box, {"dim": 3, "low": 0.0, "high": 1.0})
    yield Base("Euclidean", ii.Euclidean, {"dim": 3})
    yield Base("Product", lambda first: ii.Product(first, ii.Box(2)), {"first": ii.Sphere(3)})
    draw = {"size": 5, "generator": 0, "dtype": torch.float32, "device": "cpu"}
    for space in (ii.Sphere(3), ii.Box(3), ii.Product(ii.Sphere(3), ii.Box(2))):
        yield Base(f"{space}.sample", space.sample, draw)
    for space, member in ((ii.Sphere(3), on_sphere), (ii.Box(3), inside), (ii.Euclidean(3), code)):
        yield Base(f"{space}.contains", space.contains, {"z": member, "tolerance": 1e-4})
        yield Base(f"{space}.project", space.project, {"z": member})
        yield Base(f"{space}.distance", space.distance, {"z": member})

    # families
    yield Base("VonMisesFisher", ii.VonMisesFisher, {"kappa": 1.0})
    yield Base("Normal", ii.Normal, {"std": 1.0})
    yield Base("Laplace", ii.Laplace, {"scale": 1.0})
    yield Base("GeneralizedNormal", ii.GeneralizedNormal, {"shape": 3.0, "scale": 1.0})
    yield Base(
        "Joint", lambda family, n: ii.Joint((family, n)), {"family": ii.Laplace(1.0), "n": 3}
    )
    product = ii.Product(ii.Box(3))
    for family, space, centre in (
        (ii.Uniform(), ii.Box(3), inside),
        (ii.VonMisesFisher(3.0), ii.Sphere(3), on_sphere),
        (ii.Laplace(0.1), ii.Box(3), inside),
        (ii.Joint((ii.Normal(1.0), 3)), product, inside),
    ):
        yield Base(
            f"{family}.sample", family.sample, {"space": space, "centre": centre, "generator": 0}
        )
        yield Base(
            f"{family}.log_prob", family.log_prob, {"space": space, "z": centre, "centre": centre}
        )
        if not isinstance(family, ii.Uniform):
            yield Base(f"{family}.similarity", family.similarity, {"a": code, "b": code})
            yield Base(f"{family}.pairwise", family.pairwise, {"a": code, "b": code})

    # mixing and process
    mlp = {"dim": 3, "seed": 0, "layers": 2, "slope": 0.2, "observed": 4, "draws": 5}
    yield Base("InvertibleMLP", ii.InvertibleMLP, mlp)
    flow = {"dim": 3, "seed": 0, "layers": 2, "hidden": 4, "strength": 0.5, "observed": 4}
    yield Base("CouplingFlow", ii.CouplingFlow, flow)
    for g in (ii.InvertibleMLP(3, seed=0, draws=5), ii.CouplingFlow(3, seed=0)):
        name = type(g).__name__
        yield Base(f"{name}()", g, {"z": code})
        yield Base(f"{name}.inverse", g.inverse, {"x": code})
    whole_process = {
        "space": ii.Box(3),
        "marginal": ii.Uniform(),
        "conditional": ii.Laplace(0.1),
        "mixing": ii.InvertibleMLP(3, seed=0, draws=5),
        "centre": None,
    }
    yield Base("GenerativeProcess", ii.GenerativeProcess, whole_process)
    for method in ("latents", "sample"):
        yield Base(f"GenerativeProcess.{method}", getattr(process(), method), draw)
    yield Base("GenerativeProcess.labelled", process().labelled, {"size": 4, "generator": 0})
    pooled = {"size": 50, "positives": 2, "generator": 0}
    yield Base("GenerativeProcess.pool", process(1.0).pool, pooled)
    yield Base("GenerativeProcess.positives", process().positives, {"z": inside, "generator": 0})

    # models and losses
    yield Base("MLP", ii.MLP, {"n_in": 3, "n_out": 2, "hidden": (4,), "seed": 0})
    yield Base("MLP()", ii.MLP(3, 2), {"x": code})
    yield Base("ConvEncoder", ii.ConvEncoder, {"n_out": 2, "channels": 1, "scale": 1.0, "seed": 0})
    yield Base("ConvEncoder()", ii.ConvEncoder(2), {"x": torch.zeros(1, 64, 64)})
    learnt = {"learnable": True, "lr": 0.1}
    yield Base("SphereHead", ii.SphereHead, {"space": ii.Sphere(3), "soften": 2, **learnt})
    yield Base("BoxHead", ii.BoxHead, {"space": ii.Box(3), "start": 1.0, **learnt})
    for head in (ii.SphereHead(ii.Sphere(3)), ii.BoxHead(ii.Box(3))):
        yield Base(f"{type(head).__name__}()", head, {"codes": code})
    yield Base("EuclideanHead()", ii.EuclideanHead(), {"codes": code})
    parts = {"space": ii.Box(3), "conditional": ii.Laplace(1.0), "encoder": ii.MLP(3, 3)}
    yield Base("ContrastiveModel", ii.ContrastiveModel, {**parts, "head": None, "potential": None})
    yield Base("ContrastiveModel()", model(), {"x": code})
    yield Base(
        "Potential", ii.Potential, {"n": 3, "hidden": (4,), "seed": 0, "lr": 0.1, "curved": True}
    )
    yield Base("Potential()", ii.Potential(3), {"codes": code})
    yield Base(
        "Potential.log_density", ii.Potential(3).log_density, {"codes": code, "reference": code}
    )
    infonce = {
        "conditional": ii.Laplace(1.0),
        "tau": 1.0,
        "self_negative": False,
        "negatives": 2,
        "effective_negatives": 4,
        "negatives_from": "anchors",
        "apart": 1,
        "learn_precision": 3,
        "anneal": (0.5, 10),
    }
    yield Base("InfoNCE", ii.InfoNCE, infonce)
    pulled = {
        "positive_in_denominator": False,
        "symmetric": True,
        "learn_tau": True,
        "pull": (1.0, 0, 5),
    }
    yield Base(
        "InfoNCE, a pull", ii.InfoNCE, {"conditional": ii.VonMisesFisher(1.0), "tau": 1.0, **pulled}
    )
    pair = {"h": code, "h_pos": code}
    yield Base("InfoNCE()", ii.InfoNCE(ii.Laplace(1.0)), {**pair, "potential": None})
    uniform = {"alpha": 0.5, "p": 1.0, "self_negative": False, "anneal": (0.1, 5)}
    yield Base("AlignUniform", ii.AlignUniform, uniform)
    yield Base("AlignUniform()", ii.AlignUniform(), {"h": code, "h_pos": code})

    # training, theory, estimator
    training = {
        "steps": 2,
        "batch": 8,
        "lr": 0.01,
        "optimizer": "adam",
        "warmup": 1,
        "decay": 1.0,
        "score_every": 1,
        "checkpoint_every": 1,
    }
    yield Base("Training", ii.Training, training)
    yield Base(
        "Contrastive", ii.Contrastive, {"model": model(), "loss": ii.InfoNCE(ii.Laplace(1.0))}
    )
    yield Base("Supervised", ii.Supervised, {"model": model()})
    yield Base("Stopping", Stopping, {"score": "bits", "patience": 5, "memory": 0.9})
    yield Base(
        "train",
        ii.train,
        {
            "objective": objective(),
            "sample": process().sample,
            "training": ii.Training(steps=1, batch=8, optimizer="adam"),
            "seed": 0,
            "until": 1,
            "stopping": Stopping("bits", 5),
            "score": lambda: {"bits": 1.0},
            "out": None,
            "progress": None,
            "tick": None,
            "tensorboard": False,
        },
    )
    asked = {"process": process(), "model": model(), "tau": 1.0}
    yield Base("guarantee", ii.guarantee, {**asked, "learn_precision": False, "precisions": None})
    yield Base("counterexample", counterexample, {**asked, "steps": 1, "seed": 0})
    parameters = {
        "n_components": 2,
        "space": "box",
        "conditional": None,
        "network": None,
        "window": 1,
        "missing": "drop",
        "learn_precision": True,
        "marginal": "any",
        "steps": 1,
        "batch": 8,
        "lr": 0.01,
        "optimizer": "adam",
        "device": "cpu",
        "random_state": 0,
        "progress": False,
        "folder": None,
        "tensorboard": False,
    }
    pairs = {"X": z, "X_pos": z, "lag": None, "groups": None, "labels": None}
    yield Base("ContrastiveICA.fit", fit, {**pairs, **parameters})
    sequence = {
        "X": z,
        "X_pos": None,
        "lag": 1,
        "groups": [0] * len(z),
        "labels": [0, 1] * (len(z) // 2),
    }
    yield Base("ContrastiveICA.fit, a sequence", fit, {**sequence, **parameters})
    trial = {**pairs, "X": None, "X_pos": None}
    yield Base("ContrastiveICA.fit, sessions", lambda x: fit(**trial | {"X": [z, x]}), {"x": z})
    for source, x in (("function", code), ("iterable", code), ("data set", code[0])):
        name, call = f"ContrastiveICA.fit, a {source}", partial(from_sources, source)
        yield Base(name, call, {"x": x, "x_pos": x})
    ica = fitted(marginal="any")
    seen = {"X": z, "X_pos": None, "lag": 1, "groups": [0] * len(z), "labels": [0, 1] * 30}
    rows = {"X": z, "groups": [0] * len(z)}
    yield Base("ContrastiveICA.transform", ica.transform, rows)
    yield Base("ContrastiveICA.log_density", ica.log_density, rows)
    yield Base("ContrastiveICA.score", ica.score, {"X": z, "X_pos": z})
    yield Base("ContrastiveICA.score, a sequence", ica.score, seen)
    rows = z.repeat(3, axis=0)
    judged = {"X": rows, "X_pos": None, "lag": 1, "groups": [0] * 180, "labels": [0, 1] * 90}
    judged |= {"restarts": 2, "Z": rows}
    yield Base("ContrastiveICA.diagnose", fitted().diagnose, judged)
    yield Base("ContrastiveICA.guarantee", ica.guarantee, {"process": process()})
    yield Base("ContrastiveICA.save", fitted().save, {"path": folder / "saved"})
    saved = {"path": folder / "saved", "network": ii.MLP(3, 2, hidden=(8,))}
    yield Base("ContrastiveICA.load", partial(loaded, folder), saved)

    # what was recovered
    yield Base("isometry", theory.isometry, {"z": z, "h": z, "random_state": 0})
    uniform_on = {"h": z, "space": ii.Box(3), "random_state": 0}
    yield Base("distance_from_uniform", theory.distance_from_uniform, uniform_on)
    turned = {"dim": 3, "kappa": 1.0, "kappa_model": 2.0, "radius": 1.0}
    yield Base("vmf_cross_entropy", theory.vmf_cross_entropy, turned)

    # metrics
    both = {"z": z, "h": z}
    for metric in (metrics.linear_r2, metrics.linear_r2_per_factor, metrics.procrustes):
        yield Base(metric.__name__, metric, both)
    for metric in (metrics.mcc, metrics.match, metrics.correlation_matrix):
        yield Base(metric.__name__, metric, {**both, "method": "pearson"})
    for metric in (metrics.mig, metrics.modularity):
        yield Base(metric.__name__, metric, {"z": whole, "h": z, "bins": 5, "factors": "auto"})
    for metric in (metrics.sap, metrics.dci, metrics.infomec):
        arguments = {"z": whole, "h": z, "factors": "auto", "random_state": 0}
        yield Base(metric.__name__, metric, arguments)
    yield Base("infomec", metrics.infomec, {"z": whole, "h": z, "codes": "auto"})
    yield Base("agreement", metrics.agreement, {"codes": [z, z], "up_to": "affine"})
    yield Base("sampler_from", metrics.sampler_from, {"z": whole, "h": z, "factors": "auto"})
    points = {"train": 20, "test": 10, "random_state": 0}
    sampler = metrics.sampler_from(whole, z)
    yield Base(
        "beta_vae", metrics.beta_vae, {"sampler": sampler, "n_factors": 3, "pairs": 4, **points}
    )
    yield Base(
        "factor_vae",
        metrics.factor_vae,
        {
            "sampler": sampler,
            "codes": z,
            "n_factors": 3,
            "size": 4,
            "pruned_variance": 0.05,
            **points,
        },
    )

    # diagnosis
    pair = {"h": inside, "h_pos": inside.flip(0)}
    coded = {**pair, "conditional": ii.Laplace(1.0), "temperature": 1.0, "seen": 0.5}
    yield Base("codes_from", codes_from, {**coded, "scaled": None, "bias": None})
    fits = [codes_from(**pair, conditional=ii.Laplace(1.0)) for _ in range(2)]
    assumed = {"space": ii.Box(3), "conditional": ii.Laplace(1.0), "random_state": 0}
    seen = {"observations": (z, z), "times": None, "truth": None}
    options = {"learn_precision": False, "potential": True}
    yield Base("diagnose", diagnose, {"codes": fits, **assumed, **seen, **options})
    for part in Codes._fields:
        call = lambda value, part=part: diagnose(  # noqa: E731
            [fits[0]._replace(**{part: value}), fits[1]], ii.Box(3), ii.Laplace(1.0)
        )
        yield Base(f"diagnose, {part}", call, {"value": getattr(fits[0], part)})

    # networks for images, baselines
    pixels = torch.zeros(2, 3, 32, 32)
    yield Base("ResNet18", resnet.ResNet18, {"n_out": 2, "seed": 0})
    small = {"n_out": 2, "widths": (4, 4), "unsigned": True, "maps": 2, "hidden": 4, "blocks": 1}
    small |= {"channels": 3, "pool": 1, "scale": 255.0, "seed": 0}
    yield Base("SmallResNet", resnet.SmallResNet, small)
    yield Base("SmallResNet()", resnet.SmallResNet(2, widths=(4, 4)), {"x": pixels})
    yield Base("simclr", simclr, {"images": pixels, "generator": 0})
    size = {"n": 2, "beta": 1.0, "channels": 1, "scale": 1.0, "network": "conv", "seed": 0}
    slow = {**size, "gamma": 10.0, "rate": 6.0, "entropy": 0.5}
    yield Base("AdaGVAE", baselines.AdaGVAE, size)
    yield Base("SlowVAE", baselines.SlowVAE, slow)

    # studies
    yield Base("studies.load", studies.load, {"study": "icml-table1"})
    yield Base("studies.find", studies.find, {"study": "icml-table1"})
    done = folder / "done"
    reproduce(study="theorem1", rows=[1], seeds=[0], workers=1, out=done)
    yield Base("studies.report", studies.report, {"folder": done, "study": None, "force": False})
    yield Base(
        "studies.reproduce",
        reproduce,
        {
            "study": "theorem1",
            "rows": [1],
            "seeds": [0],
            "preset": "fast",
            "workers": 1,
            "engine": "local",
            "address": None,
            "out": folder,
        },
    )
