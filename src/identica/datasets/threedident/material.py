"""The material of teapot and ground: reflectance from a light direction to the camera."""

from __future__ import annotations

import math

from identica.datasets.threedident._compiled import compiled, inlined
from identica.datasets.threedident.vectors import Vector, add, dot, unit

SHEEN_IOR, GLOSS_IOR = 1.4, 1.2  # of the Fresnel factors that mix velvet and gloss in
SHEEN_WIDTH = 0.6  # of the velvet's inverted Gaussian
GLOSS_ALPHA, GLOSS_GREY = 0.35, 0.8  # Beckmann roughness and colour of the gloss


@compiled
def reflect(
    normal: Vector, view: Vector, light: Vector, sheen: float, gloss: float
) -> tuple[float, float]:
    """Reflectance times the cosine of the light: the part in the surface's colour, the grey part.

    mix(mix(diffuse, velvet, `sheen`), Beckmann gloss, `gloss`) with mix(a, b, w) = (1 - w)·a + w·b.
    All directions have unit length and point away from the surface; normal·light > 0.
    """
    cos_light, cos_view = dot(normal, light), dot(normal, view)
    tinted, grey = (1 - sheen) * cos_light / math.pi, 0.0
    if cos_view > 1e-5:
        half = unit(add(view, light))
        cos_half = min(dot(normal, half), 1.0)
        tinted += sheen * velvet(cos_view, cos_light, cos_half, dot(view, half))
        grey = gloss * GLOSS_GREY * beckmann(cos_view, cos_light, cos_half)
    return (1 - gloss) * tinted, grey


@inlined
def fresnel(cosine: float, ior: float) -> float:
    """The share of unpolarised light that a smooth dielectric reflects."""
    c = abs(cosine)
    g2 = ior * ior - 1 + c * c
    if g2 <= 0:
        return 1.0
    g = math.sqrt(g2)
    a = (g - c) / (g + c)
    b = (c * (g + c) - 1) / (c * (g - c) + 1)
    return 0.5 * a * a * (1 + b * b)


@inlined
def velvet(cos_view: float, cos_light: float, cos_half: float, view_half: float) -> float:
    """Inverted-Gaussian microfacets (Ashikhmin, Premože & Shirley 2000): D·G / (4·cos_view)."""
    sin2 = 1 - cos_half * cos_half
    if sin2 < 1e-5:
        return 0.0
    width2 = SHEEN_WIDTH * SHEEN_WIDTH
    d = math.exp(-cos_half * cos_half / (sin2 * width2)) / (math.pi * width2 * sin2 * sin2)
    g = min(1.0, 2 * cos_half / view_half * min(cos_view, cos_light))
    return 0.25 * d * g / cos_view


@inlined
def beckmann(cos_view: float, cos_light: float, cos_half: float) -> float:
    """Beckmann microfacets with Smith's height-correlated shadowing: D·G / (4·cos_view)."""
    alpha2 = GLOSS_ALPHA * GLOSS_ALPHA
    cos2 = cos_half * cos_half
    d = math.exp((1 - 1 / cos2) / alpha2) / (math.pi * alpha2 * cos2 * cos2)
    return 0.25 * d / (cos_view * (1 + smith(cos_view) + smith(cos_light)))


@inlined
def smith(cosine: float) -> float:
    """Smith's Λ for Beckmann slopes, the rational fit of Walter et al. (2007)."""
    slope2 = GLOSS_ALPHA * GLOSS_ALPHA * (1 / (cosine * cosine) - 1)
    if slope2 < 0.39:
        return 0.0
    a = 1 / math.sqrt(slope2)
    return (1 - 1.259 * a + 0.396 * a * a) / (3.535 * a + 2.181 * a * a)
