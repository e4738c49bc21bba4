"""The data set KITTI Masks: its arrays, pairs, statistics, and the files it is read from."""

import pickle
import zipfile

import numpy as np
import pytest

from identica.datasets import kitti_masks, natural_sprites
from identica.datasets.kitti_masks import KittiMasks, check, load, picture
from identica.errors import InputError


@pytest.fixture(scope="module")
def data(real):
    return load(real("kitti_masks", "kitti_masks.npz"))


def toy(*lengths, seed=0):
    rng = np.random.default_rng(seed)
    return kitti_masks._assemble([rng.integers(0, 256, (n, 512), np.uint8) for n in lengths])


def test_published_statistics(data):
    numbers = check(data)
    assert (numbers["sequences"], numbers["frames"], numbers["pairs"]) == (2120, 84626, 82506)
    found = [round(numbers[f"kurtosis_{name}"], 2) for name in ("area", "x", "y")]
    assert found == [68.92, 38.50, 65.39]


def test_published_mean_time_between_the_frames_of_a_pair(data):
    """0.05 s and 0.15 s; KITTI was filmed at 10 frames/s, MOTSChallenge at 30 and (0005) 14."""
    rate = np.where(data.source == "kitti", 10, np.where(data.video == "0005", 14, 30))
    rate = np.repeat(rate, data.seq_lengths)
    for max_lag, seconds in ((1, 0.05), (5, 0.15)):
        i, j = data.pairs(max_lag, 100_000, rng=0)
        assert np.mean((j - i) / rate[i]) == pytest.approx(seconds, abs=0.005)


def test_check_notices_latents_of_other_masks():
    data = toy(3, 4)
    assert check(data)["pairs"] == 5
    wrong = KittiMasks(**{**vars_of(data), "latents": data.latents + 1})
    with pytest.raises(InputError, match="7 of 7"):
        check(wrong)
    assert check(toy(1))["kurtosis_x"] == 0.0


def vars_of(data):
    return {name: getattr(data, name).copy() for name in KittiMasks.__dataclass_fields__}


def test_frames_and_latents_agree_with_a_direct_computation():
    data = toy(4)
    masks = data.frames([2, 0])
    assert masks.shape == (2, 64, 64)
    assert masks.dtype == np.uint8
    np.testing.assert_array_equal(np.packbits(masks[0]), data.masks_packed[2])
    y, x = np.nonzero(masks[1])
    np.testing.assert_allclose(data.latents[0], [y.mean(), x.mean(), len(y)], rtol=1e-6)
    for bad in ([4], [-1], [0.5], [[0]], [True], np.zeros(1, "m8[s]"), np.zeros(1, object)):
        with pytest.raises(InputError, match="indices must"):
            data.frames(bad)


def test_pairs_have_the_stated_law():
    """Exact frequencies over (i, j), by chi-square, with clipping at the end of a sequence."""
    from scipy.stats import chisquare

    data = toy(1, 4, 2, 1, 6)
    expected = {}
    start = 0
    for length in (1, 4, 2, 1, 6):
        for i in range(start, start + length - 1):
            for step in (1, 2, 3):
                pair = i, min(i + step, start + length - 1)
                expected[pair] = expected.get(pair, 0) + 1 / (9 * 3)
        start += length
    i, j = data.pairs(3, 50_000, np.random.default_rng(0))
    found = dict.fromkeys(expected, 0)
    for pair in zip(i.tolist(), j.tolist(), strict=True):
        found[pair] += 1  # KeyError: an impossible pair
    assert chisquare(list(found.values()), np.array(list(expected.values())) * 50_000).pvalue > 1e-3


