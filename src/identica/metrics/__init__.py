"""How well codes recover the true factors: one metric per file, on plain N×d and N×k arrays."""

from identica.metrics.agreement import agreement
from identica.metrics.beta_vae import beta_vae
from identica.metrics.dci import DCIResult, dci
from identica.metrics.factor_vae import factor_vae
from identica.metrics.infomec import InfoMECResult, infomec
from identica.metrics.linear_r2 import linear_r2, linear_r2_per_factor
from identica.metrics.mcc import Match, correlation_matrix, match, mcc
from identica.metrics.mig import mig
from identica.metrics.modularity import modularity
from identica.metrics.procrustes import ProcrustesResult, procrustes
from identica.metrics.sampling import Sampler, sampler_from
from identica.metrics.sap import sap

__all__ = [
    "DCIResult",
    "InfoMECResult",
    "Match",
    "ProcrustesResult",
    "Sampler",
    "agreement",
    "beta_vae",
    "correlation_matrix",
    "dci",
    "factor_vae",
    "infomec",
    "linear_r2",
    "linear_r2_per_factor",
    "match",
    "mcc",
    "mig",
    "modularity",
    "procrustes",
    "sampler_from",
    "sap",
]
