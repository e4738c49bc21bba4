import json

import numpy as np
import pytest
import torch
from sklearn.decomposition import PCA

from identica import MLP, ConvEncoder, InputError
from identica.estimator.networks import (
    Columns,
    Encoder,
    Pixels,
    Principal,
    RowNetwork,
    Whiten,
    blank_encoder,
    convolutional,
    describe,
    given_network,
    width,
)


def test_whitened_rows_have_no_covariance_whatever_their_units():
    rng = np.random.default_rng(0)
    mixing = rng.normal(size=(4, 4)) * [1e-6, 1.0, 1e5, 1.0]
    x = torch.from_numpy(rng.normal(size=(5000, 4)) @ mixing + [1e4, 0.0, 1.0, -5.0])
    whiten = Whiten(4)
    whiten.measure(x)
    assert np.allclose(np.cov(whiten(x).T), np.eye(4), atol=1e-3)


def test_constant_and_repeated_columns_stay_finite():
    x = torch.randn(100, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    x = torch.cat([x, x, torch.full_like(x, 7.0)], dim=1)
    whiten = Whiten(3)
    whiten.measure(x)
    codes = whiten(x)
    assert torch.isfinite(codes).all()
    assert codes.abs().max() < 10


def test_weak_directions_are_blown_up_a_hundredfold_at_most():
    """Two columns that are nearly alike: their difference is far below a hundredth of their sum."""
    x, noise = torch.randn(
        2, 5000, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(0)
    )
    pair = torch.cat([x, x + 1e-4 * noise], dim=1)
    whiten = Whiten(2)
    whiten.measure(pair)
    weak, strong = (float(s) for s in whiten(pair).std(0))
    assert strong == pytest.approx(1, abs=1e-3)
    # the difference has a standard deviation of 1e-4/√2 and the sum of √2; the floor is at √2/100
    assert weak == pytest.approx(1e-4 / 2**0.5 / (2**0.5 / 100), rel=0.05)
    plain = Whiten(2)
    plain.measure(torch.cat([x, x + 0.1 * noise], dim=1))  # above the floor
    assert torch.allclose(
        plain(torch.cat([x, x + 0.1 * noise], dim=1)).std(0), torch.ones(2), atol=1e-3
    )


@pytest.mark.parametrize(("scale", "offset"), [(1e-300, 0.0), (1.0, 1e13), (1e300, -1e301)])
def test_units_and_offsets_do_not_matter(scale, offset):
    x = torch.randn(1000, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    x[:, 1] += x[:, 0]
    here, there = Whiten(4), Whiten(4)
    here.measure(x)
    there.measure(scale * x + offset)
    # numbers around 1e13 are 2⁻⁹ apart, and are off by half of that
    assert torch.allclose(here(x), there(scale * x + offset), atol=0.01)


def test_what_float64_cannot_tell_apart_is_named():
    rows = torch.rand(10, 3, dtype=torch.float64)
    for constant in (torch.zeros(10, 3), rows + 1e17, (rows + 1e15).float()):
        with pytest.raises(InputError, match="X must vary"):
            Whiten(3).measure(constant)
    with pytest.raises(InputError, match="X must span less than"):
        Whiten(3).measure(torch.tensor([[1.5e308] * 3, [-1.5e308] * 3], dtype=torch.float64))


def test_wide_rows_are_scaled_column_by_column():
    x = torch.randn(50, 1200, generator=torch.Generator().manual_seed(0)) * 3 + 1
    whiten = Whiten(1200)
    whiten.measure(x)
    assert np.allclose(whiten(x).std(0, correction=0), 1, atol=1e-4)
    assert sum(b.numel() for b in whiten.buffers()) == 2 * 1200


# --- very wide rows ---------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1.0, 1e-300, 1e200])
def test_very_wide_rows_are_projected_on_their_principal_components(scale):
    rng = np.random.default_rng(0)
    z = rng.normal(size=(60, 4)) * [8.0, 4.0, 2.0, 1.0]
    x = z @ rng.normal(size=(4, 500)) + 3.0
    principal = Principal(500, 4)
    principal.measure(torch.from_numpy(x * scale))
    found = principal(torch.from_numpy(x * scale)).double().numpy()[:, ::-1]
    expected = PCA(4).fit_transform(x) / np.sqrt(x.var(0).mean())
    signs = np.sign((found * expected).sum(0))
    assert np.allclose(found * signs, expected, atol=1e-4 * expected.std(0).max())


def test_directions_beyond_the_rank_are_zero():
    x = torch.randn(30, 2, generator=torch.Generator().manual_seed(0)) @ torch.ones(2, 500)
    x[:, 7] = 5.0  # a constant column
    principal = Principal(500, 10)
    principal.measure(x)
    codes = principal(x)
    assert codes.isfinite().all()
    assert (codes.abs().amax(0) > 0).sum() <= 2
    assert torch.equal(principal.directions[7], torch.zeros(10))


# --- networks for rows ------------------------------------------------------------------------------


def row_network(n, *, raw=False, columns=6, k=4):
    matrix = torch.randn(columns, k, generator=torch.Generator().manual_seed(0))
    return matrix, RowNetwork((columns, k), n, (8, 8), raw=raw, seed=0).start(matrix, seed=1)


@pytest.mark.parametrize("raw", [False, True])
def test_a_network_for_rows_adds_a_linear_map_and_an_mlp(raw):
    matrix, network = row_network(3, raw=raw)
    x = torch.randn(5, 6, generator=torch.Generator().manual_seed(2))
    u = x @ matrix
    expected = u @ network.linear.weight.T + network.mlp(x if raw else u)
    assert torch.allclose(network(x), expected, atol=1e-6)
    assert network.mlp.layers[0].in_features == (6 if raw else 4)


@pytest.mark.parametrize("n", [2, 4, 7])
def test_the_linear_map_begins_as_a_rotation_of_the_last_directions(n):
    """So it folds nothing, and loses none of the n most predictable directions."""
    _, network = row_network(n)
    weight, most = network.linear.weight.detach(), min(n, 4)
    assert torch.equal(weight[:, : 4 - most], torch.zeros(n, 4 - most))
    rotation = weight[:, 4 - most :]
    assert torch.allclose(rotation.T @ rotation, torch.eye(most), atol=1e-5)


def test_seeds_decide_the_start_and_nothing_else_does():
    before = torch.get_rng_state()
    first, again = (row_network(3)[1].state_dict() for _ in range(2))
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert torch.equal(torch.get_rng_state(), before)


def test_no_network_on_meta_takes_memory():
    with torch.device("meta"):
        network = RowNetwork((10**6, 10**6), 10**6, (10**6,))
        images = ConvEncoder(10**9)
    assert {p.device.type for p in [*network.parameters(), *images.parameters()]} == {"meta"}


# --- images and networks that are given -------------------------------------------------------------


@pytest.mark.parametrize(
    "shape", [(64, 64), (3, 64, 64), (64, 64, 1), (16, 20), (28, 28, 1), (1, 28, 28), (48, 100, 3)]
)
def test_networks_for_images(shape):
    pixels, network = convolutional(shape, 3, seed=0)
    images = torch.rand(4, *shape, generator=torch.Generator().manual_seed(0))
    pixels.measure(images)
    encoder = Encoder(pixels, network)
    assert encoder(images).shape == (4, 3)
    assert width(encoder, shape) == 3


@pytest.mark.parametrize("shape", [(5,), (8, 8), (64, 15), (3, 8, 8), (64, 64, 3, 1)])
def test_other_shapes_have_no_convolutional_network(shape):
    assert convolutional(shape, 3, seed=0) is None


@pytest.mark.parametrize(
    ("shape", "channels", "last"),
    [
        ((64, 64, 64), 64, True),
        ((3, 48, 100), 3, False),
        ((48, 100, 3), 3, True),
        ((40, 40, 128), 128, True),
        ((128, 40, 40), 128, False),
    ],
)
def test_channels_are_told_from_sides(shape, channels, last):
    pixels, network = convolutional(shape, 3, seed=0)
    assert (network.channels, pixels.channels_last) == (channels, last)


@pytest.mark.parametrize("times", [2, 3])
def test_larger_images_are_averaged_and_smaller_ones_repeated(times):
    small = torch.rand(3, 64, 64, generator=torch.Generator().manual_seed(0))
    large = small.repeat_interleave(times, 1).repeat_interleave(times, 2)
    assert torch.allclose(Pixels(pooled=True)(large), small)
    assert torch.allclose(
        Pixels(pooled=True)(small[:, :32, :32]),
        small[:, :32, :32].repeat_interleave(2, 1).repeat_interleave(2, 2),
    )
    assert torch.equal(Pixels(pooled=True)(small), small)


def test_bytes_are_told_from_masks():
    images = torch.full((2, 64, 64), 255, dtype=torch.uint8)
    pixels = Pixels()
    pixels.measure(images)
    ones = pixels(images)
    pixels.measure(images // 255)
    assert torch.equal(ones, pixels(images // 255))


def test_networks_that_are_given():
    module = MLP(3, 2, hidden=(4,))
    copied = given_network(module, (3,), 2, seed=5)
    assert copied is not module
    assert torch.equal(copied.layers[0].weight, module.layers[0].weight)
    made = [given_network(lambda s, n: torch.nn.Linear(*s, n), (3,), 2, seed=k) for k in (0, 0, 1)]
    assert torch.equal(made[0].weight, made[1].weight)
    assert not torch.equal(made[0].weight, made[2].weight)
    with pytest.raises(InputError, match="network must return a module, got int"):
        given_network(lambda s, n: 3, (3,), 2, seed=0)
    with pytest.raises(InputError, match="network must"):
        given_network("mlp", (3,), 2, seed=0)
    with pytest.raises(InputError, match=r"network must give codes N×n, got \(6,\)"):
        width(Encoder(Columns(3), torch.nn.Flatten(0)), (3,))


@pytest.mark.parametrize(
    ("shape", "encoder"),
    [
        ((6,), Encoder(Columns(6), row_network(3)[1])),
        ((6,), Encoder(Columns(6), row_network(3, raw=True)[1])),
        ((500,), Encoder(Principal(500, 6), row_network(3)[1])),
        ((5, 100), Encoder(Principal(500, 6), row_network(3)[1])),
        ((64, 64, 2), Encoder(*convolutional((64, 64, 2), 3, seed=0))),
        ((20, 30), Encoder(*convolutional((20, 30), 3, seed=0))),
    ],
)
def test_an_encoder_is_made_again_from_its_description(shape, encoder):
    found = json.loads(json.dumps(describe(encoder)))
    other = blank_encoder(found, shape, 3, None)
    other.load_state_dict(encoder.state_dict())
    x = torch.rand(4, *shape, generator=torch.Generator().manual_seed(0))
    assert torch.equal(other(x), encoder(x))


def test_the_description_of_a_network_that_is_given():
    encoder = Encoder(Whiten(6), MLP(6, 3, hidden=(4,)))
    encoder.enter.measure(torch.randn(20, 6, generator=torch.Generator().manual_seed(0)))
    other = blank_encoder(describe(encoder), (6,), 3, MLP(6, 3, hidden=(4,), seed=9))
    other.load_state_dict(encoder.state_dict())
    assert torch.equal(other(torch.ones(2, 6)), encoder(torch.ones(2, 6)))


# --- devices without double precision ---------------------------------------------------------------


def without_doubles(tensor):
    """What moving a tensor to an Apple GPU does, on the CPU."""
    if tensor.dtype == torch.float64:
        raise TypeError("Cannot convert a MPS Tensor to float64 dtype")
    return tensor.clone()


def test_scales_stay_in_double_precision_on_a_device_without_it():
    x = torch.randn(200, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) + 1e9
    encoder = Encoder(Whiten(3), MLP(3, 2))
    encoder.enter.measure(x)
    before, weight = encoder(x), encoder.network.layers[0].weight.data_ptr()
    encoder._apply(without_doubles)
    assert encoder.network.layers[0].weight.data_ptr() != weight  # the network has moved
    assert encoder.enter.mean.dtype == torch.float64
    assert torch.equal(encoder(x), before)


@pytest.mark.parametrize(("ulps", "varies"), [(12, True), (4, False)])
def test_columns_that_vary_by_rounding_are_constant(ulps, varies):
    """A standard deviation of less than four units in the last place, of a column at 1."""
    step = ulps * 2.0**-52
    x = torch.ones(40, 2, dtype=torch.float64)
    x[::2, 0] += step
    x[:, 1] = torch.arange(40)
    columns = Columns(2)
    columns.measure(x)
    assert bool(columns.scale[0].isfinite()) == varies


def test_measured_rows_are_returned_standardised():
    x = (
        torch.randn(50, 3, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 3
        + 1
    )
    x[:, 1, 1] = 4.0
    columns = Columns(6)
    found = columns.measure(x)
    flat = x.flatten(1).numpy()
    expected = flat - flat.mean(0)
    expected[:, [0, 1, 2, 4, 5]] /= flat.std(0)[[0, 1, 2, 4, 5]]
    assert np.allclose(found, expected, atol=1e-12)
    assert np.allclose(columns.scale[[0, 5]], flat.std(0)[[0, 5]])
    assert np.allclose(columns.mean, flat.mean(0))
    assert np.allclose(columns(x), expected, atol=1e-5)


def test_eigenvectors_have_the_sign_of_their_first_places():
    x = torch.randn(200, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    whiten = Whiten(4)
    whiten.measure(x)
    assert (whiten.directions.double().T @ (1 / torch.arange(1.0, 5.0).double()) > 0).all()
    strong = torch.tensor([3.0, 0.0, -2.0, 0.0])
    principal = Principal(4, 1)
    principal.measure(x[:, :1] * strong + 0.1 * x)
    assert principal.directions.shape == (4, 1)


def test_the_mlp_starts_small():
    matrix, network = row_network(3)
    plain = MLP(4, 3, (8, 8), seed=0)
    assert torch.allclose(network.mlp.layers[-1].weight, 0.3 * plain.layers[-1].weight)
    assert torch.equal(network.mlp.layers[0].weight, plain.layers[0].weight)
    assert torch.equal(network.mlp.layers[-1].bias, plain.layers[-1].bias)
    turn = torch.linalg.qr(torch.randn(3, 3, generator=torch.Generator().manual_seed(1)))[0]
    assert torch.allclose(network.linear.weight[:, 1:], turn, atol=1e-6)
    assert torch.equal(network.matrix, matrix)


@pytest.mark.parametrize(
    ("shape", "pooled"),
    [
        ((64, 64), False),
        ((64, 64, 3), False),
        ((3, 64, 64), False),
        ((64, 65), True),
        ((16, 16), True),
    ],
)
def test_images_of_64_by_64_are_taken_as_they_are(shape, pooled):
    pixels, _ = convolutional(shape, 2, seed=0)
    assert pixels.pooled == pooled
    assert pixels.channels_last == (shape == (64, 64, 3))


def test_pictures_with_one_value_or_beyond_float32():
    pixels = Pixels()
    pixels.measure(torch.zeros(2, 4, 4))
    assert pixels.scale == 1
    pixels.measure(torch.full((2, 4, 4), 2, dtype=torch.uint8))
    assert pixels.scale == 255
    for values in ([1.0, 1 + 1e-12], [0.0, 1e300]):
        with pytest.raises(InputError, match="a range that float32 can represent"):
            pixels.measure(torch.tensor(values, dtype=torch.float64))
