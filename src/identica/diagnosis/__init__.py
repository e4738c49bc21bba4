"""Can the codes be trusted? What a fitted model, its restarts and unseen pairs tell without the truth."""

from __future__ import annotations

from identica.diagnosis.diagnosis import (
    Diagnosis,
    codes_from,
    codes_of,
    diagnose,
    diagnose_codes,
    diagnose_fit,
    some_labelled,
)
from identica.diagnosis.verdict import Finding

__all__ = [
    "Diagnosis",
    "Finding",
    "codes_from",
    "codes_of",
    "diagnose",
    "diagnose_codes",
    "diagnose_fit",
    "some_labelled",
]
