"""Diagnosis of fitted codes from held-out pairs and several fits, without the true factors."""

from __future__ import annotations

from identica.diagnosis.diagnosis import FEWEST, Codes, Diagnosis, codes_from, diagnose
from identica.diagnosis.verdict import Finding

__all__ = ["FEWEST", "Codes", "Diagnosis", "Finding", "codes_from", "diagnose"]
