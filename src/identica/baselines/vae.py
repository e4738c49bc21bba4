"""What all variational autoencoders share: networks, Gaussian posteriors, likelihood and noise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils import skip_init

from identica._random import as_generator
from identica._validate import count, one_of, positive
from identica.encoders import ConvEncoder, initialise
from identica.errors import InputError
from identica.process import Pairs
from identica.resnet import SmallResNet


class Gaussian(NamedTuple):
    """Independent normals for each code: means and logarithms of the variances, both N×n."""

    mean: Tensor
    log_var: Tensor

    def draw(self, generator: torch.Generator) -> Tensor:
        """One reparametrised draw each, so that gradients reach mean and variance."""
        noise = torch.randn(self.mean.shape, generator=generator).to(self.mean)
        return self.mean + (self.log_var / 2).exp() * noise

    def halves(self) -> tuple[Gaussian, Gaussian]:
        """The posteriors of the first and of the second members of the pairs."""
        means, log_vars = self.mean.chunk(2), self.log_var.chunk(2)
        return Gaussian(means[0], log_vars[0]), Gaussian(means[1], log_vars[1])


def kl_to_standard(q: Gaussian) -> Tensor:
    """KL(q ‖ N(0, 1)) of each code, N×n, in nats.

    >>> kl_to_standard(Gaussian(torch.tensor([2.0]), torch.tensor([0.0])))
    tensor([2.])
    """
    return (q.mean**2 + q.log_var.exp() - 1 - q.log_var) / 2


class ConvDecoder(nn.Module):
    """The mirror image of `ConvEncoder`: from codes N×n to the logits of images N×C×64×64.

    Args:
        n_in: number of codes n.
        channels: C.
        hidden: width of the first layer.
        widths: channels of images of 4, 8, 16 and 32 pixels a side.
        seed: determines the initial weights.

    >>> ConvDecoder(10)(torch.zeros(2, 10)).shape
    torch.Size([2, 1, 64, 64])
    """

    def __init__(
        self,
        n_in: int,
        *,
        channels: int = 1,
        hidden: int = 256,
        widths: Sequence[int] = (64, 64, 32, 32),
        seed: int = 0,
    ) -> None:
        super().__init__()
        if len(widths) != 4:
            raise InputError(f"widths must be those of four layers, got {len(widths)}")
        self.layers = nn.Sequential(
            skip_init(nn.Linear, count("n_in", n_in), count("hidden", hidden)),
            nn.Unflatten(1, (hidden, 1, 1)),
            nn.ReLU(),
            skip_init(nn.ConvTranspose2d, hidden, widths[0], 4),
        )
        for fan_in, fan_out in pairwise([*widths, count("channels", channels)]):
            up = skip_init(nn.ConvTranspose2d, fan_in, fan_out, 4, 2, 1)
            self.layers.extend([nn.ReLU(), up])
        initialise(self, seed)
        self.layers.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def forward(self, codes: Tensor) -> Tensor:
        """Logits of images N×C×64×64."""
        return self.layers(codes)


# encoder and decoder: the published ones, and ones that train faster
NETWORKS: dict[str, tuple[Callable[..., nn.Module], Callable[..., nn.Module]]] = {
    "conv": (ConvEncoder, ConvDecoder),
    "small": (
        partial(
            SmallResNet, widths=(16, 32, 48), unsigned=False, maps=4, hidden=128, blocks=0, pool=2
        ),
        partial(ConvDecoder, hidden=128, widths=(32, 32, 24, 16)),
    ),
}


class VAE(nn.Module):
    """Encoder, decoder and the noise between them; subclasses differ in their objectives.

    The state of the noise generator is saved with the weights, so that training resumed from a
    checkpoint gives the same numbers.

    Args:
        n: number of codes.
        channels: colours C of the images, N×64×64 for one or N×C×64×64, of values between 0 and 1
            (whole numbers are divided by `scale`).
        scale: what whole numbers are divided by.
        network: "conv", as published, or "small", which trains faster on simple shapes.
        seed: determines the initial weights and the noise.
    """

    def __init__(
        self,
        n: int = 10,
        *,
        channels: int = 1,
        scale: float = 1.0,
        network: str = "conv",
        seed: int = 0,
    ) -> None:
        super().__init__()
        encoder_seed, decoder_seed, noise_seed = 3 * seed, 3 * seed + 1, 3 * seed + 2
        encoder, decoder = NETWORKS[one_of("network", network, NETWORKS)]
        self.scale = positive("scale", scale)
        self.encoder = encoder(2 * count("n", n), channels=channels, scale=scale, seed=encoder_seed)
        self.decoder = decoder(n, channels=channels, seed=decoder_seed)
        self.noise = as_generator(noise_seed)

    def get_extra_state(self) -> Tensor:
        return self.noise.get_state()

    def set_extra_state(self, state: Tensor) -> None:
        self.noise.set_state(state)

    def posterior(self, x: Tensor) -> Gaussian:
        """q(z | x) for each image."""
        return Gaussian(*self.encoder(x).chunk(2, dim=1))

    def codes(self, x: Tensor) -> Tensor:
        """The means of q(z | x), N×n."""
        return self.posterior(x).mean

    def misfit(self, x: Tensor, codes: Tensor) -> Tensor:
        """−log p(x | z) in nats, mean over images, with independent Bernoulli pixels."""
        x = x if x.is_floating_point() else x.float() / self.scale
        logits = self.decoder(codes)
        if x.numel() != logits.numel():
            raise InputError(f"x must have one image for each of the {len(codes)} codes")
        wrong = nn.functional.binary_cross_entropy_with_logits(
            logits, x.reshape(logits.shape), reduction="sum"
        )
        return wrong / len(codes)


def images(pairs: Pairs) -> Tensor:
    """The first and then the second members of the pairs, 2N images."""
    return torch.cat([pairs.x, pairs.x_pos])
