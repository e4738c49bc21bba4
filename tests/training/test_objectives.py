import pytest
import torch

from identica import (
    MLP,
    AlignUniform,
    ContrastiveModel,
    InfoNCE,
    InputError,
    Potential,
    Sphere,
    VonMisesFisher,
)
from identica.estimator.pairs import Batch
from identica.process import Pairs, Pool, Walk
from identica.training import Contrastive


@pytest.fixture
def x():
    return torch.randn(9, 4, generator=torch.Generator().manual_seed(0))


@pytest.fixture
def model():
    return ContrastiveModel(Sphere(3), VonMisesFisher(5.0), MLP(4, 3, hidden=(8,)))


@pytest.mark.parametrize("kind", ["pairs", "batch", "walk", "pool"])
def test_a_batch_says_how_codes_are_split(x, model, kind):
    """The loss is that of codes that were computed one by one; each observation is encoded once."""
    positives = torch.arange(9).roll(1)[:, None] * torch.ones(1, 2, dtype=torch.int64)
    batch, h, h_pos, number = {
        "pairs": (Pairs(x, x + 1, x, x + 1), x, x + 1, 18),
        "batch": (Batch(x, x + 1), x, x + 1, 18),
        "walk": (Walk(x, x), x[:-1], x[1:], 9),
        "pool": (Pool(x, x, positives), x, torch.stack([x.roll(1, 0)] * 2, 1), 9),
    }[kind]
    codes = torch.stack([model(row[None])[0] for row in h])
    codes_pos = torch.stack([model(row[None])[0] for row in h_pos.reshape(-1, 4)])
    loss = InfoNCE(model.conditional, positive_in_denominator=kind != "pool")
    expected = loss(codes, codes_pos.view(*h_pos.shape[:-1], 3))
    seen = []
    model.encoder.register_forward_hook(lambda module, args, out: seen.append(len(args[0])))
    torch.testing.assert_close(Contrastive(model, loss)(batch), expected)
    assert seen == [number]


def test_a_walk_is_trained_on_as_the_pairs_it_holds(x, model):
    objective = Contrastive(model, InfoNCE(model.conditional, symmetric=True, apart=2))
    pairs = Pairs(x[:-1], x[1:], x[:-1], x[1:])
    torch.testing.assert_close(objective(Walk(x, x)), objective(pairs))


def test_a_potential_is_learnt_with_the_model(x):
    """Its terms enter the loss, its weights have gradients, and they are saved with the model."""
    potential = Potential(3, (8,))
    torch.nn.init.ones_(potential.network.layers[-1].weight)
    model = ContrastiveModel(
        Sphere(3), VonMisesFisher(5.0), MLP(4, 3, hidden=(8,)), potential=potential
    )
    loss = InfoNCE(model.conditional, symmetric=True, negatives_from="positives")
    objective, h, h_pos = Contrastive(model, loss), model(x), model(x + 1)
    value = objective(Pairs(x, x + 1, x, x + 1))
    torch.testing.assert_close(value, loss(h, h_pos, potential))
    assert not torch.allclose(value, loss(h, h_pos))
    value.backward()
    # no gradient for the constants in b and b′: they change nothing
    assert all(p.grad.abs().max() > 0 for p in list(potential.parameters())[:-1])
    assert "model.potential.network.layers.0.weight" in objective.state_dict()


def test_a_potential_needs_a_loss_that_takes_it():
    model = ContrastiveModel(Sphere(3), VonMisesFisher(5.0), MLP(4, 3), potential=Potential(3))
    with pytest.raises(InputError, match="loss must be InfoNCE for a model with a potential"):
        Contrastive(model, AlignUniform())
