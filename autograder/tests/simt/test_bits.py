"""Bit instructions against values worked out by hand from the PTX manual."""

import pytest
from ptx_runner import run


@pytest.mark.parametrize(
    "start, length, clamped, wrapped",
    [
        (1, 2, 0x6, 0x6),  # the manual's example: bits 1 and 2
        (0, 31, 0x7FFFFFFF, 0x7FFFFFFF),
        (0, 32, 0xFFFFFFFF, 0),  # 32 wraps to no bits
        (4, 33, 0xFFFFFFF0, 0x10),  # 33 wraps to one bit
        (28, 10, 0xF0000000, 0xF0000000),  # no further than bit 31
        (33, 2, 0, 0x6),  # bit 33 is beyond the register, or wraps to bit 1
        (7, 0, 0, 0),
    ],
)
def test_bmsk_makes_a_mask_of_so_many_ones_from_a_bit_on(start, length, clamped, wrapped):
    for mode, mask in (("clamp", clamped), ("wrap", wrapped)):
        make = f"mov.u32 %r2, {start}; mov.u32 %r3, {length}; bmsk.{mode}.b32 %r4, %r2, %r3;"
        assert (run(f"{make} st.global.u32 [%rd1], %r4;") == mask).all()