def test_pairs_are_repeatable_and_refuse_the_impossible():
    data = toy(3, 5)
    for a, b in zip(data.pairs(2, 50, 7), data.pairs(2, 50, np.random.default_rng(7)), strict=True):
        np.testing.assert_array_equal(a, b)
    assert len(data.pairs(4, 10, 0)[0]) == 10
    with pytest.raises(InputError, match="rng must be a whole number"):
        data.pairs(1, 2, rng="seed")
    with pytest.raises(InputError, match="max_lag must be at most 4"):
        data.pairs(5, 10, 0)
    with pytest.raises(InputError, match="max_lag must be a whole number"):
        data.pairs(0, 10, 0)
    with pytest.raises(InputError, match="n must"):
        data.pairs(1, 0, 0)
    with pytest.raises(InputError, match="at least 2 frames"):
        toy(1, 1).pairs(1, 10, 0)


def test_read_only():
    data = toy(3)
    with pytest.raises(AttributeError):
        data.latents = None
    with pytest.raises(ValueError, match="read-only"):
        data.latents[0] = 0


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("masks_packed", np.zeros((7, 511), np.uint8)),
        ("masks_packed", np.zeros((7, 512), np.int64)),
        ("latents", np.zeros((6, 3), np.float32)),
        ("latents", np.full((7, 3), np.nan, np.float32)),
        ("seq_lengths", np.array([3, 5])),
        ("seq_lengths", np.array([0, 7])),
        ("seq_lengths", np.array([3.0, 4.0])),
        ("window", np.zeros(3, np.int8)),
        ("window", np.zeros(2, "m8[s]")),
        ("track_id", np.zeros(2)),
        ("source", np.zeros(2, np.uint8)),
        ("video", np.zeros(2, "M8[D]")),
        ("latents", np.zeros((7, 3), complex)),
        ("seq_lengths", np.zeros((1, 2), int)),
        ("seq_lengths", np.zeros(2, "m8[s]")),
        ("seq_lengths", np.array([2**63 - 1, 2**63 - 1, 9])),  # their sum overflows to 7
        ("masks_packed", np.zeros((), np.uint8)),
    ],
)
def test_inconsistent_arrays_are_named(tmp_path, name, value):
    arrays = {**vars_of(toy(3, 4)), name: value}
    with pytest.raises(InputError, match=name):
        KittiMasks(**arrays)
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(InputError, match=f"a.npz: {name}"):
        load(tmp_path / "a.npz")


def test_save_and_load(tmp_path):
    data = toy(3, 4)
    data.save(tmp_path / "new" / "a.npz")
    assert [file.name for file in (tmp_path / "new").iterdir()] == ["a.npz"]
    with pytest.raises(InputError, match="cannot write"):
        data.save(tmp_path / "new")
    again = load(tmp_path / "new" / "a.npz")
    for name, value in vars_of(data).items():
        np.testing.assert_array_equal(getattr(again, name), value)


