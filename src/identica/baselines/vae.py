"""Base class of the variational autoencoders: networks, normal posteriors, likelihood and noise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.distributions import Normal, kl_divergence
from torch.nn.utils import skip_init

from identica._random import as_generator
from identica._validate import count, nonnegative, one_of, positive
from identica.encoders import ConvEncoder, initialise
from identica.errors import InputError
from identica.process import Pairs
from identica.resnet import SmallResNet


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
        beta: β, the weight of the divergence from the prior.
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
        beta: float = 1.0,
        channels: int = 1,
        scale: float = 1.0,
        network: str = "conv",
        seed: int = 0,
    ) -> None:
        super().__init__()
        encoder, decoder = NETWORKS[one_of("network", network, NETWORKS)]
        self.beta, self.scale = nonnegative("beta", beta), positive("scale", scale)
        count("seed", seed, at_least=0, at_most=2**61)
        self.encoder = encoder(2 * count("n", n), channels=channels, scale=scale, seed=3 * seed)
        self.decoder = decoder(n, channels=channels, seed=3 * seed + 1)
        self.noise = as_generator(3 * seed + 2)

    def get_extra_state(self) -> Tensor:
        return self.noise.get_state()

    def set_extra_state(self, state: Tensor) -> None:
        self.noise.set_state(state)

    def posterior(self, x: Tensor) -> Normal:
        """q(z | x), independent normals for each code, N×n."""
        mean, log_var = self.encoder(x).chunk(2, dim=1)
        return normal(mean, (log_var / 2).exp())

    def codes(self, x: Tensor) -> Tensor:
        """The means of q(z | x), N×n."""
        return self.posterior(x).mean

    def terms(self, x: Tensor, q: Normal) -> tuple[Tensor, Tensor]:
        """E[−log p(x | z)] with independent Bernoulli pixels and one draw z ~ q for each image, and
        β·KL(q ‖ N(0, I)); both in nats, mean over images."""
        noise = torch.randn(q.mean.shape, generator=self.noise).to(q.mean)
        logits = self.decoder(q.mean + q.stddev * noise)
        pixels = x if x.is_floating_point() else x.float() / self.scale
        misfit = nn.functional.binary_cross_entropy_with_logits(
            logits, pixels.reshape(logits.shape), reduction="sum"
        )
        prior = normal(torch.zeros_like(q.mean), torch.ones_like(q.mean))
        return misfit / len(x), self.beta * kl_divergence(q, prior).sum(1).mean()


def normal(mean: Tensor, std: Tensor) -> Normal:
    """Normal distributions, without the checks that would slow down every step."""
    return Normal(mean, std, validate_args=False)


def images(pairs: Pairs) -> Tensor:
    """The first and then the second members of the pairs, 2N images."""
    return torch.cat([pairs.x, pairs.x_pos])
