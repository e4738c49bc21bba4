import json

import pytest

from helpers.laws import SPACES
from identica import GeneralizedNormal, InputError, Joint, Laplace, VonMisesFisher
from identica._serialize import from_plain, to_plain


@pytest.mark.parametrize(
    "value",
    [
        *SPACES,
        Joint((VonMisesFisher(10.0), 3), (Laplace(0.05), 2)),
        GeneralizedNormal(3.0, 0.5),
        (1, 5),
        None,
        "auto",
    ],
    ids=str,
)
def test_there_and_back_by_way_of_json(value):
    assert from_plain(json.loads(json.dumps(to_plain(value)))) == value


def test_what_is_unknown_is_refused():
    with pytest.raises(InputError, match="not a space or family"):
        from_plain({"kind": "system", "arguments": {}})
