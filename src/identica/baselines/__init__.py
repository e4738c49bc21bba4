"""Baselines for contrastive learning: variational autoencoders of images."""

from identica.baselines.ada_gvae import AdaGVAE
from identica.baselines.beta_vae import BetaVAE
from identica.baselines.slow_vae import SlowVAE
from identica.baselines.vae import NETWORKS, VAE

__all__ = ["NETWORKS", "VAE", "AdaGVAE", "BetaVAE", "SlowVAE"]
