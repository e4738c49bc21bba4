"""Learnt precisions: one for each dimension."""

import numpy as np
import pytest
import torch

from identica import GeneralizedNormal, InfoNCE, InputError, Laplace, Normal, VonMisesFisher

FAMILIES = [Normal(0.8), Laplace(0.7), GeneralizedNormal(3.0, 0.9)]


def codes(dtype=torch.float64):
    generator = torch.Generator().manual_seed(3)
    h = torch.randn(7, 3, generator=generator, dtype=dtype)
    return h, h + 0.3 * torch.randn(7, 3, generator=generator, dtype=dtype)


def with_precision(family, logs, **options):
    loss = InfoNCE(family, learn_precision=len(logs), **options)
    loss.log_precision.data.copy_(torch.tensor(logs))
    return loss


@pytest.mark.parametrize("family", FAMILIES, ids=str)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_the_similarity_weighs_each_dimension(family, dtype):
    logs, tau = [-1.0, 0.5, 2.0], 1.3
    h, h_pos = codes(dtype)
    loss = with_precision(family, logs, tau=tau)
    weights = np.exp(logs) * family.precision / tau
    assert np.allclose(loss.precision, weights)

    def similarity(a, b):
        return -(weights * np.abs(a.double().numpy() - b.double().numpy()) ** family.p).sum(-1)

    own = similarity(h, h_pos)
    others = similarity(h[:, None], h[None])
    others[np.diag_indices(7)] = -np.inf
    expected = np.mean(np.logaddexp(own, np.logaddexp.reduce(others, axis=1)) - own)
    assert loss(h, h_pos).item() == pytest.approx(expected, rel=1e-5)


def test_equal_precisions_are_a_temperature():
    h, h_pos = codes()
    anisotropic = with_precision(Normal(1.0), [0.7] * 3, self_negative=True)
    isotropic = InfoNCE(Normal(1.0), tau=float(np.exp(-0.7)), self_negative=True)
    assert anisotropic(h, h_pos).item() == pytest.approx(isotropic(h, h_pos).item(), rel=1e-6)


def test_gradients_agree_with_differences():
    h, h_pos = codes()
    loss = with_precision(Normal(1.0), [0.1, -0.4, 0.8]).double()
    loss(h, h_pos).backward()
    for k in range(3):
        values = []
        for step in (1e-5, -1e-5):
            logs = [0.1, -0.4, 0.8]
            logs[k] += step
            moved = InfoNCE(Normal(1.0), learn_precision=3).double()
            moved.log_precision.data.copy_(torch.tensor(logs, dtype=torch.float64))
            values.append(moved(h, h_pos).item())
        slope = (values[0] - values[1]) / 2e-5
        assert loss.log_precision.grad[k].item() == pytest.approx(slope, rel=1e-4)


def test_precisions_of_given_codes_are_found():
    """Codes that are the factors: the best precisions are 1/2σ² of each."""
    generator = torch.Generator().manual_seed(0)
    std = torch.tensor([0.1, 0.3])
    loss = InfoNCE(Normal(1.0), learn_precision=2)
    optimizer = torch.optim.Adam(loss.parameters(), lr=0.05)
    for _ in range(250):
        z = torch.rand(256, 2, generator=generator) * 5
        value = loss(z, z + std * torch.randn(256, 2, generator=generator))
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
    assert np.allclose((2 * loss.precision) ** -0.5, std, rtol=0.15)


def test_what_has_no_precisions():
    with pytest.raises(InputError, match="learn_precision needs a distance"):
        InfoNCE(VonMisesFisher(1.0), learn_precision=3)
    with pytest.raises(InputError, match="must be the number of columns of the codes, 3, got 2"):
        InfoNCE(Normal(1.0), learn_precision=2)(*codes())
    with pytest.raises(InputError, match="precision is only learnt with learn_precision"):
        InfoNCE(Normal(1.0)).precision  # noqa: B018
