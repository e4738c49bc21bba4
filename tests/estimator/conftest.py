import numpy as np
import pytest

from helpers.fits import TINY, pairs
from identica import ContrastiveICA


@pytest.fixture(scope="module")
def data():
    batch = pairs(100)
    return batch.x.numpy().astype(np.float64), batch.x_pos.numpy().astype(np.float64)


@pytest.fixture(scope="module")
def fitted(data):
    return ContrastiveICA(2, conditional="laplace", **TINY).fit(*data)
