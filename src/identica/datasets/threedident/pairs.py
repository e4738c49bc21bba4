"""Pairs of 3DIdent images: rendered exactly, or matched among existing images."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from identica._tensors import points
from identica._validate import count, instance
from identica.augment import simclr
from identica.datasets.threedident.raycaster import SAMPLES, render
from identica.datasets.threedident.scene import FACTORS, check_factors, check_size, latents
from identica.datasets.threedident.storage import ImageSet, Tick, build
from identica.errors import InputError
from identica.mixing import Mixing
from identica.process import GenerativeProcess, Labelled, Pairs

if TYPE_CHECKING:
    from scipy.spatial import cKDTree

Rows = NDArray[np.signedinteger[Any]]
Sampler = Callable[..., Any]  # size, generator=… to a batch


class Renderer(Mixing):
    """g of 3DIdent: latents N×10 in [−1, 1] to images N×3×S×S (uint8), by the ray caster.

    As the mixing of a `GenerativeProcess` it renders exact positives on the fly, for any space of
    ten dimensions within [−1, 1]^10, such as `Box(10, -1, 1)`, `Sphere(10)` or a product of spheres.

    Args:
        size: side S of the images.
        samples: rays for a pixel.
        factors: those of `FACTORS` that the latents are, in this order; all others stay at 0.

    >>> from identica import Box, Normal, Uniform
    >>> process = GenerativeProcess(Box(10, -1, 1), Uniform(), Normal(0.2), Renderer(size=16))
    >>> process.sample(3, generator=0).x_pos.shape
    torch.Size([3, 3, 16, 16])
    >>> Renderer(size=16, factors=["x", "y", "z"])(torch.zeros(1, 3)).shape
    torch.Size([1, 3, 16, 16])
    """

    def __init__(
        self, size: int = 64, samples: int = 8, *, factors: Sequence[str] = FACTORS
    ) -> None:
        super().__init__()
        self.size, self.samples = check_size(size), count("samples", samples, at_most=SAMPLES)
        self.factors = check_factors(factors)
        self.dim, self.observed = len(self.factors), 3 * size * size

    def extra_repr(self) -> str:
        some = "" if self.factors == FACTORS else f", factors={self.factors}"
        return f"size={self.size}, samples={self.samples}{some}"

    def forward(self, z: Tensor) -> Tensor:
        """Images N×3×S×S of latents N×n."""
        points("z", z, self.dim)
        columns = dict(zip(self.factors, as_raw(z).T, strict=True))
        return as_images(self.draw(latents(**columns), self.size))

    def draw(self, raw_latents: NDArray[np.float64], size: int) -> NDArray[np.uint8]:
        """N×S×S×3 bytes of N×10 raw latents: what `build` asks for."""
        return render(raw_latents, size, self.samples)

    def inverse(self, x: Tensor) -> Tensor:
        raise InputError("a renderer has no inverse in closed form: train an encoder")


def as_raw(z: Tensor) -> NDArray[np.float64]:
    """Latents as an array; what rounding put outside [−1, 1] is put back."""
    raw = z.detach().cpu().double().numpy()
    inside = raw.clip(-1, 1)
    return np.where(np.abs(raw - inside) < 1e-6, inside, raw)


def as_images(images: NDArray[np.uint8]) -> Tensor:
    """N×S×S×3 bytes as a tensor N×3×S×S; nothing is copied, so it is in channels-last order."""
    return torch.from_numpy(images).permute(0, 3, 1, 2)


def neighbours(process: GenerativeProcess, data: ImageSet) -> Sampler:
    """A sampler of pairs as published: draw z and z̃, and take the images whose latents are nearest.

    Where z̃ finds the image of z itself, it takes the second nearest. The mixing of the process is not
    used. In a batch, z and z_pos are the latents of the images.

    Reference: Zimmermann et al. (ICML 2021), section 5.3.
    """
    from scipy.spatial import cKDTree

    instance("data", data, ImageSet, "an ImageSet")
    check_pairs(process, len(data))
    tree = cKDTree(data.raw_latents)

    def sample(size: int, /, *, generator: torch.Generator) -> Pairs:
        z = process.latents(size, generator=generator)
        z_pos = process.positives(z, generator=generator)
        found = nearest(tree, z.double().numpy(), z_pos.double().numpy())
        (z, x), (z_pos, x_pos) = (take(data, rows) for rows in found)
        return Pairs(z, z_pos, x, x_pos)

    return sample


def nearest(tree: cKDTree, z: NDArray[np.float64], z_pos: NDArray[np.float64]) -> tuple[Rows, Rows]:
    """The points of a tree nearest to z and to z̃, and for z̃ the second nearest where both are one.

    >>> from scipy.spatial import cKDTree
    >>> nearest(cKDTree([[0.0], [1.0], [5.0]]), np.array([[0.1], [0.2]]), np.array([[0.3], [4.0]]))
    (array([0, 0]), array([1, 2]))
    """
    rows = np.asarray(tree.query(z, workers=torch.get_num_threads())[1])
    both = np.asarray(tree.query(z_pos, k=2, workers=torch.get_num_threads())[1])
    return rows, np.where(both[:, 0] == rows, both[:, 1], both[:, 0])


def check_pairs(process: GenerativeProcess, n: int) -> None:
    """Raise unless pairs can be found among n images."""
    instance("process", process, GenerativeProcess, "a GenerativeProcess")
    if process.space.dim != len(FACTORS):
        raise InputError(f"process must have {len(FACTORS)} latents, got {process.space}")
    if n < 2:
        raise InputError("data must hold at least 2 images to form pairs")


def take(data: ImageSet, rows: Rows) -> tuple[Tensor, Tensor]:
    """Latents and images of the given rows."""
    return torch.from_numpy(data.raw_latents[rows]).float(), as_images(data.images(rows))


def rendered(
    folder: Path, process: GenerativeProcess, z: Tensor, *, tick: Tick | None = None
) -> ImageSet:
    """The images of latents N×10, rendered once into a folder by the `Renderer` of a process.

    Existing images are not rendered again, and several processes may render at the same time.
    """
    mixing = process.mixing
    if not isinstance(mixing, Renderer):
        raise InputError(f"process must have a Renderer as its mixing, got {mixing}")
    if mixing.factors != FACTORS:
        raise InputError("process must render all ten factors of 3DIdent for its images to be kept")
    settings = {"samples": mixing.samples}
    return build(folder, as_raw(z), mixing.draw, size=mixing.size, settings=settings, tick=tick)


def labelled(data: ImageSet) -> Sampler:
    """A sampler of images with their latents, for supervised training."""
    instance("data", data, ImageSet, "an ImageSet")

    def sample(size: int, /, *, generator: torch.Generator) -> Labelled:
        rows = torch.randint(len(data), (size,), generator=generator).numpy()
        return Labelled(*take(data, rows))

    return sample


def augmented(data: ImageSet) -> Sampler:
    """A sampler of pairs as in SimCLR: two augmented views of the same image."""
    single = labelled(data)

    def sample(size: int, /, *, generator: torch.Generator) -> Pairs:
        z, x = single(size, generator=generator)
        return Pairs(z, z, simclr(x, generator=generator), simclr(x, generator=generator))

    return sample
