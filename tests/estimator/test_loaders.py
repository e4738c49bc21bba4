import random

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset, IterableDataset, Subset, TensorDataset

from identica import ContrastiveICA, InputError
from identica.estimator import loaders
from identica.estimator.loaders import DatasetPairs, opened, pair_in, seeded

TINY = {"steps": 3, "batch": 16, "random_state": 0}


def rows(n=120, columns=3):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(n, columns, generator=generator).cumsum(0)
    return x, x + 0.1 * torch.randn(n, columns, generator=generator)


class Items(Dataset):
    """Some items, one by one."""

    def __init__(self, *parts):
        self.parts = parts

    def __len__(self):
        return len(self.parts[0])

    def __getitem__(self, number):
        found = tuple(part[number] for part in self.parts)
        return found if len(found) > 1 else found[0]


class Stream(IterableDataset):
    def __iter__(self):
        return zip(*rows(), strict=True)


class Noisy(Dataset):
    """Two views of an item, drawn from the global states of torch, NumPy and Python."""

    def __len__(self):
        return 100

    def __getitem__(self, number):
        x = torch.tensor([number / 10, -number / 10])
        noise = [torch.rand(()).item(), np.random.rand(), random.random()]  # noqa: NPY002
        return x + sum(noise), x - sum(noise)


def batches():
    x, x_pos = rows()
    yield from zip(x.split(50), x_pos.split(50), strict=True)


class Batches:
    """An iterable that can be read again and again."""

    def __iter__(self):
        return batches()


SOURCES = {
    "tensors": lambda: TensorDataset(*rows()),
    "items": lambda: Items(*rows()),
    "arrays": lambda: Items(*(x.numpy() for x in rows())),
    "a loader": lambda: DataLoader(Items(*rows()), batch_size=32, shuffle=True),
    "its own batches": lambda: DataLoader(list(batches()), batch_size=None),
    "a stream": Stream,
    "a loader of a stream": lambda: DataLoader(Stream(), batch_size=32),
    "a generator": batches,
    "an iterable": Batches,
    "a list": lambda: list(batches()),
}


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_every_source_holds_the_same_pairs(source):
    x, x_pos = rows()
    found = opened(source())
    assert isinstance(found, DatasetPairs)
    every = found.read(np.arange(120))
    assert torch.equal(every.x, x)
    assert torch.equal(every.x_pos, x_pos)
    assert torch.equal(torch.cat(list(found.anchors())), x)


@pytest.mark.parametrize("name", ["items", "a loader", "a generator"])
def test_fits_to_a_source_are_the_same(name):
    x, _ = rows()
    ica = ContrastiveICA(2, **TINY).fit(SOURCES[name]())
    same = ContrastiveICA(2, **TINY).fit(TensorDataset(*rows()))
    codes = ica.transform(x)
    assert np.array_equal(codes, same.transform(x))
    assert np.allclose(ica.transform(SOURCES[name]()), codes, atol=1e-6)
    assert ica.score(SOURCES[name]()) == same.score(TensorDataset(*rows()))
    assert ica.lag_ is None
    assert ica.n_features_in_ == 3


def test_a_generator_is_fitted_and_transformed():
    codes = ContrastiveICA(2, **TINY).fit_transform(batches())
    same = ContrastiveICA(2, **TINY).fit(TensorDataset(*rows())).transform(rows()[0])
    assert np.allclose(codes, same, atol=1e-6)


def test_pairs_are_held_out_and_judged():
    pairs = opened(TensorDataset(*rows(1000)))
    kept, held = pairs.split()
    drawn = [part(1000, generator=torch.Generator().manual_seed(0)) for part in (kept, held)]
    assert [len(batch.x) for batch in drawn] == [800, 200]
    both = torch.cat([batch.x for batch in drawn])
    assert len(both.unique(dim=0)) == 1000
    ica = ContrastiveICA(2, **TINY).fit(pairs)
    assert ica.independent_pairs_ == 750  # of the thousand, a quarter is held out
    assert ica.diagnose(pairs, Z=rows(1000)[0]).truth is not None


def test_a_data_set_of_observations_is_a_sequence():
    x, _ = rows()
    expected = ContrastiveICA(2, **TINY).fit(x.numpy(), lag=2).transform(x.numpy())
    for source in (TensorDataset(x), Items(x), DataLoader(Items(x), batch_size=7)):
        ica = ContrastiveICA(2, **TINY).fit(source, lag=2)
        assert np.array_equal(ica.transform(source), expected)


def test_images_of_a_data_set():
    """Floats N×28×28 are images here, whose shape an item says, and not trials."""
    x = torch.rand(30, 28, 28, generator=torch.Generator().manual_seed(0))
    source = Items(x, x.flip(1))
    ica = ContrastiveICA(2, **TINY).fit(source)
    assert ica.transform(source).shape == (30, 2)
    assert any(start["network"] == "conv" for start in ica.starts_)