def test_damaged_and_foreign_archives(tmp_path, monkeypatch):
    toy(30, 40).save(tmp_path / "a.npz")
    whole = (tmp_path / "a.npz").read_bytes()
    bad = tmp_path / "bad.npz"
    damaged = bytearray(whole)
    damaged[2000:2100] = bytes(100)
    for content in (whole[: len(whole) // 2], whole[:-10], bytes(damaged), b"", b"hello", b"PK"):
        bad.write_bytes(content)
        with pytest.raises(InputError, match=r"bad\.npz"):
            load(bad)
    np.savez(bad, latents=np.zeros(3))
    with pytest.raises(InputError, match=r"missing: .*masks_packed"):
        load(bad)
    with zipfile.ZipFile(bad, "w") as archive:
        archive.writestr("latents.npy", b"")
    with pytest.raises(InputError, match="must hold the arrays"):
        load(bad)
    objects = {**vars_of(toy(3)), "video": np.array([{"a": 1}], object)}
    np.savez(bad, **objects)
    with pytest.raises(InputError, match=r"bad\.npz"):
        load(bad)
    for call in (kitti_masks.load, kitti_masks.build):
        with pytest.raises(InputError, match="must be a path, got 3"):
            call(3)
    for call in (kitti_masks.check, kitti_masks.picture, natural_sprites.from_kitti):
        with pytest.raises(InputError, match="must be KITTI Masks, got 3"):
            call(3)
    with pytest.raises(InputError, match=r"none\.npz does not exist"):
        load(tmp_path / "none.npz")
    monkeypatch.setenv("IDENTICA_DATA", str(tmp_path))
    with pytest.raises(InputError, match="identica data kitti-masks build"):
        load()


def test_original_pickle(tmp_path):
    data = toy(3, 4)
    masks = [data.frames(range(3)).astype(bool), data.frames(range(3, 7)).astype(bool)]
    latents = [data.latents[:3], data.latents[3:]]
    path = tmp_path / "kitti_peds_v2.pickle"
    boxed = np.empty(2, object)
    boxed[:] = masks
    for content in (
        {"pedestrians": masks, "pedestrians_latents": latents},
        {"pedestrians": [m * np.uint8(255) for m in masks], "pedestrians_latents": latents},
        {"pedestrians": tuple(list(m) for m in masks), "pedestrians_latents": tuple(latents)},
        {b"pedestrians": masks, b"pedestrians_latents": latents},
        {"pedestrians": boxed},
    ):
        for protocol in (2, 4, 5):
            path.write_bytes(pickle.dumps(content, protocol))
            found = load(path)
            np.testing.assert_array_equal(found.masks_packed, data.masks_packed)
            np.testing.assert_array_equal(found.latents, data.latents)
            assert found.seq_lengths.tolist() == [3, 4]
            assert found.source.tolist() == ["", ""]


@pytest.mark.parametrize(
    "content",
    [
        [],
        {"cars": []},
        {"pedestrians": []},
        {"pedestrians": [np.zeros((3, 64, 63), bool)]},
        {"pedestrians": [np.arange(4096).reshape(1, 64, 64)]},
        {"pedestrians": ["text"]},
        {"pedestrians": 3},
        {"pedestrians": [np.ones((3, 64, 64), bool)], "pedestrians_latents": [np.zeros((2, 3))]},
        {"pedestrians": [np.ones((3, 64, 64), bool)], "pedestrians_latents": []},
    ],
)
def test_other_pickles_say_what_is_expected(tmp_path, content):
    path = tmp_path / "other.pickle"
    path.write_bytes(pickle.dumps(content))
    with pytest.raises(InputError, match=r"other\.pickle: expected a dict with 'pedestrians'"):
        load(path)


def test_picture_shows_frames_in_order():
    data = toy(12)
    sheet = picture(data, rows=1, columns=12)
    assert sheet.shape == (68, 12 * 66 + 2)
    for k in range(12):
        cell = sheet[2:66, 2 + 66 * k : 66 + 66 * k]
        np.testing.assert_array_equal(cell, data.frames([k])[0] * np.uint8(255))
    assert picture(toy(1, 3), rows=8).shape[0] == 2 * 66 + 2


@pytest.mark.parametrize(
    "content",
    [
        {b"\xff": 1, "pedestrians": [np.ones((3, 64, 64), bool)]},
        {"pedestrians": [np.ones((1, 64, 64), bool)], "pedestrians_latents": [[[10**400, 0, 0]]]},
        {"pedestrians": [np.ones((1, 64, 64), bool)], "pedestrians_latents": [[[1e300, 0, 0]]]},
    ],
)
def test_values_that_fit_no_type_are_refused(tmp_path, content):
    path = tmp_path / "other.pickle"
    path.write_bytes(pickle.dumps(content))
    with pytest.raises(InputError, match=r"other\.pickle"):
        load(path)


def test_absurd_sizes_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"n must be .* at most"):
        toy(3).pairs(1, 10**15, rng=0)
    lists = {**vars_of(toy(3, 4)), "window": [0, 0]}
    with pytest.raises(InputError, match="window must be a NumPy array"):
        KittiMasks(**lists)
