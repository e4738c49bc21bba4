"""Residual networks from images to codes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn.utils import skip_init

from identica._validate import count, flag, instance, members, positive
from identica.encoders import initialise
from identica.errors import InputError


class ResNet18(nn.Module):
    """ResNet-18 with a head of two layers, R^{3×S×S} → 512 → 100 → LeakyReLU → n.

    Images are uint8, or floats from 0 to 1.

    Reference: He, Zhang, Ren & Sun, "Deep Residual Learning for Image Recognition" (CVPR 2016);
    the head is that of Zimmermann et al. (ICML 2021) for 3DIdent, on images of 224×224.

    Args:
        n_out: code dimensions n.
        seed: determines the initial weights, U(±1/√fan-in) as in torch's own layers.

    >>> ResNet18(10)(torch.zeros(2, 3, 64, 64)).shape
    torch.Size([2, 10])
    """

    def __init__(self, n_out: int, *, seed: int = 0) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            *_convolution(3, 64, 7, stride=2),
            nn.ReLU(),
            nn.MaxPool2d(3, stride=2, padding=1),
        )
        for fan_in, fan_out in pairwise((64, 64, 128, 256, 512)):
            stride = 1 if fan_in == fan_out else 2
            self.layers.extend([Block(fan_in, fan_out, stride), Block(fan_out, fan_out)])
        self.layers.extend([nn.AdaptiveAvgPool2d(1), nn.Flatten()])
        self.layers.extend([skip_init(nn.Linear, 512, 100), nn.LeakyReLU()])
        self.layers.append(skip_init(nn.Linear, 100, count("n_out", n_out)))
        initialise(self, seed)
        self.layers.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def forward(self, x: Tensor) -> Tensor:
        """Codes N×n of images N×3×S×S."""
        return self.layers(as_input(x, 3, 255.0))


class SmallResNet(nn.Module):
    """A network for images of about 64×64 that trains on a CPU: strided convolutions, a residual block,
    and pooling by attention.

    Each of K attention maps a_k, a softmax over the positions p, averages features and positions,
    Σ_p a_k(p)·(v(p), p). The description of an object does not depend on its position, as with a mean over
    positions, but the position itself is kept. A head maps the features to codes. It is cheap, as it is
    applied once per image, and does most of the work if the factors are angles.

    Args:
        n_out: code dimensions n.
        widths: channels after each strided convolution.
        unsigned: |·| instead of ReLU after the first convolution, so that outlines do not depend on whether
            the object is brighter or darker than the background.
        maps: number K of attention maps.
        hidden: width of the head.
        blocks: residual blocks in the head, of two layers each.
        channels: channels of the images; with one, images may be N×S×S.
        pool: kernel size of the initial average pooling.
        scale: divisor of integer images (uint8).
        seed: determines the initial weights, U(±1/√fan-in) as in torch's own layers.

    >>> SmallResNet(10)(torch.zeros(2, 3, 64, 64)).shape
    torch.Size([2, 10])
    """

    def __init__(
        self,
        n_out: int,
        *,
        widths: Sequence[int] = (32, 32),
        unsigned: bool = True,
        maps: int = 8,
        hidden: int = 256,
        blocks: int = 1,
        channels: int = 3,
        pool: int = 1,
        scale: float = 255.0,
        seed: int = 0,
    ) -> None:
        super().__init__()
        self.channels, self.scale = count("channels", channels), positive("scale", scale)
        self.pool = count("pool", pool)
        fans = [
            self.channels,
            *(count("widths", width) for width in members("widths", widths, "a list of widths")),
        ]
        self.layers = nn.Sequential()
        for fan_in, fan_out in pairwise(fans):
            first = len(self.layers) == 0
            self.layers.extend(_convolution(fan_in, fan_out, 4 if first else 3, stride=2))
            # |x| as a leaky ReLU: x.abs() takes three passes for its gradient
            self.layers.append(
                nn.LeakyReLU(-1.0) if first and flag("unsigned", unsigned) else nn.ReLU()
            )
        self.layers.append(Block(fans[-1], fans[-1]))
        self.attention = skip_init(nn.Conv2d, fans[-1], count("maps", maps), 1)
        self.features = skip_init(nn.Conv2d, fans[-1], fans[-1], 1)
        self.head = nn.Sequential(
            skip_init(nn.Linear, maps * (fans[-1] + 2), count("hidden", hidden)),
            nn.ReLU(),
            *(Residual(hidden) for _ in range(count("blocks", blocks, at_least=0))),
            skip_init(nn.Linear, hidden, count("n_out", n_out)),
        )
        initialise(self, seed)
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def forward(self, x: Tensor) -> Tensor:
        """Codes N×n of images N×C×S×S."""
        return self.head(self.read(x))

    def read(self, x: Tensor) -> Tensor:
        """The features of images, N×K·(C + 2): the input of the head."""
        x = as_input(x, self.channels, self.scale)
        x = self.layers(nn.functional.avg_pool2d(x, self.pool) if self.pool > 1 else x)
        weights = self.attention(x).flatten(2).softmax(dim=2)  # N×K×P
        values = self.features(x).flatten(2).transpose(1, 2)  # N×P×C
        places = positions(*x.shape[2:]).to(x).expand(len(x), -1, -1)
        return (weights @ torch.cat([values, places], dim=2)).flatten(1)


class Residual(nn.Module):
    """Two layers whose output is added to their input."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.change = nn.Sequential(
            skip_init(nn.Linear, width, width), nn.ReLU(), skip_init(nn.Linear, width, width)
        )

    def forward(self, x: Tensor) -> Tensor:
        return x + self.change(x)


