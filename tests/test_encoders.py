import pytest
import torch
from torch import nn

from helpers.defaults import numbers_of
from helpers.laws import SPACES
from identica import (
    MLP,
    Box,
    BoxHead,
    ContrastiveModel,
    ConvEncoder,
    Euclidean,
    InputError,
    Laplace,
    Normal,
    Product,
    Sphere,
    SphereHead,
    VonMisesFisher,
)
from identica.heads import make_head


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_heads_map_onto_their_space(space):
    codes = 5 * torch.randn(100, space.dim, generator=torch.Generator().manual_seed(0))
    assert space.contains(make_head(space)(codes)).all()


def test_a_learnable_size_starts_where_told_and_moves():
    head = BoxHead(Box(2), learnable=True, start=5.0)
    codes = torch.full((1, 2), 100.0)
    assert torch.allclose(head(codes), torch.full((1, 2), 5.0))
    with pytest.raises(InputError, match="codes must be on the device of the head, cpu, got meta"):
        head(codes.to("meta"))
    assert head.to("meta")(codes.to("meta")).shape == (1, 2)
    head = BoxHead(Box(2), learnable=True, start=5.0)
    head(codes).sum().backward()
    assert head.log_growth.grad.item() == pytest.approx(10.0)
    sphere = SphereHead(Sphere(2, radius=3.0), learnable=True)
    sphere(codes).square().sum().backward()
    assert sphere.log_radius.grad.item() == pytest.approx(18.0)


def test_a_fixed_size_does_not_move():
    assert not any(p.requires_grad for p in make_head(Product(Sphere(2), Box(3))).parameters())


def test_weights_follow_the_seed_and_leave_the_global_state_alone():
    before = torch.get_rng_state()
    a, b, c = MLP(3, 2, seed=1), MLP(3, 2, seed=1), MLP(3, 2, seed=2)
    x = torch.ones(1, 3)
    assert torch.equal(a(x), b(x))
    assert not torch.equal(a(x), c(x))
    assert torch.equal(torch.get_rng_state(), before)


def test_the_published_network():
    widths = (100, 500, 500, 500, 500, 100)
    shapes = [tuple(layer.weight.shape) for layer in MLP(10, 10, hidden=widths).layers]
    assert shapes[0] == (100, 10)
    assert shapes[-1] == (10, 100)
    assert len(shapes) == 7


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: MLP(0, 2), "n_in"),
        (lambda: MLP(2, 2, hidden=(0,)), "hidden"),
        (lambda: BoxHead(Box(2), start=-1.0), "start"),
        (lambda: make_head("sphere"), "space"),
        (lambda: ContrastiveModel(Box(2), VonMisesFisher(1.0), MLP(2, 2)), "not defined"),
        (lambda: ContrastiveModel(Box(2), Laplace(1.0), MLP(2, 3))(torch.zeros(1, 2)), "encoder"),
        (
            lambda: ContrastiveModel(Euclidean(2), Normal(1.0), MLP(2, 3))(torch.zeros(1, 2)),
            "encoder",
        ),
    ],
)
def test_bad_input_is_named(make, named):
    with pytest.raises(InputError, match=named):
        make()


def test_the_convolutional_encoder_is_the_published_network_and_takes_whole_numbers():
    network = ConvEncoder(10, channels=3, scale=255, seed=3)
    sizes = [tuple(p.shape) for p in network.parameters()]
    assert sizes[::2] == [
        (32, 3, 4, 4), (32, 32, 4, 4), (64, 32, 4, 4), (64, 64, 4, 4), (256, 64, 4, 4), (10, 256)
    ]  # fmt: skip
    images = torch.randint(0, 256, (4, 3, 64, 64), dtype=torch.uint8)
    assert torch.equal(network(images), network(images / 255))
    again = ConvEncoder(10, channels=3, scale=255, seed=3)
    assert torch.equal(again(images), network(images))
    with pytest.raises(InputError, match="3×64×64"):
        network(images[:, :1])
    weights, bias = network.layers[2].weight, network.layers[2].bias
    assert weights.std().item() == pytest.approx((2 / (32 * 16)) ** 0.5, rel=0.03)
    assert not bias.any()


def test_a_soft_sphere_closes_in_and_goes_on_where_it_stopped():
    head = SphereHead(Sphere(2, radius=2.0), soften=2)
    codes = torch.tensor([[3.0, 4.0], [0.0, 0.0]])
    assert torch.allclose(head(codes), 2 * codes)  # space as it is
    half = torch.tensor([[6.0, 8.0], [0.0, 0.0]]) / 5**0.5
    assert torch.allclose(head.eval()(codes), half)
    assert torch.allclose(head.train()(codes), half)  # looking at it in between changed nothing
    assert torch.allclose(head(codes)[0].norm(), torch.tensor(2.0))
    again = SphereHead(Sphere(2, radius=2.0), soften=2)
    again.load_state_dict(head.state_dict())
    assert torch.allclose(again(codes)[0], torch.tensor([1.2, 1.6]))
    with pytest.raises(InputError, match="soften"):
        SphereHead(Sphere(2), soften=0)


def test_the_defaults_of_networks():
    assert numbers_of(MLP) == {"hidden": (128, 128, 128), "seed": 0}
    assert numbers_of(ConvEncoder) == {"channels": 1, "scale": 1.0, "seed": 0}


def test_weights_start_uniform_as_in_torch():
    """Weights and biases in ±1/√(inputs of a unit), and all of that range."""
    layers = [part for part in MLP(50, 40, hidden=(60,)).modules() if isinstance(part, nn.Linear)]
    assert [tuple(layer.weight.shape) for layer in layers] == [(60, 50), (40, 60)]
    for layer in layers:
        edge = layer.in_features**-0.5
        values = torch.cat([layer.weight.detach().flatten(), layer.bias.detach()])
        assert values.abs().max() <= edge
        # n uniform draws leave 20/n of the range free at an end with probability e^−20
        assert values.min() < -edge + 2 * edge * 20 / len(values)
        assert values.max() > edge - 2 * edge * 20 / len(values)


def test_the_published_network_for_images():
    """Four convolutions of stride 2, one over what is left, and He's initial weights."""
    network = ConvEncoder(7, channels=3)
    layers = [part for part in network.modules() if hasattr(part, "weight")]
    assert [tuple(layer.weight.shape) for layer in layers] == [
        *[(32, 3, 4, 4), (32, 32, 4, 4), (64, 32, 4, 4), (64, 64, 4, 4), (256, 64, 4, 4), (7, 256)]
    ]
    for layer in layers:
        assert not layer.bias.any()
        squares = layer.weight.detach().double().square()
        # the mean of n squares of normal draws deviates by √(2/n) of itself
        wanted = 2 / layer.weight[0].numel()
        assert squares.mean().item() == pytest.approx(wanted, rel=5 * (2 / squares.numel()) ** 0.5)


def test_whole_numbers_are_divided_by_the_scale():
    network = ConvEncoder(2, scale=255.0)
    images = torch.randint(0, 256, (3, 64, 64), generator=torch.Generator().manual_seed(0))
    assert torch.allclose(network(images), network(images.float() / 255))
