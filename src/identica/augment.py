"""The image augmentations of SimCLR, each on a whole batch: every image draws its own.

Reference: Chen, Kornblith, Norouzi & Hinton, "A Simple Framework for Contrastive Learning of Visual
Representations" (ICML 2020), appendix A.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from identica._random import as_generator
from identica._validate import instance
from identica.errors import InputError

GREY = (0.299, 0.587, 0.114)  # luma of red, green, blue


def simclr(images: Tensor, *, generator: torch.Generator | int) -> Tensor:
    """All augmentations as published: crop, flip, colour jitter, grey, blur.

    Args:
        images: N×3×H×W, uint8 or floats in [0, 1].
        generator: a generator or a seed.

    Returns:
        N×3×H×W floats in [0, 1].

    >>> images = torch.rand(4, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    >>> simclr(images, generator=0).shape
    torch.Size([4, 3, 32, 32])
    """
    x, source = as_floats(images), as_generator(generator, images.device)
    x = resized_crop(x, source)
    x = colour_jitter(x, source)
    x = random_grey(x, source)
    return blur(x, source)


def as_floats(images: Tensor) -> Tensor:
    """Images N×3×H×W as floats in [0, 1]."""
    instance("images", images, Tensor, "a tensor of images")
    if images.ndim != 4 or images.shape[1] != 3:
        raise InputError(f"images must have shape N×3×H×W, got {tuple(images.shape)}")
    return images if images.is_floating_point() else images.float() / 255


def resized_crop(x: Tensor, generator: torch.Generator) -> Tensor:
    """A random crop of each image, resized to its full size and flipped with probability ½.

    The crop has a random share of the area (8 % to all) and a random ratio of width to height (3/4 to
    4/3, uniform in its logarithm), and lies anywhere within the image; sides that would exceed the
    image are clipped.
    """
    n = len(x)
    share = _uniform(n, 0.08, 1.0, generator, x)
    shape = _uniform(n, math.log(3 / 4), math.log(4 / 3), generator, x).exp()
    width = (share * shape).sqrt().clamp(max=1)
    height = (share / shape).sqrt().clamp(max=1)
    left = _uniform(n, -1, 1, generator, x) * (1 - width)  # of the middle, in [−1, 1]
    top = _uniform(n, -1, 1, generator, x) * (1 - height)
    mirrored = torch.where(_chance(n, 0.5, generator, x), -width, width)
    zero = torch.zeros_like(width)
    rows = [torch.stack([mirrored, zero, left], 1), torch.stack([zero, height, top], 1)]
    grid = F.affine_grid(torch.stack(rows, 1), list(x.shape), align_corners=False)
    # positions that rounding puts outside the image count as its border
    return F.grid_sample(x, grid, padding_mode="border", align_corners=False)


def colour_jitter(x: Tensor, generator: torch.Generator) -> Tensor:
    """Random brightness, contrast, saturation (factors 1 ± .8) and hue (± .2 of the circle), with
    probability .8 for each image."""
    n, y = len(x), x
    for blend in (torch.zeros_like, _mean_grey, grey):
        factor = _uniform(n, 1 - 0.8, 1 + 0.8, generator, x)[:, None, None, None]
        y = torch.lerp(blend(y), y, factor).clamp(0, 1)
    y = shift_hue(y, _uniform(n, -0.2, 0.2, generator, x))
    return torch.where(_chance(n, 0.8, generator, x)[:, None, None, None], y, x)


def random_grey(x: Tensor, generator: torch.Generator) -> Tensor:
    """Each image in grey with probability .2."""
    chosen = _chance(len(x), 0.2, generator, x)[:, None, None, None]
    return torch.where(chosen, grey(x), x)


def blur(x: Tensor, generator: torch.Generator) -> Tensor:
    """A Gaussian blur of random width (.1 to 2 pixels, with a kernel of a tenth of the image at most),
    with probability ½ for each image."""
    n, channels, height, width = x.shape
    sigma = _uniform(n, 0.1, 2.0, generator, x)
    chosen = _chance(n, 0.5, generator, x)
    reach = max(1, round(0.05 * min(height, width)))
    steps = torch.arange(-reach, reach + 1, dtype=x.dtype, device=x.device)
    kernel = torch.exp(-0.5 * (steps / sigma[:, None]).square())
    kernel = torch.where(chosen[:, None], kernel / kernel.sum(1, keepdim=True), (steps == 0).to(x))
    weight = kernel.repeat_interleave(channels, dim=0)[:, None]  # N·C×1×K
    flat = F.pad(x, (reach,) * 4, mode="replicate").reshape(1, n * channels, height + 2 * reach, -1)
    flat = F.conv2d(flat, weight[..., None], groups=n * channels)
    flat = F.conv2d(flat, weight[:, :, None], groups=n * channels)
    return flat.reshape(x.shape)


def grey(x: Tensor) -> Tensor:
    """The luma of each pixel in all three channels."""
    luma = x.new_tensor(GREY)[:, None, None]
    return (x * luma).sum(1, keepdim=True).expand_as(x)


def _mean_grey(x: Tensor) -> Tensor:
    return grey(x).mean(dim=(2, 3), keepdim=True).expand_as(x)


def shift_hue(x: Tensor, turn: Tensor) -> Tensor:
    """Shift the hue of N×3×H×W colours by N shares of the circle, keeping saturation and value.

    >>> red = torch.tensor([1.0, 0.0, 0.0]).reshape(1, 3, 1, 1)
    >>> shift_hue(red, torch.tensor([1 / 3])).flatten().round()
    tensor([0., 1., 0.])
    """
    value, low = x.amax(1), x.amin(1)
    chroma = value - low
    red, green, blue = x.unbind(1)
    safe = chroma.clamp(min=1e-8)
    sector = torch.where(
        value == red,
        (green - blue) / safe,
        torch.where(value == green, 2 + (blue - red) / safe, 4 + (red - green) / safe),
    )
    sector = sector + 6 * turn[:, None, None]
    channels = []
    for offset in (5, 3, 1):
        k = (sector + offset) % 6
        channels.append(value - chroma * torch.minimum(k, 4 - k).clamp(0, 1))
    return torch.stack(channels, 1)


def _uniform(n: int, low: float, high: float, generator: torch.Generator, like: Tensor) -> Tensor:
    unit = torch.rand(n, generator=generator, dtype=like.dtype, device=like.device)
    return low + (high - low) * unit


def _chance(n: int, p: float, generator: torch.Generator, like: Tensor) -> Tensor:
    return torch.rand(n, generator=generator, device=like.device) < p
