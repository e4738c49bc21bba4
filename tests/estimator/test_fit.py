import math

import pytest
import torch

from identica import (
    Box,
    ContrastiveModel,
    Euclidean,
    InfoNCE,
    Laplace,
    Normal,
    Sphere,
    Training,
)
from identica.estimator.fit import Fit
from identica.recipes import recipe


def test_the_precision_is_in_units_of_the_temperature():
    """The similarity of codes scaled by the loss, over the temperature, is −Σ λ_k |a_k − b_k|^p; the
    temperature that training began with has no part in it."""
    log = [0.3, -1.2, 2.0]
    for family, tau in ((Laplace(0.5), 3.0), (Normal(2.0), 0.2)):
        loss = InfoNCE(family, tau, learn_precision=3)
        loss.log_precision.data.copy_(torch.tensor(log))
        model = ContrastiveModel(Euclidean(3), family, torch.nn.Identity())
        fit = Fit(model, loss, temperature=0.7, history=[])
        a, b = torch.randn(2, 5, 3, generator=torch.Generator().manual_seed(0))
        power = {1.0: 1 / 0.5, 2.0: 1 / (2 * 2.0**2)}[family.p]  # of the density
        known = [math.exp(x) * power / 0.7 for x in log]
        assert fit.precision.tolist() == pytest.approx(known, rel=1e-5)
        expected = -(fit.precision * (a - b).abs() ** family.p).sum(-1)
        found = family.similarity(loss.scaled(a), loss.scaled(b)) / fit.temperature
        assert torch.allclose(found, expected, rtol=1e-4)


@pytest.mark.parametrize("scale", [0.1, 10.0])
@pytest.mark.parametrize("space", [Box(2), Euclidean(2), Sphere(2, radius=3.0)])
def test_the_scale_of_the_family_does_not_matter(space, scale):
    """Of a conditional the form alone counts: the loss before training is the same."""
    h = torch.randn(20, 2, generator=torch.Generator().manual_seed(0))
    losses = []
    for family in (Normal(1.0), Normal(scale)):
        how = recipe(space, family, Training(batch=20))
        head, loss = how.head(space), how.loss(family)
        losses.append(loss(head(h), head(h + 0.1)).item())
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
