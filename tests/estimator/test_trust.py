import warnings

import numpy as np
import pytest

from identica.errors import TrustWarning
from identica.estimator.trust import warn_of


def test_few_pairs_and_little_evidence_are_warned_of():
    with pytest.warns(TrustWarning, match=r"worth about 7 independent ones.*3 factors"):
        warn_of(7.2, 3.0, 3)
    with pytest.warns(TrustWarning, match=r"no better than by chance \(0\.010 bits\)"):
        warn_of(1000, 0.01, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of(1000, 0.5, 3)
        warn_of(np.inf, 0.5, 3)
