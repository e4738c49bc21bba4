"""Positives by labels: which rows may be paired, and what sessions of other columns have in common."""

import copy

import numpy as np
import pytest
import torch

from identica import ContrastiveICA, InputError
from identica.estimator.labels import NEIGHBOURS, Labels, Partners, as_labels
from identica.estimator.pairs import ArrayPairs
from identica.estimator.sequences import sequences
from identica.metrics import linear_r2

RNG = np.random.default_rng


def drawn(labels, rows, *, both=False, apart=1, size=2000, lag=1):
    """Rows of many pairs, by number."""
    if apart > 1:
        labels = Labels(labels.classes, labels.places, apart)
    x = np.arange(float(rows))[:, None]
    pairs = ArrayPairs(x, within=sequences(rows, lag), labels=labels, both=both)
    batches = [pairs(rows, generator=torch.Generator().manual_seed(k)) for k in range(size // rows)]
    first, second = (
        torch.cat(side).ravel().numpy().astype(int) for side in zip(*batches, strict=True)
    )
    return first, second


def test_classes_are_paired_with_themselves_and_every_partner_is_drawn():
    classes = RNG(0).integers(0, 3, 60)
    first, second = drawn(as_labels(classes, 60), 60, size=30_000)
    assert (classes[first] == classes[second]).all()
    mine = np.flatnonzero(classes == classes[7])
    assert set(second[first == 7]) >= set(mine) - {7}


def test_a_class_of_one_is_left_out():
    labels = ["a", "b", "a", "c", "b", "a"]
    first, second = drawn(as_labels(labels, 6), 6, size=600)
    assert 3 not in first
    assert 3 not in second
    with pytest.raises(InputError, match="labels must hold a class at least twice"):
        as_labels(["a", "b"], 2)


def test_continuous_labels_pair_the_nearest_rows():
    label = RNG(1).uniform(size=400)
    first, second = drawn(as_labels(label, 400), 400, size=8000)
    rank = np.argsort(np.argsort(label))
    # among the nearest in value: no further away in rank than there are neighbours
    assert np.abs(rank[first] - rank[second]).max() <= NEIGHBOURS[0] + 2
    assert len(set(second[first == 5])) > 5


def test_several_columns_are_near_in_all_of_them():
    label = RNG(2).uniform(size=(2000, 2))
    first, second = drawn(as_labels(label, 2000), 2000, size=4000)
    gap = np.linalg.norm(label[first] - label[second], axis=1)
    # 18 or so nearest of 2,000 points in a unit square lie within about √(18/2000/π)
    assert np.median(gap) < np.sqrt(22 / 2000 / np.pi)


def test_a_frame_of_both_kinds_is_near_within_a_class():
    pandas = pytest.importorskip("pandas")
    rng = RNG(3)
    frame = pandas.DataFrame({"side": rng.choice(["left", "right"], 300), "place": rng.random(300)})
    first, second = drawn(as_labels(frame, 300), 300, size=3000)
    side, place = frame["side"].to_numpy(), frame["place"].to_numpy()
    assert (side[first] == side[second]).all()
    assert np.abs(place[first] - place[second]).max() < 0.35


def test_rows_whose_windows_overlap_are_no_pair():
    label = np.linspace(0, 1, 300)  # neighbours in label are neighbours in time
    first, second = drawn(as_labels(label, 300), 300, apart=7, size=3000)
    assert (np.abs(first - second) >= 7).all()
    first, second = drawn(as_labels(np.zeros(300, int), 300), 300, apart=7, size=3000)
    assert (np.abs(first - second) >= 7).all()


def test_half_of_the_positives_are_drawn_by_time_if_asked():
    classes = RNG(4).integers(0, 2, 500)
    first, second = drawn(as_labels(classes, 500), 500, both=True, size=10_000)
    by_time = second == first + 1
    assert 0.45 < by_time.mean() < 0.55
    assert (classes[first] == classes[second])[~by_time].all()


def test_partners_are_of_the_same_part():
    label = RNG(5).uniform(size=1000)
    pairs = ArrayPairs(
        np.arange(1000.0)[:, None], within=sequences(1000), labels=as_labels(label, 1000)
    )
    for part in pairs.split(8, blocks=4):
        mine = set(part.numbers.at(np.arange(len(part))))
        batch = part(500, generator=torch.Generator().manual_seed(0))
        assert {int(row) for row in torch.cat(batch).ravel()} <= mine


def test_a_partner_is_found_for_any_chance():
    partners = Partners(as_labels(np.array([0, 0, 1, 1]), 4), np.arange(4))
    for chance in (0.0, 0.5, 1 - 1e-12):
        assert partners(np.arange(4), np.full(4, chance)).tolist() in ([1, 0, 3, 2], [1, 0, 3, 2])


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (np.arange(3), "one row for each of 5 rows"),
        (np.array([0.1, np.nan, 0.2, 0.3, 0.4]), r"row 1 \(from 0\) is not"),
        (np.full(5, 0.5), "constant"),
        (np.array(["a", None, "a", "b", "b"], dtype=object), r"row 1 \(from 0\) has none"),
    ],
)
def test_labels_that_cannot_be_are_refused(labels, words):
    with pytest.raises(InputError, match=words):
        as_labels(labels, 5)


