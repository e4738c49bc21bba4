"""Can the codes be trusted? What codes of held-out pairs, by several models, show without the truth."""

from __future__ import annotations

from identica.diagnosis.diagnosis import FEWEST, Codes, Diagnosis, codes_from, diagnose
from identica.diagnosis.verdict import Finding

__all__ = ["FEWEST", "Codes", "Diagnosis", "Finding", "codes_from", "diagnose"]
