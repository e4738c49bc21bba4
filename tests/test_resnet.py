import numpy as np
import pytest
import torch
from torch.nn import functional as F

from helpers.defaults import numbers_of
from identica import InputError
from identica.encoders import initialise
from identica.resnet import Block, ResNet18, SmallResNet


@pytest.fixture
def images():
    return torch.randint(0, 256, (4, 3, 64, 64), generator=torch.Generator().manual_seed(0)).byte()


@pytest.mark.parametrize("network", [ResNet18, SmallResNet])
def test_weights_follow_the_seed_and_leave_the_global_state_alone(network, images):
    before = torch.get_rng_state()
    a, b, c = network(3, seed=1), network(3, seed=1), network(3, seed=2)
    assert torch.equal(torch.get_rng_state(), before)
    assert a(images).shape == (4, 3)
    assert torch.equal(a(images), b(images))
    assert not torch.equal(a(images), c(images))
    assert all(torch.isfinite(value).all() for value in a.state_dict().values())


@pytest.mark.parametrize("network", [ResNet18, SmallResNet])
def test_bytes_and_floats_are_the_same_image(network, images):
    model = network(2).eval()
    assert torch.allclose(model(images), model(images.float() / 255), atol=1e-5)
    with pytest.raises(InputError, match="N×3×S×S"):
        model(images[:, :2])
    with pytest.raises(InputError, match="N×3×S×S"):
        model(images[0])


@pytest.mark.parametrize("network", [ResNet18, SmallResNet])
def test_every_weight_learns(network, images):
    model = network(2)
    model(images).square().sum().backward()
    for name, parameter in model.named_parameters():
        # a softmax forgets what all its inputs have in common
        if name != "attention.bias":
            assert parameter.grad is not None, name
            assert parameter.grad.abs().max() > 0, name


def test_resnet18_has_the_published_size():
    # 11,689,512 with 1,000 classes (He et al.), so 11,176,512 without the last layer
    body = 11_176_512
    head = 512 * 100 + 100 + 100 * 10 + 10
    assert sum(p.numel() for p in ResNet18(10).parameters()) == body + head
    model = ResNet18(10)
    with torch.no_grad():
        x = torch.zeros(1, 3, 224, 224)
        shapes = []
        for layer in model.layers:
            x = layer(x) if not isinstance(layer, torch.nn.BatchNorm2d) else x
            shapes.append(tuple(x.shape[1:]))
    for wanted in ((64, 112, 112), (64, 56, 56), (128, 28, 28), (256, 14, 14), (512, 7, 7)):
        assert wanted in shapes
    assert shapes[-3:] == [(100,), (100,), (10,)]


