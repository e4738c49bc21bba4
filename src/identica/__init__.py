"""Recover the hidden factors behind data by contrastive learning, and know when that is guaranteed.

An assumption is an object, stated once: a family such as `VonMisesFisher(10)` on a space such as
`Sphere(10)` draws the positives of the true process and scores the codes of the model, so sampler,
loss and guarantee all follow from the same few objects.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from identica.encoders import MLP, ContrastiveModel, ConvEncoder
    from identica.errors import InputError
    from identica.estimator import ContrastiveICA
    from identica.families import GeneralizedNormal, Joint, Laplace, Normal, Uniform, VonMisesFisher
    from identica.heads import BoxHead, EuclideanHead, SphereHead
    from identica.losses import AlignUniform, InfoNCE
    from identica.mixing import CouplingFlow, InvertibleMLP
    from identica.potential import Potential
    from identica.process import GenerativeProcess, Pairs
    from identica.spaces import Box, Euclidean, Product, Sphere
    from identica.theory import Guarantee, counterexample, guarantee
    from identica.training import Contrastive, Supervised, Training, train

__version__ = "0.1.0"

# torch takes a second to import: names are loaded when they are first used
_HOME = {
    "InputError": "errors",
    **dict.fromkeys(["Box", "Euclidean", "Product", "Sphere"], "spaces"),
    **dict.fromkeys(
        ["GeneralizedNormal", "Joint", "Laplace", "Normal", "Uniform", "VonMisesFisher"], "families"
    ),
    **dict.fromkeys(["CouplingFlow", "InvertibleMLP"], "mixing"),
    **dict.fromkeys(["GenerativeProcess", "Pairs"], "process"),
    **dict.fromkeys(["MLP", "ContrastiveModel", "ConvEncoder"], "encoders"),
    **dict.fromkeys(["BoxHead", "EuclideanHead", "SphereHead"], "heads"),
    "Potential": "potential",
    "ContrastiveICA": "estimator",
    **dict.fromkeys(["AlignUniform", "InfoNCE"], "losses"),
    **dict.fromkeys(["Guarantee", "counterexample", "guarantee"], "theory"),
    **dict.fromkeys(["Contrastive", "Supervised", "Training", "train"], "training"),
}

__all__ = [
    "AlignUniform",
    "Box",
    "BoxHead",
    "Contrastive",
    "ContrastiveICA",
    "ContrastiveModel",
    "ConvEncoder",
    "CouplingFlow",
    "Euclidean",
    "EuclideanHead",
    "GeneralizedNormal",
    "GenerativeProcess",
    "Guarantee",
    "InfoNCE",
    "InputError",
    "InvertibleMLP",
    "Joint",
    "Laplace",
    "MLP",
    "Normal",
    "Pairs",
    "Potential",
    "Product",
    "Sphere",
    "SphereHead",
    "Supervised",
    "Training",
    "Uniform",
    "VonMisesFisher",
    "counterexample",
    "guarantee",
    "train",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"identica.{_HOME[name]}"), name)
    raise AttributeError(f"module 'identica' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
