"""Contrastive losses: InfoNCE for every family, and alignment and uniformity."""

from identica.losses.align_uniform import AlignUniform
from identica.losses.infonce import InfoNCE

__all__ = ["AlignUniform", "InfoNCE"]
