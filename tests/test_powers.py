import numpy as np

from identica._powers import exp2, power_of


def test_elementary_functions_are_as_good_as_float32():
    t = np.linspace(-126, 127.4, 20001, dtype=np.float32)
    ours = np.array([exp2(x) for x in t], dtype=np.float64)
    assert np.abs(ours / np.exp2(t.astype(np.float64)) - 1).max() < 2e-7
    assert exp2(np.float32(-127)) == 0
    x = np.geomspace(1e-6, 1e4, 5001, dtype=np.float32)
    for p in (-0.5, 0.5, 1.5, 4.2):
        ours = np.array([power_of(v, np.float32(p)) for v in x], dtype=np.float64)
        assert np.abs(ours / x.astype(np.float64) ** np.float32(p) - 1).max() < 5e-7
        assert power_of(np.float32(0), np.float32(p)) == 0
