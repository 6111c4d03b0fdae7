"""16-bit floats by hand, where the edges of ``test_ptx_fuzz.py`` hardly come (1.0 is 0x3F80 in bf16)."""

import numpy as np
import pytest
from ptx_runner import run


@pytest.mark.parametrize(
    "body, half",
    [
        # 1.25 * 3.3125 is half-way between 0x4084 and 0x4085; 1e-8 more is above it, in no float32
        (
            "mov.b16 %rs1, 0x3FA0; mov.b16 %rs2, 0x4054; mov.b16 %rs4, 0x3228; "
            "fma.rn.bf16 %rs3, %rs1, %rs2, %rs4;",
            0x4085,
        ),
        ("mov.f32 %f1, 0fBF800001; cvt.rm.bf16.f32 %rs3, %f1;", 0xBF81),  # down: any remainder counts
        ("mov.b16 %rs1, 0xC2FE; ex2.approx.ftz.bf16 %rs3, %rs1;", 0x0000),  # 2**-127 is subnormal
    ],
)
def test_a_16_bit_float_is_rounded_once(body, half):
    assert (run(body + "cvt.u32.u16 %r4, %rs3; st.global.u32 [%rd1], %r4;") == half).all()


def test_half_precision_arithmetic_in_a_numba_kernel():
    from numba import cuda

    @cuda.jit
    def squares(x, out):
        i = cuda.grid(1)
        if i < x.size:
            out[i] = x[i] * x[i] + x[i]

    x, out = np.arange(40, dtype=np.float16), np.zeros(40, np.float16)
    squares[2, 32](x, out)
    np.testing.assert_array_equal(out, x * x + x)
