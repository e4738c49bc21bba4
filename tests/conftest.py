"""What all tests share: one thread each, since they run side by side, and where real data are."""

from __future__ import annotations

import os

import pytest
import torch

from identica.datasets.root import data_root

torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))


@pytest.fixture(scope="session")
def real():
    """Finds a file of real data, or skips the test where it is absent."""

    def find(*parts):
        path = data_root().joinpath(*parts)
        if not path.exists():
            pytest.skip(f"needs {'/'.join(parts)} under IDENTICA_DATA")
        return path

    return find
