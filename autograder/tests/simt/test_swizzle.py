"""Swizzles by hand: the manual's pictures of 16-byte pieces, line after line of 128 bytes."""

import numpy as np
import pytest

from warplab.simt.engine.swizzle import repeats_after, swizzled

# By line of 128 bytes, which piece of the tile lies in each place.
LINES = {
    32: ["01234567", "10325476", "01234567"],
    64: ["01234567", "10325476", "23016745", "32107654", "01234567"],
    128: ["01234567", "10325476", "23016745", "32107654", "45670123", "54761032", "67452301", "76543210"],
}


@pytest.mark.parametrize("span", LINES)
def test_lines_hold_the_pieces_that_the_manual_shows(span):
    offset = np.arange(0, 128 * len(LINES[span]), 16)
    there = np.empty(offset.size, int)
    there[swizzled(offset, span) // 16] = offset // 16 % 8
    assert ["".join(map(str, line)) for line in there.reshape(-1, 8)] == LINES[span]


@pytest.mark.parametrize("span", [0, 32, 64, 128])
def test_a_swizzle_is_its_own_inverse_keeps_pieces_whole_and_repeats(span):
    offset = np.arange(4096)
    there = swizzled(offset, span)
    assert (swizzled(there, span) == offset).all() and (there % 16 == offset % 16).all()
    size = repeats_after(span)
    assert (swizzled(offset + size, span) == there + size).all() and (there // size == offset // size).all()


def test_another_span_is_refused():
    with pytest.raises(ValueError, match="32, 64 or 128 bytes, or 0 for none, and not 256"):
        swizzled(np.arange(4), 256)
