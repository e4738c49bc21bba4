import numpy as np
import pytest

from identica.datasets.threedident.material import beckmann, fresnel, reflect, velvet

N = (0.0, 0.0, 1.0)


def hemisphere(n=200):
    """Unit directions over the hemisphere, and the solid angle of each."""
    u, phi = np.meshgrid((np.arange(n) + 0.5) / n, 2 * np.pi * (np.arange(n) + 0.5) / n)
    z = u.ravel()
    r = np.sqrt(1 - z**2)
    return np.stack([r * np.cos(phi.ravel()), r * np.sin(phi.ravel()), z], 1), 2 * np.pi / z.size


@pytest.mark.parametrize("ior", [1.2, 1.4, 1 / 1.4])
def test_fresnel_follows_from_snells_law(ior):
    for cosine in (1.0, 0.9, 0.75, 0.3, 0.05):
        sine = np.sqrt(1 - cosine**2) / ior
        if sine >= 1:
            assert fresnel(cosine, ior) == 1
            continue
        inner = np.sqrt(1 - sine**2)
        across = (cosine - ior * inner) / (cosine + ior * inner)
        along = (ior * cosine - inner) / (ior * cosine + inner)
        assert fresnel(-cosine, ior) == pytest.approx((across**2 + along**2) / 2)


@pytest.mark.parametrize("cos_view", [1.0, 0.7, 0.4])
def test_the_gloss_reflects_nearly_everything(cos_view):
    view = np.array([np.sqrt(1 - cos_view**2), 0, cos_view])
    lights, weight = hemisphere()
    half = lights + view
    half /= np.linalg.norm(half, axis=1, keepdims=True)
    total = weight * sum(
        beckmann(cos_view, z, h) for z, h in zip(lights[:, 2], half[:, 2], strict=True)
    )
    # A single bounce loses a little where facets hide each other.
    assert 0.89 < total < 1


def test_microfacets_are_reciprocal():
    rng = np.random.default_rng(0)
    for cos_view, cos_light, cos_half in rng.uniform(0.2, 0.95, (20, 3)):
        there = beckmann(cos_view, cos_light, cos_half) / cos_light
        assert there == pytest.approx(beckmann(cos_light, cos_view, cos_half) / cos_view)
        there = velvet(cos_view, cos_light, cos_half, 0.8) / cos_light
        assert there == pytest.approx(velvet(cos_light, cos_view, cos_half, 0.8) / cos_view)


def test_velvet_shines_against_the_light():
    """Seen at right angles to the light, unlike gloss, it is brightest towards the rim."""
    values = [velvet(c, c, c, 1.0) for c in (0.9, 0.7, 0.5)]
    assert values == sorted(values)


def test_mixing_weights():
    view = light = (0.0, 0.6, 0.8)
    tinted, grey = reflect(N, view, light, 0.0, 0.0)
    assert tinted == pytest.approx(0.8 / np.pi)
    assert grey == 0
    tinted, grey = reflect(N, view, light, 0.25, 0.5)
    half = 0.8
    assert tinted == pytest.approx(0.5 * (0.75 * 0.8 / np.pi + 0.25 * velvet(0.8, 0.8, half, 1.0)))
    assert grey == pytest.approx(0.5 * 0.8 * beckmann(0.8, 0.8, half))
    # Where a smoothed normal turns away from the camera, only the diffuse part is left.
    tinted, grey = reflect(N, (0.0, 1.0, -0.01), light, 0.25, 0.5)
    assert tinted == pytest.approx(0.5 * 0.75 * 0.8 / np.pi)
    assert grey == 0
