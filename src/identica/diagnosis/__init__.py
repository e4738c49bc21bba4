"""Diagnosis of fitted codes from held-out pairs and several fits, without the true factors."""

from __future__ import annotations

from identica.diagnosis.codes import Codes
from identica.diagnosis.diagnosis import FEWEST, MOST_FITS, Diagnosis, codes_from, diagnose
from identica.diagnosis.verdict import Finding

__all__ = ["FEWEST", "MOST_FITS", "Codes", "Diagnosis", "Finding", "codes_from", "diagnose"]