def test_only_what_is_drawn_is_read():
    x, x_pos = rows(1000)
    read = []

    class Counting(Items):
        def __getitem__(self, number):
            read.append(number)
            return super().__getitem__(number)

    opened(Counting(x, x_pos))(20, generator=torch.Generator().manual_seed(0))
    assert len(read) == 21  # and the first item, to see what it is


def test_augmentations_follow_the_seed_and_leave_no_trace():
    states = torch.get_rng_state(), np.random.get_state()[1], random.getstate()  # noqa: NPY002
    one, same, other = (
        opened(Noisy())(10, generator=torch.Generator().manual_seed(seed)) for seed in (0, 0, 1)
    )
    assert torch.equal(one.x, same.x)
    assert not torch.equal(one.x, other.x)
    assert torch.equal(torch.get_rng_state(), states[0])
    assert np.array_equal(np.random.get_state()[1], states[1])  # noqa: NPY002
    assert random.getstate() == states[2]
    ContrastiveICA(1, **TINY, lr=1e-3).fit(Noisy())  # runs go on from where they were


def test_states_come_back_after_an_error():
    before = random.getstate()
    with pytest.raises(ZeroDivisionError), seeded(3):
        raise ZeroDivisionError
    assert random.getstate() == before


def test_a_subset_and_a_collate_function():
    x, x_pos = rows()
    subset = Subset(TensorDataset(x, x_pos), range(40))

    def collate(items):
        return torch.stack([2 * a for a, _ in items]), torch.stack([b for _, b in items])

    found = opened(DataLoader(subset, batch_size=8, collate_fn=collate)).read(np.arange(40))
    assert torch.equal(found.x, 2 * x[:40])
    assert torch.equal(found.x_pos, x_pos[:40])


def forever():
    while True:
        yield rows()


X, X_POS = rows()
BAD = {
    "labels": (Items(X, torch.arange(120)), r"x_pos of the same shape .* fit\(X, labels=…\)"),
    "three": (Items(X, X, X), "a pair"),
    "one item": (TensorDataset(X[:1], X[:1]), "at least 2 items"),
    "shapes": ([(X, X), (X[:, :2], X[:, :2])], r"one shape, got \(2,\) and \(3,\)"),
    "ragged": (
        Items([torch.ones(2), torch.ones(3)] * 9, [torch.ones(2)] * 18),
        "collate into a batch",
    ),
    "objects": (
        Items([Image.new("L", (8, 8))] * 9, [Image.new("L", (8, 8))] * 9),
        "collate into a batch",
    ),
    "nothing": (iter(()), "got none"),
    "no pairs": (iter([X]), "a pair"),
    "not finite": (TensorDataset(X / 0, X), "X must be finite"),
    "a file": (__file__, "X must hold data, or name a folder of images: read the file"),
    "no folder": ("nowhere", "X: nowhere must be a folder of images: No such file"),
}


@pytest.mark.parametrize(("source", "message"), BAD.values(), ids=BAD)
def test_what_makes_no_pairs_is_named(source, message):
    with pytest.raises(InputError, match=message):
        ContrastiveICA(2, **TINY).fit(source)


def test_an_iterable_without_end(monkeypatch):
    monkeypatch.setattr(loaders, "BUFFERED", 100_000)
    with pytest.raises(InputError, match="in memory: pass a Dataset, or a function"):
        ContrastiveICA(2, **TINY).fit(forever())


def test_pairs_leave_nothing_else_to_say():
    pairs = TensorDataset(X, X_POS)
    for more in ({"lag": 2}, {"groups": [0] * 120}, {"labels": [0] * 120}):
        with pytest.raises(InputError, match="must not be given"):
            ContrastiveICA(2, **TINY).fit(pairs, **more)
    with pytest.raises(InputError, match="X_pos must hold observations"):
        ContrastiveICA(2, **TINY).fit(X, pairs)
    ica = ContrastiveICA(2, **TINY).fit(pairs)
    with pytest.raises(InputError):
        ica.transform(TensorDataset(X[:, :2], X[:, :2]))
    with pytest.raises(InputError, match=r"observations of shape \(3,\), got \(2,\)"):
        ica.score(TensorDataset(X[:, :2], X[:, :2]))


def test_a_folder_of_images(tmp_path):
    frames = np.random.default_rng(0).integers(0, 256, (12, 20, 24), np.uint8)
    for number, frame in enumerate(frames):
        Image.fromarray(frame).save(tmp_path / f"frame{number}.png")
    ica = ContrastiveICA(2, **TINY).fit(tmp_path)
    assert np.array_equal(ica.transform(str(tmp_path)), ica.transform(frames))


@pytest.mark.parametrize("side", [0, 1])
def test_pairs_without_values_are_refused(side):
    pair = [torch.zeros(4, 3), torch.zeros(4, 3)]
    pair[side] = pair[side].to("meta")
    with pytest.raises(InputError, match="X must return tensors with values, got tensors on meta"):
        pair_in("X", pair)
