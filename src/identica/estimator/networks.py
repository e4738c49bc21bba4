"""Encoders for raw data: whitening of rows or scaling of pixels, followed by a network."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import torch
from torch import Tensor, nn

from identica._random import as_generator
from identica._tensors import Convert, takes_doubles
from identica._validate import count, function
from identica.encoders import MLP, ConvEncoder, blank
from identica.errors import InputError

Shape = tuple[int, ...]


Network = nn.Module | Callable[[Shape, int], nn.Module] | None


SIDE = 64  # side of the images that `ConvEncoder` takes
SMALLEST = 16  # side below which an array is treated as a row, not as an image
WIDE = 1000  # columns above which rows are standardised but not decorrelated


class Columns(nn.Module):
    """Standardise rows and project them: (x − mean)/scale·directions, with the moments of a sample.

    Constant columns become 0. Mean and scale are in double precision, as columns may have large offsets
    and any unit. On a device without double precision, such as Apple's GPUs, they stay on the CPU.

    Args:
        columns: number of columns d.
        directions: number of directions that the scaled columns are projected on; 0 for none.
    """

    mean: Tensor
    scale: Tensor
    directions: Tensor

    def __init__(self, columns: int, directions: int = 0) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(columns, dtype=torch.float64))
        self.register_buffer("scale", torch.ones(columns, dtype=torch.float64))
        shape = (columns, directions) if directions else (0,)
        self.register_buffer("directions", torch.zeros(shape))

    def _apply(self, fn: Convert, recurse: bool = True) -> Self:
        if not takes_doubles(fn):
            return self
        return super()._apply(fn, recurse)  # type: ignore[no-untyped-call]

    def forward(self, x: Tensor) -> Tensor:
        x = x.to(self.mean.device)
        normal = ((x.flatten(1) - self.mean) / self.scale).to(self.directions.dtype)
        return normal @ self.directions if self.directions.numel() else normal

    def measure(self, x: Tensor) -> Tensor:
        """Take mean and scale from a sample N×d (or N×…), and return the standardised sample, N×d."""
        given, x = x.dtype, x.flatten(1).to(self.mean)
        moved = x - x[0]  # keeps large offsets out of the sums
        span = moved.abs().amax(0)
        if not span.isfinite().all():
            raise InputError("X must span less than 1e308, got columns with a wider range")
        unit = moved / torch.where(
            span > 0, span, 1.0
        )  # so that squares neither vanish nor overflow
        std, centre = torch.std_mean(unit, 0, correction=0)
        varies = std * span > 4 * torch.finfo(x.dtype).eps * x.abs().amax(0)  # more than rounding
        if not varies.any():
            raise InputError(
                f"X must vary, but every column is constant to the precision of its type ({given}): "
                "subtract a large offset before converting to that type"
            )
        self.mean.copy_(x[0] + centre * span)
        self.scale.copy_(torch.where(varies, std * span, torch.inf))
        return torch.where(varies, (unit - centre) / std, 0.0)


class Whiten(Columns):
    """Whiten rows: uncorrelated columns of unit variance.

    Noise is not amplified without limit: among standardised columns, directions whose standard deviation is
    below a hundredth of the largest one are scaled as if it were a hundredth. Rows of more than `WIDE`
    columns are only standardised.
    """

    def __init__(self, columns: int) -> None:
        super().__init__(columns, columns if columns <= WIDE else 0)

    def measure(self, x: Tensor) -> Tensor:
        normal = super().measure(x)
        if self.directions.numel():
            values, vectors = _eigen(normal.T @ normal / len(x))
            self.directions.copy_(vectors / values.clamp(min=1e-4 * values[-1]).sqrt())
        return normal


class Principal(Columns):
    """Project very wide rows, such as images, on their principal components.

    All columns share one scale, so that pixels which hardly vary are not amplified.
    """

    def measure(self, x: Tensor) -> Tensor:
        super().measure(x)
        varies = self.scale.isfinite()
        top = self.scale[varies].max()  # divided by, so that squares neither vanish nor overflow
        scale = top * (self.scale[varies] / top).square().mean().sqrt()
        self.scale.copy_(torch.where(varies, scale, torch.inf))
        normal = (x.flatten(1) - self.mean) / self.scale
        # through the smaller of the two products
        values, vectors = _eigen(normal @ normal.T)
        count = self.directions.shape[1]
        strong = normal.T @ vectors[:, -count:] / values[-count:].clamp(min=1e-300).sqrt()
        weak = values[-count:] <= 1e-12 * values[-1]
        self.directions.copy_(torch.where(weak, 0.0, strong))
        return normal


def _eigen(symmetric: Tensor) -> tuple[Tensor, Tensor]:
    """Eigenvalues in ascending order and eigenvectors with signs that do not depend on the machine."""
    values, vectors = torch.linalg.eigh(symmetric)
    weights = 1 / torch.arange(1, len(vectors) + 1).to(vectors)
    return values, torch.where(weights @ vectors < 0, -vectors, vectors)


class RowNetwork(nn.Module):
    """The default network for rows x: A·u + MLP(v), where u are the predictable directions of x.

    A starts as a random rotation of the most predictable directions, and the MLP starts small, so that
    training begins close to a linear map, which does not fold the data.

    Args:
        shape: number of columns of x, and number of predictable directions.
        n: number of codes.
        hidden: widths of the hidden layers of the MLP.
        raw: the MLP takes v = x; otherwise v = u.
        seed: seed of the weights.
    """

    matrix: Tensor

    def __init__(
        self,
        shape: Sequence[int],
        n: int,
        hidden: Sequence[int],
        *,
        raw: bool = False,
        seed: int = 0,
    ) -> None:
        super().__init__()
        columns, predictable = (count("shape", size) for size in shape)
        self.raw = raw
        self.register_buffer("matrix", torch.zeros(columns, predictable))
        self.linear = blank(nn.Linear, predictable, n, bias=False)
        self.mlp = MLP(columns if raw else predictable, n, hidden, seed=seed)

    @torch.no_grad()
    def start(self, matrix: Tensor, seed: int) -> Self:
        """Set the predictable directions, the columns of `matrix`, and start at the last ones."""
        (n, k), last = self.linear.weight.shape, self.mlp.layers[-1]
        assert isinstance(last, nn.Linear)
        turn = torch.linalg.qr(torch.randn(n, n, generator=as_generator(seed)))[0]
        most = min(n, k)
        self.matrix.copy_(matrix)
        self.linear.weight.zero_()
        self.linear.weight[:, k - most :] = turn[:, :most]
        last.weight.mul_(0.3)
        return self

    def forward(self, x: Tensor) -> Tensor:
        u = x @ self.matrix
        return self.linear(u) + self.mlp(x if self.raw else u)


class Pixels(nn.Module):
    """Convert images or other arrays to floats; bytes from 0 to 255 become numbers from 0 to 1.

    Args:
        channels_last: images are H×W×C, and are changed to C×H×W.
        pooled: resize images to 64×64 by adaptive average pooling.
    """

    scale: Tensor

    def __init__(self, channels_last: bool = False, *, pooled: bool = False) -> None:
        super().__init__()
        self.channels_last, self.pooled = channels_last, pooled
        self.register_buffer("scale", torch.ones(()))

    def measure(self, x: Tensor) -> None:
        """Detect bytes up to 255 or masks of 0 and 1 on a sample, and check that float32 can represent it."""
        self.scale.fill_(255.0 if x.dtype == torch.uint8 and x.max() > 1 else 1.0)
        values = x.to(self.scale.dtype)
        if not values.isfinite().all() or (values.max() == values.min()) != (x.max() == x.min()):
            raise InputError(
                "X must hold images with a range that float32 can represent: scale them to about "
                f"0 to 1, got {float(x.min()):g} to {float(x.max()):g}"
            )

    def forward(self, x: Tensor) -> Tensor:
        x = x.to(self.scale.dtype) / self.scale
        x = x.movedim(-1, 1) if self.channels_last else x
        return nn.functional.adaptive_avg_pool2d(x, SIDE) if self.pooled else x


class Encoder(nn.Module):
    """Preprocessing followed by a network."""

    def __init__(self, enter: Columns | Pixels, network: nn.Module) -> None:
        super().__init__()
        self.enter, self.network = enter, network

    def forward(self, x: Tensor) -> Tensor:
        """Codes N×n of observations, which may be on a different device from the network."""
        at = next(self.network.parameters(), x)
        return self.network(self.enter(x).to(at.device))


def given_network(network: Network, shape: Shape, n: int, *, seed: int) -> nn.Module:
    """The user's network: a copy of a module, or the result of calling a function with (shape, n)."""
    if isinstance(network, nn.Module):
        return copy.deepcopy(network)  # an estimator's parameters stay untouched
    function("network", network)
    assert network is not None
    with torch.random.fork_rng(devices=[]):  # torch's own layers draw from the global state
        torch.default_generator.manual_seed(seed)
        made = network(shape, n)
    if not isinstance(made, nn.Module):
        raise InputError(f"network must return a module, got {type(made).__name__}")
    return made


