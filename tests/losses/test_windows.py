"""Which members of a batch are the negatives of an anchor."""

import pytest

from identica import InputError
from identica.losses.infonce import window


@pytest.mark.parametrize("batch", [2, 3, 8])
@pytest.mark.parametrize("self_negative", [True, False])
@pytest.mark.parametrize("apart", [1, 2, 3])
def test_negatives_are_all_that_are_far_enough_apart(batch, self_negative, apart):
    """By their offsets from the anchor, around the end of the batch; its own offset is 0."""
    wanted = [offset for offset in range(batch) if min(offset, batch - offset) >= apart]
    if self_negative:  # with all from the anchor on, as in a batch of pairs
        wanted = list(range(batch - (apart - 1)))
    if not wanted:
        with pytest.raises(InputError, match=f"apart must leave negatives in a batch of {batch}"):
            window(batch, self_negative, None, apart)
        return
    first, number = window(batch, self_negative, None, apart)
    assert list(range(first, first + number)) == wanted
    assert window(batch, self_negative, number, apart) == (first, number)
    with pytest.raises(InputError, match=f"negatives must be at most {number} for a batch"):
        window(batch, self_negative, number + 1, apart)
