"""Encoders that take data as they come: whitening, scaling of pixels, and a network behind it."""

from __future__ import annotations

import copy
from collections.abc import Callable

import torch
from torch import Tensor, nn

from identica._validate import function
from identica.encoders import MLP, ConvEncoder
from identica.errors import InputError

Shape = tuple[int, ...]


Network = nn.Module | Callable[[Shape, int], nn.Module] | None


WIDE = 1000  # columns beyond which rows are scaled but no longer decorrelated


class Whiten(nn.Module):
    """(x − mean)/scale·W: rows with unit variances and no correlations, as measured on a sample.

    Directions whose standard deviation is below a hundredth of the strongest one's (once every
    column has unit variance) are not blown up further. Columns that vary by no more than rounding
    become 0. Wide rows are scaled column by column.
    """

    mean: Tensor
    scale: Tensor
    matrix: Tensor

    def __init__(self, columns: int) -> None:
        super().__init__()
        # in double precision: the digits that vary may be the last ones, and units may be any
        self.register_buffer("mean", torch.zeros(columns, dtype=torch.float64))
        self.register_buffer("scale", torch.ones(columns, dtype=torch.float64))
        self.register_buffer("matrix", torch.eye(columns) if columns <= WIDE else torch.empty(0))

    def measure(self, x: Tensor) -> None:
        """Take mean, scale and matrix from a sample N×d."""
        given, x = x.dtype, x.to(self.mean)
        moved = x - x[0]  # exact where rows are alike: no large offset comes into the sums
        span = moved.abs().amax(0)
        if not span.isfinite().all():
            raise InputError("X must span less than 1e308, got columns with a wider range")
        unit = moved / torch.where(span > 0, span, 1.0)  # whose squares neither vanish nor overflow
        std, centre = torch.std_mean(unit, 0, correction=0)
        varies = std * span > 4 * torch.finfo(x.dtype).eps * x.abs().amax(0)  # more than rounding
        if not varies.any():
            raise InputError(
                f"X must vary, but every column is constant to the precision of its type ({given}): "
                "subtract a large offset before converting to that type"
            )
        self.mean.copy_(x[0] + centre * span)
        self.scale.copy_(torch.where(varies, std * span, torch.inf))
        if not self.matrix.numel():
            return
        normal = torch.where(varies, (unit - centre) / std, 0.0)
        values, vectors = torch.linalg.eigh(normal.T @ normal / len(x))
        # the sign of an eigenvector is anyone's choice: make it the same whatever units and machine
        weights = 1 / torch.arange(1, len(vectors) + 1).to(vectors)
        vectors = torch.where(weights @ vectors < 0, -vectors, vectors)
        self.matrix.copy_(vectors / values.clamp(min=1e-4 * values[-1]).sqrt())

    def forward(self, x: Tensor) -> Tensor:
        normal = ((x - self.mean) / self.scale).to(self.matrix.dtype)
        return normal @ self.matrix if self.matrix.numel() else normal


class Pixels(nn.Module):
    """Images or other arrays as floats; bytes from 0 to 255 become numbers from 0 to 1."""

    scale: Tensor

    def __init__(self, channels_last: bool = False) -> None:
        super().__init__()
        self.channels_last = channels_last
        self.register_buffer("scale", torch.ones(()))

    def measure(self, x: Tensor) -> None:
        """Tell bytes up to 255 from masks of 0 and 1 by a sample; check that float32 can hold it."""
        self.scale.fill_(255.0 if x.dtype == torch.uint8 and x.max() > 1 else 1.0)
        values = x.to(self.scale.dtype)
        if not values.isfinite().all() or (values.max() == values.min()) != (x.max() == x.min()):
            raise InputError(
                "X must hold images that float32 can tell apart, with values up to 3e38: bring them "
                f"to about 0 to 1, got {float(x.min()):g} to {float(x.max()):g}"
            )

    def forward(self, x: Tensor) -> Tensor:
        x = x.to(self.scale.dtype) / self.scale
        return x.movedim(-1, 1) if self.channels_last else x


class Encoder(nn.Module):
    """A network behind what prepares its input; `measure` sets that by a sample."""

    def __init__(self, enter: Whiten | Pixels, network: nn.Module) -> None:
        super().__init__()
        self.enter, self.network = enter, network

    def measure(self, x: Tensor) -> None:
        self.enter.measure(x)

    def forward(self, x: Tensor) -> Tensor:
        return self.network(self.enter(x))

    @torch.no_grad()
    def width(self, shape: Shape) -> int:
        """The number n of codes for observations of a shape."""
        codes = self(torch.zeros(2, *shape))
        if codes.ndim != 2:
            raise InputError(f"network must give codes N×n, got {tuple(codes.shape)}")
        return int(codes.shape[1])


def make_encoder(shape: Shape, n: int | None, network: Network = None, *, seed: int) -> Encoder:
    """An encoder of observations of a shape: rows (d,), images (64, 64), or what `network` takes.

    >>> make_encoder((64, 64, 3), 10, seed=0)(torch.zeros(2, 64, 64, 3)).shape
    torch.Size([2, 10])
    """
    rows = len(shape) == 1
    last = len(shape) == 3 and shape[:2] == (64, 64) and network is None
    enter = Whiten(shape[0]) if rows else Pixels(channels_last=last)
    if isinstance(network, nn.Module):
        return Encoder(enter, copy.deepcopy(network))  # an estimator's parameters stay untouched
    if n is None:
        if not rows:
            raise InputError("n_components must be given for images")
        n = shape[0]
    if network is not None:
        function("network", network)
        with torch.random.fork_rng(devices=[]):  # torch's own layers draw from the global state
            torch.default_generator.manual_seed(seed)
            made = network(shape, n)
        if not isinstance(made, nn.Module):
            raise InputError(f"network must return a module, got {type(made).__name__}")
        return Encoder(enter, made)
    if rows:
        return Encoder(enter, MLP(shape[0], n, seed=seed))
    if shape[-2:] == (64, 64) or last:
        channels = 1 if len(shape) == 2 else shape[-1] if last else shape[0]
        return Encoder(enter, ConvEncoder(n, channels=channels, seed=seed))
    raise InputError(
        f"network must be given for observations of shape {shape}: there are networks for rows and "
        "for images of 64×64"
    )
