import collections
import pickle
import struct

import numpy as np
import pytest

from identica.datasets import _unpickle
from identica.errors import InputError

RNG = np.random.default_rng(0)
CONTENT = {
    "pedestrians": [
        RNG.random((3, 64, 64)) < 0.5,
        np.asfortranarray(RNG.random((2, 64, 64)) < 0.5),
    ],
    "latents": [
        RNG.normal(size=(3, 3)).astype(np.float32),
        np.arange(6, dtype=">i4").reshape(2, 3),
    ],
    "more": (1, 2.5, None, True, "text", b"bytes", np.float64(0.25), np.array(3)),
}


def assert_same(found, expected):
    if isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for key in expected:
            assert_same(found[key], expected[key])
    elif isinstance(expected, list | tuple):
        assert isinstance(found, list)
        assert len(found) == len(expected)
        for f, e in zip(found, expected, strict=True):
            assert_same(f, e)
    elif isinstance(expected, np.ndarray):
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
    else:
        assert found == expected


def write(path, data):
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_arrays_and_containers_come_back(tmp_path, protocol):
    path = write(tmp_path / "a.pickle", pickle.dumps(CONTENT, protocol))
    assert_same(_unpickle.load(path), CONTENT)


def test_names_of_older_numpy_and_arrays_of_objects(tmp_path):
    ragged = np.empty(2, object)
    ragged[:] = CONTENT["pedestrians"]
    data = pickle.dumps(ragged, 2)
    assert b"numpy._core.multiarray" in data
    path = write(tmp_path / "a.pickle", data.replace(b"numpy._core", b"numpy.core"))
    assert_same(_unpickle.load(path), CONTENT["pedestrians"])


class Calls:
    def __init__(self, function, *args):
        self.call = function, args

    def __reduce__(self):
        return self.call


def test_a_pickle_that_calls_anything_runs_nothing(tmp_path):
    witness = tmp_path / "ran"
    for call in (
        Calls(eval, f"open({str(witness)!r}, 'w')"),
        Calls(open, str(witness), "w"),
        Calls(np.savetxt, str(witness), [1.0]),
        Calls(collections.OrderedDict),
        Calls(np.ndarray, (1,)),
        Calls(np.dtype, "U9"),
        Calls(np.dtype, "V4"),
    ):
        path = write(tmp_path / "evil.pickle", pickle.dumps({"pedestrians": [call]}))
        with pytest.raises(InputError, match="nothing else"):
            _unpickle.load(path)
        assert not witness.exists()


@pytest.mark.parametrize(
    "data",
    [
        # REDUCE on the class of arrays; BUILD on a class; a codec other than latin1; a set
        b"cnumpy\nndarray\n(tR.",
        b"cnumpy\ndtype\n(dVcode\nVx\nsb.",
        b"c_codecs\nencode\n(Vabc\nVzlib\ntR.",
        pickle.dumps({1, 2}),
        pickle.dumps(collections.deque([1])),
        # a forged array: object type with raw data for pointers; no state
        b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(I0\ntVb\ntR"
        b"(I1\n(I1\ntcnumpy\ndtype\n(VO8\ntRI00\nVAAAAAAAA\ntb.",
        b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(I0\ntVb\ntR.",
        # a list that contains itself
        b"(lp0\ng0\na.",
        b"",
        b"\x80\x04not a pickle",
        pickle.dumps(CONTENT)[:-5],
        pickle.dumps(CONTENT)[:4000],
        b"\x80\x04\x8e" + struct.pack("<Q", 2**62),
    ],
)
def test_forged_damaged_and_foreign_pickles(tmp_path, data):
    with pytest.raises(InputError, match=r"a\.pickle"):
        _unpickle.load(write(tmp_path / "a.pickle", data))


def test_missing_file(tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        _unpickle.load(tmp_path / "none.pickle")