def test_attention_tells_where_without_losing_what():
    """Moving an object by whole strides moves the places that are looked at, not what is read there."""
    model = SmallResNet(2, maps=4).eval()
    with torch.no_grad():
        model.attention.weight.mul_(1e4)  # sharp, so that the far rim of the image does not matter
    image = torch.zeros(1, 3, 96, 96)
    image[:, :, 32:48, 32:48] = torch.rand(3, 16, 16, generator=torch.Generator().manual_seed(1))
    read = []
    model.head.register_forward_hook(lambda _, inputs, __: read.append(inputs[0]))
    with torch.no_grad():
        model(image)
        model(image.roll((16, 8), dims=(2, 3)))
    before, after = (codes.view(4, -1) for codes in read)
    step = 2 / (96 // 4 - 1)
    on_object = (before[:, -2:].abs() < 0.6).all(1)
    assert on_object.any()
    for k in on_object.nonzero().flatten():
        assert torch.allclose(before[k, :-2], after[k, :-2], atol=1e-2)
        moved = after[k, -2:] - before[k, -2:]
        assert moved.tolist() == pytest.approx([4 * step, 2 * step], abs=2e-2)


def test_pooled_images_are_those_averaged_before():
    x = torch.rand(3, 64, 64, generator=torch.Generator().manual_seed(0))
    pooled, plain = (SmallResNet(2, channels=1, pool=pool).eval() for pool in (4, 1))
    means = x.view(3, 16, 4, 16, 4).mean(dim=(2, 4))
    assert torch.allclose(pooled(x), plain(means[:, None]), atol=1e-5)
    assert not torch.allclose(pooled(x), plain(x), atol=1e-3)
    with pytest.raises(InputError, match="widths must be a list of widths, got 32"):
        SmallResNet(2, widths=32)
    with pytest.raises(InputError, match="unsigned must be True or False, got 1"):
        SmallResNet(2, unsigned=1)
    with pytest.raises(InputError, match="x must be a tensor of images, got a float64 ndarray"):
        SmallResNet(2)(np.zeros((1, 3, 32, 32)))
    with pytest.raises(InputError, match="pool must be"):
        SmallResNet(2, pool=0)


def test_an_unsigned_first_layer_does_not_tell_dark_on_bright_from_bright_on_dark():
    model = SmallResNet(2).eval()
    x = torch.rand(3, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        assert torch.allclose(model(x), model(1 - x), atol=1e-5)
        signed = SmallResNet(2, unsigned=False).eval()
        assert not torch.allclose(signed(x), signed(1 - x), atol=1e-5)


def expected_codes(model, x):
    """The same network with functions of torch, from its weights."""
    w = dict(model.state_dict())

    def normal(x, name):
        mean, var = w[f"{name}.running_mean"], w[f"{name}.running_var"]
        x = (x - mean[:, None, None]) / (var[:, None, None] + 1e-5).sqrt()
        return x * w[f"{name}.weight"][:, None, None] + w[f"{name}.bias"][:, None, None]

    x = normal(F.conv2d(2 * x - 1, w["layers.0.weight"], stride=2, padding=1), "layers.1").abs()
    x = normal(F.conv2d(x, w["layers.3.weight"], stride=2, padding=1), "layers.4").relu()
    y = normal(F.conv2d(x, w["layers.6.change.0.weight"], padding=1), "layers.6.change.1").relu()
    y = normal(F.conv2d(y, w["layers.6.change.3.weight"], padding=1), "layers.6.change.4")
    x = (x + y).relu()
    logits = F.conv2d(x, w["attention.weight"], w["attention.bias"])
    values = F.conv2d(x, w["features.weight"], w["features.bias"])
    height, width = x.shape[2:]
    rows, columns = np.linspace(-1, 1, height), np.linspace(-1, 1, width)
    read = []
    for n in range(len(x)):
        parts = []
        for k in range(logits.shape[1]):
            share = (logits[n, k] - logits[n, k].max()).exp()
            share = share / share.sum()
            places = [(share.sum(1).numpy() @ rows), (share.sum(0).numpy() @ columns)]
            parts += [*(share * values[n]).sum((1, 2)).tolist(), *places]
        read.append(parts)
    h = torch.tensor(read, dtype=torch.float32)
    h = (h @ w["head.0.weight"].T + w["head.0.bias"]).relu()
    change = (h @ w["head.2.change.0.weight"].T + w["head.2.change.0.bias"]).relu()
    h = h + change @ w["head.2.change.2.weight"].T + w["head.2.change.2.bias"]
    return h @ w["head.3.weight"].T + w["head.3.bias"]


@torch.no_grad()
@pytest.mark.parametrize("side", [(32, 32), (33, 47)])
def test_the_small_network_step_by_step(side):
    model = SmallResNet(3, seed=4).eval()
    assert {name: tuple(p.shape) for name, p in model.named_parameters() if p.ndim > 1} == {
        "layers.0.weight": (32, 3, 4, 4),
        "layers.3.weight": (32, 32, 3, 3),
        "layers.6.change.0.weight": (32, 32, 3, 3),
        "layers.6.change.3.weight": (32, 32, 3, 3),
        "attention.weight": (8, 32, 1, 1),
        "features.weight": (32, 32, 1, 1),
        "head.0.weight": (256, 8 * 34),
        "head.2.change.0.weight": (256, 256),
        "head.2.change.2.weight": (256, 256),
        "head.3.weight": (3, 256),
    }
    x = torch.rand(2, 3, *side, generator=torch.Generator().manual_seed(0))
    assert torch.allclose(model(x), expected_codes(model, x), atol=1e-4)


@torch.no_grad()
def test_blocks_go_past_with_a_stride_or_with_more_channels():
    x = torch.rand(2, 4, 9, 9, generator=torch.Generator().manual_seed(0))
    for block, stride, past in (
        (Block(4, 4), 1, False),
        (Block(4, 4, 2), 2, True),
        (Block(4, 6), 1, True),
    ):
        initialise(block, 0)
        block.eval()
        w = block.state_dict()
        assert ("past.0.weight" in w) == past
        y = F.conv2d(x, w["change.0.weight"], stride=stride, padding=1) / (1 + 1e-5) ** 0.5
        y = F.conv2d(y.relu(), w["change.3.weight"], padding=1) / (1 + 1e-5) ** 0.5
        same = x
        if past:
            same = F.conv2d(x, w["past.0.weight"], stride=stride) / (1 + 1e-5) ** 0.5
        assert torch.allclose(block(x), (same + y).relu(), atol=1e-5)


def test_resnet18_shrinks_images_32_times():
    layers = ResNet18(2, seed=1).eval().layers
    strides = [m.stride for m in layers.modules() if isinstance(m, torch.nn.Conv2d)]
    kernels = [m.kernel_size[0] for m in layers.modules() if isinstance(m, torch.nn.Conv2d)]
    assert strides.count((2, 2)) == 7  # the first, and two in each of three blocks
    assert (kernels.count(7), kernels.count(3), kernels.count(1)) == (1, 16, 3)
    assert numbers_of(SmallResNet) == {
        "widths": (32, 32),
        "maps": 8,
        "hidden": 256,
        "blocks": 1,
        "channels": 3,
        "pool": 1,
        "scale": 255.0,
        "seed": 0,
    }
    none = SmallResNet(2, blocks=0)
    assert len(none.head) == 3
