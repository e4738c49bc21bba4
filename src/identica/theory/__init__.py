"""Guarantees of the theory and their limits: theorems, measures and counterexamples."""

from identica.theory.counterexamples import Counterexample, counterexample
from identica.theory.measures import distance_from_uniform, isometry, vmf_cross_entropy
from identica.theory.promise import Change, Guarantee, guarantee

__all__ = [
    "Change",
    "Counterexample",
    "Guarantee",
    "counterexample",
    "distance_from_uniform",
    "guarantee",
    "isometry",
    "vmf_cross_entropy",
]
