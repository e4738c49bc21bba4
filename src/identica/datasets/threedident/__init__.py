"""3DIdent: a teapot whose position, rotation and colours are the latents, rendered by a ray caster."""

from identica.datasets.threedident.raycaster import render
from identica.datasets.threedident.scene import FACTORS, latents, place

__all__ = ["FACTORS", "latents", "place", "render"]
