import pytest

from identica import (
    MLP,
    Box,
    BoxHead,
    ContrastiveModel,
    Laplace,
    Potential,
    Training,
)
from identica.training.optimizers import make_optimizer


def test_muon_moves_all_but_matrices_at_a_tenth_of_the_rate():
    head = BoxHead(Box(2), learnable=True, lr=0.5)
    model = ContrastiveModel(Box(2), Laplace(1.0), MLP(2, 2), head=head)
    groups = make_optimizer(model, Training(lr=0.01, optimizer="muon")).param_groups
    settings = {id(p): group for group in groups for p in group["params"]}
    assert settings.keys() == {id(p) for p in model.parameters()}
    for parameter in model.parameters():
        group, own = settings[id(parameter)], 0.5 if parameter is head.log_growth else 0.01
        rate = own if parameter.ndim == 2 else own / 10
        assert group["lr"] == group["peak"] == pytest.approx(rate)
        assert group["use_muon"] == (parameter.ndim == 2)


def test_heads_and_potentials_keep_their_own_learning_rates():
    head, potential = BoxHead(Box(2), learnable=True, lr=0.5), Potential(2, lr=0.2)
    model = ContrastiveModel(Box(2), Laplace(1.0), MLP(2, 2), head=head, potential=potential)
    groups = make_optimizer(model, Training(lr=0.01)).param_groups
    rates = {id(p): group["lr"] for group in groups for p in group["params"]}
    assert rates[id(head.log_growth)] == 0.5
    assert {rates[id(p)] for p in potential.parameters()} == {0.2}
    assert rates[id(model.encoder.layers[0].weight)] == 0.01
