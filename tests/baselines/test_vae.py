"""The autoencoders against torch's own distributions, quadrature and what their definitions say."""

import math

import numpy as np
import pytest
import torch
from scipy.integrate import quad
from torch import nn
from torch.distributions import Bernoulli, Normal, kl_divergence

from identica import ConvEncoder, InputError, Pairs, Training, train
from identica.baselines import AdaGVAE, BetaVAE, SlowVAE
from identica.baselines.ada_gvae import shared
from identica.baselines.vae import ConvDecoder

ALL = [BetaVAE, SlowVAE, AdaGVAE]


def normal(seed, n=6, codes=4):
    generator = torch.Generator().manual_seed(seed)
    mean, log_std = torch.randn(2, n, codes, generator=generator, dtype=torch.float64)
    return Normal(mean, log_std.exp())


def pairs(size=3, seed=0, dtype=torch.uint8):
    generator = torch.Generator().manual_seed(seed)
    x, x_pos = (torch.rand(2, size, 64, 64, generator=generator) < 0.2).to(dtype)
    z = torch.zeros(size, 1)
    return Pairs(z, z, x, x_pos)


def test_shared_codes_one_by_one():
    q = normal(2, n=100)
    found = shared(q)
    differ = kl_divergence(Normal(q.mean[:50], q.stddev[:50]), Normal(q.mean[50:], q.stddev[50:]))
    count = 0
    for i, j in np.ndindex(50, 4):
        alike = differ[i, j] < (differ[i].min() + differ[i].max()) / 2
        count += alike
        pair = [i, 50 + i]
        for k in pair:
            mean = (q.mean[pair, j].mean() if alike else q.mean[k, j]).item()
            var = (q.variance[pair, j].mean() if alike else q.variance[k, j]).item()
            assert found.mean[k, j].item() == pytest.approx(mean)
            assert found.variance[k, j].item() == pytest.approx(var)
    assert 50 < count < 150  # at least one of each pair is, at least one is not


def test_the_decoder_mirrors_the_encoder():
    def shapes(network):
        kinds = (nn.Linear, nn.Conv2d, nn.ConvTranspose2d)
        layers = [layer for layer in network.modules() if isinstance(layer, kinds)]
        return [tuple(layer.weight.shape) for layer in layers]

    # a layer's transpose has its numbers of inputs and outputs swapped: so has its weight's shape
    there, back = shapes(ConvEncoder(7)), shapes(ConvDecoder(7))
    assert back[1:] == there[-2::-1]
    assert back[0] == there[-1][::-1]
    assert ConvDecoder(7, channels=3)(torch.zeros(2, 7)).shape == (2, 3, 64, 64)


@pytest.mark.parametrize("vae", [BetaVAE, SlowVAE, AdaGVAE])
def test_small_networks_are_smaller_and_learn(vae):
    small, published = vae(3, network="small"), vae(3)
    sizes = [sum(p.numel() for p in network.parameters()) for network in (small, published)]
    assert 3 * sizes[0] < sizes[1]
    x = torch.zeros(4, 64, 64, dtype=torch.uint8)
    x[:, 10:20, 10:20] = 1
    small(Pairs(x, x, x, x)).backward()
    assert small.codes(x).shape == (4, 3)
    assert small.decoder(small.codes(x)).shape == (4, 1, 64, 64)
    for part in (small.encoder, small.decoder):
        assert all(p.grad is not None for p in part.parameters())


def to_laplace(q, centre, rate):
    """−E_q log Laplace(z; centre, 1/rate) of each code, by quadrature."""
    found = torch.empty_like(q.mean)
    for k in np.ndindex(tuple(found.shape)):
        mean, std, c = (float(values[k].detach()) for values in (q.mean, q.stddev, centre))

        def integrand(z, mean=mean, std=std, c=c):
            log_q = -((z - mean) ** 2) / (2 * std**2) - math.log(std * math.sqrt(2 * math.pi))
            return math.exp(log_q) * (rate * abs(z - c) - math.log(rate / 2))

        found[k] = quad(integrand, mean - 12 * std, mean + 12 * std, points=[c], limit=200)[0]
    return found


def by_hand(vae, batch, noise):
    """The objective from its definition, with torch's distributions and quadrature."""
    both = torch.cat([batch.x, batch.x_pos])
    mean, log_var = vae.encoder(both).chunk(2, dim=1)
    q = Normal(mean, (log_var / 2).exp())
    if isinstance(vae, AdaGVAE):
        q = shared(q)
    z = q.mean + q.stddev * noise
    likelihood = Bernoulli(logits=vae.decoder(z)[:, 0]).log_prob(both.float()).sum((1, 2))
    to_prior = kl_divergence(q, Normal(torch.tensor(0.0), torch.tensor(1.0))).sum(1)
    if not isinstance(vae, SlowVAE):
        return (vae.beta * to_prior - likelihood).mean()
    first, second = q.mean.chunk(2)
    step = to_laplace(q, torch.cat([second, first]), vae.rate) - vae.entropy * q.entropy()
    step = step.sum(1)
    return -2 * likelihood.mean() + vae.beta * to_prior.mean() + vae.gamma * 2 * step.mean()


