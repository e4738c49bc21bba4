import numpy as np
import pytest
from sklearn.metrics import mutual_info_score

from identica.errors import InputError
from identica.metrics import modularity


def grid(*cards):
    table = np.stack(np.meshgrid(*map(np.arange, cards), indexing="ij"), axis=-1)
    return table.reshape(-1, len(cards))


def formula(z, h):
    """The published formula alone, from scikit-learn's counts and NumPy's histograms."""
    cut = [np.digitize(c, np.histogram(c, 20)[1][:-1]) for c in h.T]
    squares = np.array([[mutual_info_score(a, b) for a in z.T] for b in cut]) ** 2
    best = squares.max(axis=1)
    return np.mean(1 - (squares.sum(axis=1) - best) / (best * (z.shape[1] - 1)))


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_the_factors_themselves_are_perfect():
    z = grid(3, 4, 5)
    assert modularity(z, z) == pytest.approx(1)
    assert modularity(z, -3 * z[:, [2, 0, 1]] + 7) == pytest.approx(1)


def test_duplicated_and_missing_codes_are_not_punished():
    z = grid(3, 4, 5)
    assert modularity(z, np.c_[z, z]) == pytest.approx(1)
    assert modularity(z, z[:, [1]]) == pytest.approx(1)


def test_a_code_of_two_factors_loses_its_share():
    """Equal information about 2 of d factors: 1 - 1 / (d - 1)."""
    z = grid(3, 3)
    assert modularity(z, z @ [[1], [3]]) == pytest.approx(0)
    z = grid(3, 3, 3, 3)
    merged = z[:, 0] + 3 * z[:, 1]
    assert modularity(z, merged) == pytest.approx(1 - 1 / 3)
    assert modularity(z, np.c_[merged, z[:, 2:]]) == pytest.approx((2 / 3 + 1 + 1) / 3)


def test_by_hand_from_joint_counts():
    """The sum of three fair bits, two of them weighed double: h = a + 2b + 2c.

    It tells a (1 bit); and it tells b + c, which knows half a bit of b, and of c.
    """
    z = grid(2, 2, 2)
    expected = 1 - (0.5**2 + 0.5**2) / (1**2 * 2)
    many = np.repeat(z, 20, axis=0)
    assert modularity(many, many @ [[1], [2], [2]]) == pytest.approx(expected)


def test_the_published_formula_where_all_codes_know_something(rng):
    z = np.column_stack([rng.integers(0, k, 3000) for k in (3, 6, 30)])
    h = np.tanh(z @ rng.normal(size=(3, 5)) / 10) + 0.1 * rng.normal(size=(3000, 5))
    assert modularity(z, h) == pytest.approx(formula(z, h))


def test_noise_counts_nothing_where_the_formula_alone_rewards_it(rng):
    """By chance I is about (K - 1)(B - 1) / 2N, so noise looks modular where K differs."""
    cards = np.array([3, 6, 40, 32, 32])
    z = np.column_stack([rng.integers(0, k, 4000) for k in cards])
    noise = rng.normal(size=(4000, 4))
    squares = (cards - 1) ** 2
    assert formula(z, noise) == pytest.approx(1 - (squares.sum() - 39**2) / (4 * 39**2), abs=0.05)
    assert modularity(z, noise) == 0
    assert modularity(z, rng.permutation(z)) == 0
    merged = z @ [40.0, 20, 3, 2, 1] + rng.normal(size=4000)
    assert modularity(z, np.c_[merged, noise]) < modularity(z, merged)


def test_a_rotation_by_45_degrees_is_not_modular(rng):
    z = rng.normal(size=(20000, 2))
    assert modularity(z, z) > 0.99
    assert modularity(z, z @ [[1, 1], [-1, 1]]) < 0.05


def test_order_scale_and_sign_do_not_matter(rng):
    z = rng.integers(0, 5, size=(500, 3))
    h = z @ rng.normal(size=(3, 4)) + rng.normal(size=(500, 4))
    for other in (h[:, ::-1], -h, h * [1e-6, 1, 1e6, 3], h + 100):
        assert modularity(z, other) == pytest.approx(modularity(z, h))


def test_constant_codes_count_nothing():
    z = grid(4, 4)
    assert modularity(z, np.c_[z, np.full((16, 2), 0.1)]) == pytest.approx(1 / 2)
    assert modularity(z, np.ones(16)) == 0


def test_one_factor_cannot_be_confused(rng):
    z = rng.integers(0, 4, size=(500, 1))
    assert modularity(z, z) == 1
    assert modularity(z, rng.normal(size=500)) == 0


def test_bad_input_is_named():
    z = grid(3, 1)
    with pytest.raises(InputError, match="column 1 has a single value"):
        modularity(z, z)