def test_labels_exclude_given_positives():
    x = RNG(6).normal(size=(40, 3))
    with pytest.raises(InputError, match="labels must not be given"):
        ContrastiveICA(2, steps=2).fit(x, x, labels=np.arange(40) % 2)


def test_codes_by_label_hold_the_label():
    rng = RNG(7)
    place = rng.uniform(size=1500)
    nuisance = rng.normal(size=(1500, 3))
    x = np.c_[np.sin(3 * place), np.cos(3 * place), nuisance] @ rng.normal(size=(5, 5))
    ica = ContrastiveICA(1, steps=300, batch=256).fit(x, labels=place)
    assert linear_r2(place[:, None], ica.transform(x)) > 0.95


def test_sessions_with_columns_of_their_own_share_a_space(tmp_path):
    rng = RNG(8)
    places = [rng.uniform(size=(800, 1)) for _ in range(2)]
    sessions = [
        np.c_[np.sin(3 * place), np.cos(3 * place)] @ rng.normal(size=(2, width))
        for place, width in zip(places, (4, 6), strict=True)
    ]
    ica = ContrastiveICA(1, steps=150, batch=256)
    with pytest.raises(InputError, match="cannot be aligned"):
        ica.fit(sessions)
    one, other = ica.fit(sessions, labels=[place.ravel() for place in places]).transform(sessions)
    slope, start = np.polyfit(one.ravel(), places[0].ravel(), 1)
    error = places[1].ravel() - (slope * other.ravel() + start)  # fitted on one, tried on the other
    assert error.var() < 0.1 * places[1].var()
    ica.save(tmp_path / "ica.safetensors")
    again = ContrastiveICA.load(tmp_path / "ica.safetensors")
    assert np.array_equal(again.transform(sessions)[1], other)
    with pytest.raises(InputError, match="columns, as in fit"):
        again.transform(sessions[::-1])


def test_codes_by_label_alone_are_not_averaged_over_time():
    """Only pairs drawn by time show that factors hardly change while windows overlap."""
    x = RNG(0).normal(size=(200, 3)).cumsum(axis=0)
    label, n = x[:, 0], len(x)
    seen = np.stack([x[max(t - 1, 0) : t + 2].mean(0) for t in range(n)])
    options = {"window": 3, "steps": 5, "batch": 16}
    for lag, alone in ((None, True), (1, False)):
        ica = ContrastiveICA(2, **options).fit(x, labels=label, lag=lag)
        assert (ica.lag_ is None) == alone
        with torch.no_grad():
            codes = copy.deepcopy(ica.model_).double()(torch.from_numpy(seen)).numpy()
        assert np.allclose(ica.transform(x), codes, atol=1e-9) == alone


@pytest.mark.parametrize(
    ("rows", "apart", "near"),
    [
        (10, 1, 10),
        (300, 1, 16 + 2),
        (1699, 1, 16 + 2),
        (1700, 1, 17 + 2),
        (2500, 4, 25 + 8),
        (25_500, 1, 255 + 2),
        (30_000, 1, 256 + 2),
    ],
)
def test_a_hundredth_of_the_rows_is_near_but_from_16_to_256(rows, apart, near):
    """And as many more as may be too near in time."""
    places = np.random.default_rng(0).normal(size=(rows, 2))
    partners = Partners(Labels(np.zeros(rows, np.int64), places, apart), np.arange(rows))
    asked = np.array([3, 7])
    found, share = partners._near(0, asked, np.array([0.2, 0.9]))
    assert share.tolist() == [0.2, 0.9]
    for row, others in zip(asked, found, strict=True):
        far = np.linalg.norm(places - places[row], axis=1)
        assert sorted(others) == sorted(np.argsort(far)[:near])


@pytest.mark.parametrize(("apart", "near"), [(1, 2), (3, 6), (9, 12)])
def test_rows_of_a_class_are_looked_at_from_one_of_them_on(apart, near):
    classes = np.arange(24) % 2
    partners = Partners(Labels(classes, np.empty((24, 0)), apart), np.arange(24))
    found, share = partners._near(1, np.array([1, 5]), np.array([0.0, 0.99]))
    odd = list(range(1, 24, 2))
    assert found[0].tolist() == odd[:near]
    assert found[1].tolist() == [odd[(11 + k) % 12] for k in range(near)]
    assert share.tolist() == [0, 0]