@pytest.mark.parametrize("kind", ALL)
def test_the_objective_is_its_definition(kind):
    vae, batch = kind(5, seed=4), pairs()
    noise = torch.randn(6, 5, generator=torch.Generator().set_state(vae.noise.get_state()))
    torch.testing.assert_close(vae(batch), by_hand(vae, batch, noise))


def test_the_published_weights_are_the_defaults():
    assert BetaVAE().beta == 8
    slow = SlowVAE()
    assert (slow.beta, slow.gamma, slow.rate, slow.entropy) == (1, 10, 6, 0.5)
    assert AdaGVAE().beta == 1


@pytest.mark.parametrize("kind", ALL)
def test_codes_are_the_means_whatever_the_type_of_the_pixels(kind):
    vae, batch = kind(5, seed=1), pairs()
    codes = vae.codes(batch.x)
    assert codes.shape == (3, 5)
    torch.testing.assert_close(codes, vae.encoder(batch.x)[:, :5])
    torch.testing.assert_close(codes, vae.codes(batch.x.float()))
    torch.testing.assert_close(codes, kind(5, seed=1, scale=255).codes(batch.x * 255))
    other = kind(5, seed=2).codes(batch.x)
    assert not torch.allclose(codes, other)


def test_colours_and_bytes():
    generator = torch.Generator().manual_seed(0)
    x = torch.randint(256, (2, 3, 64, 64), generator=generator, dtype=torch.uint8)
    z = torch.zeros(2, 1)
    first = BetaVAE(channels=3, scale=255)(Pairs(z, z, x, x))
    torch.testing.assert_close(
        first, BetaVAE(channels=3)(Pairs(z, z, *[x.float() / 255] * 2)), rtol=1e-4, atol=0
    )


@pytest.mark.parametrize("kind", ALL)
def test_a_run_that_was_stopped_comes_to_the_same_numbers(kind, tmp_path):
    training = Training(
        steps=4, batch=2, lr=1e-3, optimizer="adam", checkpoint_every=2, score_every=1
    )

    def run(out, stop=None):
        vae, asked = kind(3, seed=7), 0

        def sample(size, /, *, generator):
            nonlocal asked
            asked += 1
            if asked == stop:
                raise KeyboardInterrupt
            return pairs(size, int(torch.randint(1000, (), generator=generator)))

        history = train(vae, sample, training, out=out)
        return [record["loss"] for record in history.records], vae.state_dict()

    losses, weights = run(tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "stopped", stop=4)
    again, same = run(tmp_path / "stopped")
    assert again == losses
    assert len(set(losses)) == 4
    assert all(torch.equal(same[name], value) for name, value in weights.items())


@pytest.mark.parametrize("kind", ALL)
def test_every_draw_is_new_and_global_state_is_left_alone(kind):
    before = torch.get_rng_state()
    batch = pairs(dtype=torch.float64)  # an untrained decoder hardly minds the noise
    with torch.no_grad():
        vae = kind(3, seed=0).double()
        first, second = vae(batch), vae(batch)
        assert first != second
        assert kind(3, seed=0).double()(batch) == first
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("kind", ALL)
def test_it_learns(kind):
    x = torch.zeros(2, 2, 64, 64)
    x[0, 0, 8:24, 8:24] = x[0, 1, 40:56, 8:24] = x[1, :, 8:56, 30:40] = 1
    z = torch.zeros(2, 1)
    training = Training(steps=30, batch=2, lr=1e-3, optimizer="adam", score_every=1, warmup=5)
    vae, batch = kind(4, seed=0), Pairs(z, z, *x)
    records = train(vae, lambda size, /, *, generator: batch, training).records
    assert records[-1]["loss"] < 0.7 * records[0]["loss"]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: BetaVAE(0), "n must be a whole number"),
        (lambda: BetaVAE(beta=-1), "beta must be at least 0"),
        (lambda: SlowVAE(gamma=math.nan), "gamma must be a finite number"),
        (lambda: SlowVAE(rate=0), "rate must be greater than 0"),
        (lambda: AdaGVAE(beta=-1), "beta must be at least 0"),
        (lambda: AdaGVAE(channels=0), "channels must be a whole number"),
        (lambda: BetaVAE().codes(torch.zeros(2, 32, 32)), "x must hold images of 1×64×64"),
        (lambda: ConvDecoder(0), "n_in must be a whole number"),
        (lambda: ConvDecoder(2, widths=(8, 8)), "widths must be those of four layers, got 2"),
        (lambda: SlowVAE(network="tiny"), "network must be one of conv, small"),
    ],
)
def test_bad_input_is_named(make, said):
    with pytest.raises(InputError, match=said):
        make()
