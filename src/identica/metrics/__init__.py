"""How well codes recover the true factors: one metric per file, on plain N×d and N×k arrays."""

from identica.metrics.agreement import agreement
from identica.metrics.linear_r2 import linear_r2, linear_r2_per_factor
from identica.metrics.mcc import Match, correlation_matrix, match, mcc
from identica.metrics.procrustes import ProcrustesResult, procrustes

__all__ = [
    "Match",
    "ProcrustesResult",
    "agreement",
    "correlation_matrix",
    "linear_r2",
    "linear_r2_per_factor",
    "match",
    "mcc",
    "procrustes",
]
