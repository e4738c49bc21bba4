"""Contrastive learning on your own data, the scikit-learn way."""

from __future__ import annotations

from identica.estimator.contrastive_ica import ContrastiveICA

__all__ = ["ContrastiveICA"]
