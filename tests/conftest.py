"""What all tests share: one thread each, since they run side by side, and where real data are."""

from __future__ import annotations

import os
import signal

import pytest

# before anything is imported that reads it: BLAS and OpenMP of NumPy, SciPy and scikit-learn, not torch alone
os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch

from identica.datasets.root import data_root

torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))

# a shell starts background jobs with Ctrl-C ignored, and so would be the processes that tests interrupt
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def real():
    """Finds a file of real data, or skips the test where it is absent."""

    def find(*parts):
        path = data_root().joinpath(*parts)
        if not path.exists():
            pytest.skip(f"needs {'/'.join(parts)} under IDENTICA_DATA")
        return path

    return find
