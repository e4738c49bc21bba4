import pytest
import torch

from identica import Box, Euclidean, Laplace, Normal, Sphere, VonMisesFisher, recipes
from identica.recipes import for_easy_pairs, for_images, for_network, for_observations

SPACES = [Box(2), Euclidean(2), Sphere(2, radius=3.0)]


def every(space, family, **options):
    return [
        *for_observations(space, family, 1000, **options),
        *for_observations(space, family, 100_000, **options),
        *for_network(space, family, wide=False, **options),
        *for_images(space, family, **options),
        for_easy_pairs(space, family, **options),
    ]


@pytest.mark.parametrize("scale", [0.1, 10.0])
@pytest.mark.parametrize("space", SPACES, ids=repr)
def test_the_scale_of_the_family_does_not_matter(space, scale):
    """Of a conditional the form alone counts: the loss before training is the same."""
    h = torch.randn(20, 2, generator=torch.Generator().manual_seed(0))
    losses = [
        [how.loss(family)(head(h), head(h + 0.1)).item() for how, head in found]
        for family in (Normal(1.0), Normal(scale))
        for found in [[(how, how.head(space)) for how in every(space, family)]]
    ]
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


@pytest.mark.parametrize(
    ("space", "family", "learn_precision"),
    [
        (space, family, learn_precision)
        for space in SPACES
        for family in (Laplace(1.0), Normal(1.0), VonMisesFisher(1.0))
        for learn_precision in (False, True)
        if family.supports(space) and not (learn_precision and family.p is None)
    ],
    ids=repr,
)
def test_every_recipe_makes_a_loss_and_a_head(space, family, learn_precision):
    for how in every(space, family, learn_precision=learn_precision):
        loss = how.loss(family, learn_precision=2 if learn_precision else None)
        h = how.head(space)(torch.randn(20, 2, generator=torch.Generator().manual_seed(0)))
        assert loss(h, h.roll(1, 0)).isfinite()


def test_networks_grow_with_the_number_of_pairs():
    sizes = [
        max(
            len(how.network) and max(how.network)
            for how in for_observations(Box(2), Normal(1.0), n)
        )
        for n in (recipes.FEW - 1, recipes.FEW, recipes.MANY, float("inf"))
    ]
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[-1]


def test_soap_is_left_out_for_wide_layers():
    for wide in (False, True):
        found = for_network(Box(2), Normal(1.0), wide=wide)
        assert ("soap" in {how.training.optimizer for how in found}) == (not wide)