def convolutional(shape: Shape, n: int, *, seed: int) -> tuple[Pixels, nn.Module] | None:
    """The default network for images of at least 16×16, with or without channels; None for other shapes.

    Channels are taken to come last if the first two sizes are equal, or if only the last one is small.
    Images are resized to 64×64, the input size of the network.

    >>> pixels, network = convolutional((480, 640, 3), 10, seed=0)
    >>> network(pixels(torch.zeros(2, 480, 640, 3))).shape
    torch.Size([2, 10])
    """
    if len(shape) not in (2, 3):
        return None
    square = (shape[0] == shape[1], shape[-2] == shape[-1])
    last = len(shape) == 3 and (square[0] or (not square[1] and shape[2] < shape[0]))
    channels = 1 if len(shape) == 2 else shape[-1] if last else shape[0]
    sides = shape[:2] if last else shape[-2:]
    if min(sides) < SMALLEST:
        return None
    pixels = Pixels(last, pooled=sides != (SIDE, SIDE))
    return pixels, ConvEncoder(n, channels=channels, seed=seed)


@torch.no_grad()
def width(encoder: Encoder, shape: Shape) -> int:
    """The number of codes that an encoder returns for observations of a given shape."""
    codes = encoder(torch.zeros(2, *shape))
    if codes.ndim != 2:
        raise InputError(f"network must give codes N×n, got {tuple(codes.shape)}")
    return int(codes.shape[1])


