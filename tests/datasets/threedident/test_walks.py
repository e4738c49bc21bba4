import numpy as np
import pytest
import torch
from scipy import stats

from identica import (
    Box,
    GeneralizedNormal,
    GenerativeProcess,
    InputError,
    Laplace,
    Normal,
    Sphere,
    Uniform,
    VonMisesFisher,
)
from identica.datasets.threedident.pairs import Renderer, take
from identica.datasets.threedident.storage import build
from identica.datasets.threedident.walks import draw_rows, positives_among, walks

BOX = Box(10, low=-1.0, high=1.0)


def process(conditional, space=BOX):
    return GenerativeProcess(space, Uniform(), conditional, Renderer(4, samples=4))


def source(seed=0):
    return torch.Generator().manual_seed(seed)


def paint(z, size):
    """Images that cost nothing: of the colour of their first three latents."""
    colours = ((z[:, :3] + 1) * 127).astype(np.uint8)
    return np.broadcast_to(colours[:, None, None], (len(z), size, size, 3)).copy()


@pytest.mark.parametrize("conditional", [Normal(0.5), Laplace(0.5)], ids=repr)
def test_positives_among_images_have_the_law_of_the_conditional(conditional):
    truth = process(conditional)
    z = truth.latents(20_000, generator=0, dtype=torch.float64)
    told = []
    found = positives_among(truth, z.numpy(), draws=2, seed=1, tick=lambda *now: told.append(now))
    assert told[-1] == (20_000, 20_000)
    assert (found != np.arange(20_000)[:, None]).all()
    assert (found[:, 0] != found[:, 1]).mean() > 0.9
    some = np.arange(0, 20_000, 5)
    anchors, wanted = z[some].numpy(), truth.positives(z[some], generator=1).numpy()
    for there in (np.abs(anchors) < 0.3, anchors > 0.8):  # far from the walls, and near one
        gaps = [(positive - anchors)[there] for positive in (z.numpy()[found[some, 0]], wanted)]
        assert stats.ks_2samp(*gaps).pvalue > 0.01


@pytest.mark.parametrize(
    "family", [Normal(0.7), Laplace(0.9), GeneralizedNormal(3.0, 1.5)], ids=repr
)
def test_positives_among_few_images_come_as_often_as_counted_by_hand(family):
    truth, rng = process(family), np.random.default_rng(0)
    z = rng.uniform(-1, 1, (5, 10))
    found = positives_among(truth, z, draws=4000, seed=0)
    for i in range(5):
        density = family.log_prob(BOX, torch.from_numpy(z), torch.from_numpy(z[i]).expand(5, 10))
        chances = density.exp().numpy()
        chances[i] = 0
        counts = np.bincount(found[i], minlength=5)
        np.testing.assert_allclose(counts / 4000, chances / chances.sum(), atol=0.03)
    np.testing.assert_array_equal(found, positives_among(truth, z, draws=4000, seed=0))


def test_drawn_pairs_and_walks_are_images_and_their_positives(tmp_path):
    z = np.random.default_rng(0).uniform(-1, 1, (3000, 10))
    many = build(tmp_path, z, paint, size=4)
    positives = positives_among(process(Normal(0.5)), many.raw_latents, draws=3, seed=0)
    where = {z.astype(np.float32).tobytes(): row for row, z in enumerate(many.raw_latents)}
    (z, x), (z_pos, x_pos) = (take(many, rows) for rows in draw_rows(positives, 64, source()))
    walk = walks(many, positives)(64, generator=source())
    assert (len(walk.z), len(walk.x)) == (64, 64)
    for here, there in ((z, z_pos), (walk.z[:-1], walk.z[1:])):
        rows, others = ([where[one.numpy().tobytes()] for one in part] for part in (here, there))
        assert len(set(rows)) > 50
        assert all(other in positives[row] for row, other in zip(rows, others, strict=True))
    for latents, images in ((z, x), (z_pos, x_pos), walk):
        assert np.abs(images[:, :, 0, 0].numpy() / 127 - 1 - latents[:, :3].numpy()).max() < 0.01


def test_where_the_conditional_is_narrow_the_nearest_image_is_the_positive():
    z = np.random.default_rng(0).uniform(-1, 1, (200, 10))
    found = positives_among(process(Normal(1e-3)), z, draws=3, seed=0)
    for i, row in enumerate(found):
        assert set(row) == {np.linalg.norm(z - z[i], axis=1).argsort()[1]}


def test_pairs_among_images_need_two_of_them_and_a_box():
    with pytest.raises(InputError, match="at least 2"):
        positives_among(process(Normal(0.5)), np.zeros((1, 10)), seed=0)
    with pytest.raises(InputError, match="uniform latents in a box"):
        positives_among(process(VonMisesFisher(5.0), Sphere(10)), np.zeros((3, 10)), seed=0)
