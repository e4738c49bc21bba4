import numpy as np
import pytest
import torch

from identica import InputError
from identica.resnet import ResNet18, SmallResNet


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