def describe(encoder: Encoder) -> dict[str, Any]:
    """The architecture of an encoder as plain data, from which `blank_encoder` builds it again."""
    enter, network = encoder.enter, encoder.network
    spec: dict[str, Any] = {"enter": type(enter).__name__}
    if isinstance(enter, Pixels):
        spec |= {"channels_last": enter.channels_last, "pooled": enter.pooled}
    else:
        spec["directions"] = enter.directions.shape[-1]
    if isinstance(network, RowNetwork):
        layers = [layer.out_features for layer in network.mlp.layers[:-1]]
        spec |= {"rows": list(network.matrix.shape), "hidden": layers, "raw": network.raw}
    elif isinstance(network, ConvEncoder):
        spec["channels"] = network.channels
    return spec


def blank_encoder(
    spec: Mapping[str, Any], shape: Shape, n: int, network: nn.Module | None
) -> Encoder:
    """Build an encoder, without weights, as described by `describe`; around `network`, if given."""
    enter: Columns | Pixels
    match spec["enter"]:
        case "Pixels":
            enter = Pixels(bool(spec["channels_last"]), pooled=bool(spec.get("pooled")))
        case "Whiten":
            enter = Whiten(*shape)
        case "Principal":
            enter = Principal(math.prod(shape), int(spec["directions"]))
        case _:
            enter = Columns(math.prod(shape))
    if network is None:
        if "rows" in spec:
            widths = [int(h) for h in spec["hidden"]]
            network = RowNetwork(spec["rows"], n, widths, raw=bool(spec["raw"]))
        else:
            network = ConvEncoder(n, channels=int(spec["channels"]))
    return Encoder(enter, network)
