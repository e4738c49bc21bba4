import colorsys
import math

import numpy as np
import pytest
import torch
from scipy import ndimage

from identica import InputError
from identica.augment import (
    blur,
    colour_jitter,
    grey,
    random_grey,
    resized_crop,
    shift_hue,
    simclr,
)


def source(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.fixture
def images():
    return torch.rand(40, 3, 24, 20, generator=source(7))


def test_everything_comes_from_the_generator(images):
    before = torch.get_rng_state()
    a, b, c = (simclr(images, generator=seed) for seed in (1, 1, 2))
    assert torch.equal(a, b)
    assert not torch.equal(a, c)
    assert torch.equal(torch.get_rng_state(), before)
    assert a.shape == images.shape
    assert a.min() >= -1e-6
    assert a.max() <= 1 + 1e-6


def test_bytes_and_floats_are_the_same_image(images):
    whole = (255 * images).byte()
    a, b = simclr(whole, generator=0), simclr(whole.float() / 255, generator=0)
    assert torch.equal(a, b)
    with pytest.raises(InputError, match="images must be a tensor of images, got a list"):
        simclr([[0.0]], generator=0)
    with pytest.raises(InputError, match="N×3×H×W"):
        simclr(images[:, :2], generator=0)


def test_a_crop_is_a_part_of_the_image_with_the_right_area():
    # an image of its own coordinates tells which part of it was taken
    y, x = torch.meshgrid(torch.linspace(-1, 1, 64), torch.linspace(-1, 1, 64), indexing="ij")
    where = torch.stack([x, y, torch.ones_like(x)]).expand(2000, 3, 64, 64)
    crop = resized_crop(where, source())
    assert crop[:, 2].min() > 0.999  # nothing from outside
    assert crop.abs().max() <= 1 + 1e-5
    # slopes in the middle, where the rim does not matter
    slope_x = (crop[:, 0, 32, 40] - crop[:, 0, 32, 24]) / (
        where[0, 0, 32, 40] - where[0, 0, 32, 24]
    )
    slope_y = (crop[:, 1, 40, 32] - crop[:, 1, 24, 32]) / (
        where[0, 1, 40, 32] - where[0, 1, 24, 32]
    )
    assert (slope_y > 0).all()
    assert 0.45 < (slope_x < 0).float().mean() < 0.55  # mirrored every other time
    width, height = slope_x.abs(), slope_y
    area, ratio = width * height, width / height
    assert area.min() > 0.079
    inside = (width < 0.99) & (height < 0.99)
    assert ratio[inside].min() > 0.74
    assert ratio[inside].max() < 1.35
    # in small ones nothing is cut to the image: their area is uniform
    small = area[area < 0.5].numpy()
    assert abs(np.mean(small) - (0.08 + 0.5) / 2) < 0.02
    # crops lie anywhere within: their middle reaches the rim of what is possible
    middle = crop[:, 0, 31:33, 31:33].mean(dim=(1, 2))
    share = middle / (1 - width).clamp(min=1e-3)
    assert share[width < 0.8].std() == pytest.approx(1 / math.sqrt(3), abs=0.05)


def test_the_hue_turns_as_in_the_standard_library(images):
    turn = torch.linspace(-0.5, 0.5, len(images))
    turned = shift_hue(images, turn)
    for n in (0, 7, 39):
        for i, j in ((0, 0), (5, 13), (23, 19)):
            h, s, v = colorsys.rgb_to_hsv(*images[n, :, i, j].tolist())
            wanted = colorsys.hsv_to_rgb((h + float(turn[n])) % 1, s, v)
            assert turned[n, :, i, j].tolist() == pytest.approx(wanted, abs=1e-5)
    plain = torch.full((1, 3, 2, 2), 0.3)
    assert torch.allclose(shift_hue(plain, torch.tensor([0.2])), plain)


def test_grey_has_the_luma_and_comes_one_time_in_five():
    x = torch.rand(3000, 3, 2, 2, generator=source())
    luma = 0.299 * x[:, 0] + 0.587 * x[:, 1] + 0.114 * x[:, 2]
    assert torch.allclose(grey(x)[:, 1], luma, atol=1e-6)
    found = random_grey(x, source())
    changed = (found != x).flatten(1).any(1)
    assert 0.17 < changed.float().mean() < 0.23
    assert torch.equal(found[changed], grey(x)[changed])


def test_colours_change_in_four_images_of_five_and_as_much_as_told(images):
    x = torch.full((2000, 3, 4, 4), 0.25)
    found = colour_jitter(x, source())
    changed = (found != x).flatten(1).any(1)
    assert 0.77 < changed.float().mean() < 0.83
    # a plain grey image has neither contrast nor colour: its brightness alone changes, by .2 to 1.8
    level = found[changed].mean(dim=(1, 2, 3)) / 0.25
    assert level.min() > 0.199
    assert level.max() < 1.801
    assert level.mean() == pytest.approx(1.0, abs=0.05)
    assert torch.allclose(found, found[:, :1, :1, :1].expand_as(found), atol=1e-6)
    coloured = colour_jitter(images, source())
    assert coloured.min() >= 0
    assert coloured.max() <= 1


def test_blur_is_a_gaussian_filter_of_every_other_image():
    x = torch.zeros(400, 3, 41, 41)
    x[:, :, 20, 20] = 1.0
    found = blur(x, source())
    spread = (found[:, 0].sum(1) * (torch.arange(41) - 20.0).square()).sum(1)  # variance along x
    sharp = (found == x).flatten(1).all(1)
    assert 0.4 < sharp.float().mean() < 0.6
    assert torch.allclose(found.sum(dim=(2, 3)), torch.ones(400, 3), atol=1e-5)
    assert spread.max() < 2.0**2
    for n in range(20):
        if not sharp[n] and spread[n] > 0.1:
            # the width that scipy's filter, cut at the same reach, has the same variance at
            sigmas = np.linspace(0.2, 2.0, 200)
            line = [
                ndimage.gaussian_filter1d(x[n, 0, 20].numpy(), s, radius=2, mode="nearest")
                for s in sigmas
            ]
            found_variance = [np.sum(row * (np.arange(41) - 20.0) ** 2) for row in line]
            best = int(np.abs(np.array(found_variance) - float(spread[n])).argmin())
            wanted = np.outer(line[best], line[best])
            np.testing.assert_allclose(found[n, 1].numpy(), wanted, atol=5e-3)


def test_a_blurred_plain_image_stays_plain_up_to_its_rim():
    plain = torch.full((20, 3, 16, 16), 0.7)
    assert torch.allclose(blur(plain, source()), plain, atol=1e-6)


def test_colours_change_as_step_by_step(images):
    """Brightness, contrast about the mean grey, saturation about the grey of each pixel, then hue."""
    found = colour_jitter(images, source(3))
    generator = source(3)
    factors = [0.2 + 1.6 * torch.rand(40, generator=generator) for _ in range(3)]
    turn = -0.2 + 0.4 * torch.rand(40, generator=generator)
    chosen = torch.rand(40, generator=generator) < 0.8
    assert 20 < chosen.sum() < 40
    luma = torch.tensor([0.299, 0.587, 0.114])
    for n in range(40):
        image = (images[n] * factors[0][n]).clamp(0, 1)
        level = (image * luma[:, None, None]).sum(0).mean()
        image = (level + (image - level) * factors[1][n]).clamp(0, 1)
        plain = (image * luma[:, None, None]).sum(0)
        image = (plain + (image - plain) * factors[2][n]).clamp(0, 1)
        for i, j in ((0, 0), (11, 7)):
            h, s, v = colorsys.rgb_to_hsv(*image[:, i, j].tolist())
            wanted = colorsys.hsv_to_rgb((h + float(turn[n])) % 1, s, v)
            expected = wanted if chosen[n] else images[n, :, i, j].tolist()
            assert found[n, :, i, j].tolist() == pytest.approx(expected, abs=1e-4)


def test_crops_are_where_the_generator_says():
    """On an image of its own coordinates: middle, slope and mirror of each crop."""
    ticks = (torch.arange(64) + 0.5) / 32 - 1  # of the middles of pixels
    y, x = torch.meshgrid(ticks, ticks, indexing="ij")
    where = torch.stack([x, y, torch.ones_like(x)]).expand(50, 3, 64, 64)
    crop = resized_crop(where, source(5))
    generator = source(5)
    share, shape, left, top, mirror = (torch.rand(50, generator=generator) for _ in range(5))
    share = 0.08 + 0.92 * share
    shape = (math.log(3 / 4) + (math.log(4 / 3) - math.log(3 / 4)) * shape).exp()
    width, height = ((share * k).sqrt().clamp(max=1) for k in (shape, 1 / shape))
    middle_x, middle_y = (2 * left - 1) * (1 - width), (2 * top - 1) * (1 - height)
    sense = torch.where(mirror < 0.5, -1.0, 1.0)
    inner = slice(8, 56)  # away from the border, where positions are cut
    for n in range(50):
        expected = middle_x[n] + sense[n] * width[n] * ticks[inner]
        assert torch.allclose(crop[n, 0, 32, inner], expected, atol=1e-4)
        expected = middle_y[n] + height[n] * ticks[inner]
        assert torch.allclose(crop[n, 1, inner, 32], expected, atol=1e-4)


@pytest.mark.parametrize(("side", "reach"), [(8, 1), (29, 1), (31, 2), (49, 2), (64, 3)])
def test_blur_reaches_a_twentieth_to_each_side(side, reach):
    x = torch.zeros(30, 3, side, side + 40)
    x[:, :, side // 2, side] = 1.0
    found = blur(x, source(2))
    generator = source(2)
    sigma = 0.1 + 1.9 * torch.rand(30, generator=generator)
    chosen = torch.rand(30, generator=generator) < 0.5
    steps = torch.arange(-reach, reach + 1)
    for n in range(30):
        line = (
            torch.exp(-steps.square() / (2 * sigma[n] ** 2)) if chosen[n] else (steps == 0).float()
        )
        line = line / line.sum()
        rows = slice(side // 2 - reach, side // 2 + reach + 1)
        columns = slice(side - reach, side + reach + 1)
        assert torch.allclose(found[n, 1, rows, columns], torch.outer(line, line), atol=1e-5)
        assert found[n].sum() == pytest.approx(3, abs=1e-4)