def positions(height: int, width: int) -> Tensor:
    """The positions of the pixels of an image, each coordinate from −1 to 1, height·width×2.

    >>> positions(1, 3)
    tensor([[ 0., -1.],
            [ 0.,  0.],
            [ 0.,  1.]])
    """
    ways = [torch.linspace(-1, 1, n) if n > 1 else torch.zeros(1) for n in (height, width)]
    return torch.cartesian_prod(*ways)


class Block(nn.Module):
    """Two 3×3 convolutions with a residual connection."""

    def __init__(self, fan_in: int, fan_out: int, stride: int = 1) -> None:
        super().__init__()
        self.change = nn.Sequential(
            *_convolution(fan_in, fan_out, 3, stride=stride),
            nn.ReLU(),
            *_convolution(fan_out, fan_out, 3),
        )
        same = stride == 1 and fan_in == fan_out
        self.past = nn.Sequential(
            *([] if same else _convolution(fan_in, fan_out, 1, stride=stride))
        )

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.relu(self.past(x) + self.change(x))


def _convolution(fan_in: int, fan_out: int, kernel: int, *, stride: int = 1) -> list[nn.Module]:
    """A convolution without bias, followed by batch normalisation, which has one."""
    pad = (kernel - 1) // 2
    convolution = skip_init(nn.Conv2d, fan_in, fan_out, kernel, stride, padding=pad, bias=False)
    return [convolution, nn.BatchNorm2d(fan_out)]


def as_input(x: Tensor, channels: int, scale: float) -> Tensor:
    """Images N×C×S×S (or N×S×S of one channel) as floats from −1 to 1, in the memory format in which
    convolutions are fast.

    Whole numbers are divided by `scale`; floats are taken to lie between 0 and 1.
    """
    instance("x", x, Tensor, "a tensor of images")
    x = x.unsqueeze(1) if x.ndim == 3 and channels == 1 else x
    if x.ndim != 4 or x.shape[1] != channels:
        raise InputError(f"x must hold images N×{channels}×S×S, got shape {tuple(x.shape)}")
    whole = not x.is_floating_point()
    x = x.float() * (2 / scale) - 1 if whole else 2 * x - 1
    return x.contiguous(memory_format=torch.channels_last)
