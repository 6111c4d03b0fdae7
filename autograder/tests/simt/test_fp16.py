"""16-bit floats and packed pairs against hand-computed bit patterns (1.0 is 0x3C00 in f16 and 0x3F80 in
bf16).
"""

import numpy as np
import pytest
from ptx_runner import run


@pytest.mark.parametrize(
    "body, word",
    [
        (
            "mov.b32 %r2, 0x3C004000; mov.b32 %r3, 0x3C003C00; add.f16x2 %r4, %r2, %r3;",
            0x40004200,
        ),  # (1, 2) + (1, 1) = (2, 3)
        (
            "mov.b32 %r2, 0x3C004000; mov.b32 %r3, 0x42004200; mul.f16x2 %r4, %r2, %r3;",
            0x42004600,
        ),  # (1, 2) * 3 = (3, 6)
        (
            "mov.b32 %r2, 0x3C004000; fma.rn.f16x2 %r4, %r2, %r2, %r2;",
            0x40004600,
        ),  # (1, 2) squared plus itself = (2, 6)
        ("mov.b32 %r2, 0x3C00C000; neg.f16x2 %r4, %r2;", 0xBC004000),
        ("mov.b32 %r2, 0x3C00C000; abs.f16x2 %r4, %r2;", 0x3C004000),
        ("mov.b32 %r2, 0x3C00C000; mov.b32 %r3, 0; fma.rn.relu.f16x2 %r4, %r2, %r2, %r3;", 0x3C004400),
        (
            "mov.b32 %r2, 0x3F804000; mov.b32 %r3, 0x40403F80; max.bf16x2 %r4, %r2, %r3;",
            0x40404000,
        ),  # max of (1, 2) and (3, 1)
        (
            "mov.f32 %f1, 0f3FC00000; mov.f32 %f2, 0fC0000000; cvt.rn.bf16x2.f32 %r4, %f1, %f2;",
            0x3FC0C000,
        ),  # 1.5 high, -2 low
        ("mov.f32 %f1, 0f3FC00000; mov.f32 %f2, 0fC0000000; cvt.rn.f16x2.f32 %r4, %f1, %f2;", 0x3E00C000),
    ],
)
def test_a_packed_pair_is_two_16_bit_floats(body, word):
    assert (run(body + "st.global.u32 [%rd1], %r4;") == word).all()


@pytest.mark.parametrize(
    "body, half",
    [
        (
            "mov.b16 %rs1, 0x4380; mov.b16 %rs2, 0x3F80; add.bf16 %rs3, %rs1, %rs2;",
            0x4380,
        ),  # 256 + 1 is half-way: to even
        (
            "mov.b16 %rs1, 0x4380; mov.b16 %rs2, 0x4040; add.bf16 %rs3, %rs1, %rs2;",
            0x4382,
        ),  # 256 + 3 is half-way: to even, 260
        (
            "mov.b16 %rs1, 0x4040; mov.b16 %rs2, 0x3F80; fma.rn.bf16 %rs3, %rs1, %rs1, %rs2;",
            0x4120,
        ),  # 3 * 3 + 1 = 10
        (
            "mov.b16 %rs1, 0x3FA0; mov.b16 %rs2, 0x4054; mov.b16 %rs4, 0x3228; "
            "fma.rn.bf16 %rs3, %rs1, %rs2, %rs4;",
            0x4085,
        ),  # 1.25 * 3.3125 is half-way between 0x4084 and 0x4085; 1e-8 more is above it, in no float32
        ("mov.f32 %f1, 0f3F80FFFF; cvt.rz.bf16.f32 %rs3, %f1;", 0x3F80),  # towards zero: cut off
        ("mov.f32 %f1, 0f3F80FFFF; cvt.rn.bf16.f32 %rs3, %f1;", 0x3F81),
        ("mov.f32 %f1, 0f3F800001; cvt.rp.bf16.f32 %rs3, %f1;", 0x3F81),  # up: any remainder counts
        ("mov.f32 %f1, 0fBF800001; cvt.rp.bf16.f32 %rs3, %f1;", 0xBF80),
        ("mov.f32 %f1, 0fBF800001; cvt.rm.bf16.f32 %rs3, %f1;", 0xBF81),
        (
            "mov.b16 %rs1, 0x3C00; mov.b16 %rs2, 0x4000; set.lt.f16.f16 %rs3, %rs1, %rs2;",
            0x3C00,
        ),  # 1 < 2: 1.0
        (
            "mov.b16 %rs1, 0x7E00; mov.b16 %rs2, 0x4000; min.f16 %rs3, %rs1, %rs2;",
            0x4000,
        ),  # a number wins over a NaN
        ("mov.b16 %rs1, 0x3F80; cvt.f32.bf16 %f1, %rs1; cvt.rn.f16.f32 %rs3, %f1;", 0x3C00),
        ("mov.b16 %rs1, 0xC2F0; ex2.approx.ftz.bf16 %rs3, %rs1;", 0x0380),  # 2**-120: bf16's least is 2**-126
        ("mov.b16 %rs1, 0xC2FE; ex2.approx.ftz.bf16 %rs3, %rs1;", 0x0000),  # 2**-127 is subnormal
    ],
)
def test_a_16_bit_float_is_rounded_once(body, half):
    assert (run(body + "cvt.u32.u16 %r4, %rs3; st.global.u32 [%rd1], %r4;") == half).all()


@pytest.mark.parametrize(
    "body, word",
    [
        (
            "mov.f32 %f1, 0f3F800000; mov.f32 %f2, 0fC0000000; cvt.rn.satfinite.e4m3x2.f32 %rs3, %f1, %f2;",
            0x38C0,
        ),  # 1 high, -2 low
        (
            "mov.f32 %f1, 0f447A0000; mov.f32 %f2, 0f3D800000; cvt.rn.satfinite.e4m3x2.f32 %rs3, %f1, %f2;",
            0x7E18,
        ),  # 1000 is 448; 1/16
        (
            "mov.f32 %f1, 0f3F880000; mov.f32 %f2, 0f3F980000; cvt.rn.satfinite.e4m3x2.f32 %rs3, %f1, %f2;",
            0x383A,
        ),  # half-way: to even
        (
            "mov.f32 %f1, 0f7FC00000; mov.f32 %f2, 0f3F800000; cvt.rn.satfinite.e5m2x2.f32 %rs3, %f1, %f2;",
            0x7F3C,
        ),
    ],
)
def test_8_bit_floats_are_made_from_float32(body, word):
    assert (run(body + "cvt.u32.u16 %r4, %rs3; st.global.u32 [%rd1], %r4;") == word).all()


def test_8_bit_floats_widen_to_half_precision():
    assert (
        run("mov.b16 %rs3, 0x38C0; cvt.rn.f16x2.e4m3x2 %r4, %rs3; st.global.u32 [%rd1], %r4;") == 0x3C00C000
    ).all()


def test_comparing_packed_pairs_gives_a_predicate_for_each_half():
    out = run(
        """mov.b32 %r2, 0x3C004000; mov.b32 %r3, 0x40003C00; setp.gt.f16x2 %p1|%p2, %r2, %r3;
           selp.u32 %r4, 1, 0, %p1; selp.u32 %r5, 1, 0, %p2; st.global.v2.u32 [%rd1], {%r4, %r5};""",
        words=2,
    )
    assert (out == [1, 0]).all()  # low: 2 > 1, high: 1 < 2


@pytest.mark.parametrize(
    "kind, one, sum_of_32", [("f16x2", 0x3C003C00, 0x50005000), ("bf16x2", 0x3F803F80, 0x42004200)]
)
def test_atomic_add_of_packed_pairs_adds_both_halves(kind, one, sum_of_32):
    out = run(f"sub.s64 %rd3, %rd1, %rd2; mov.b32 %r2, {one}; red.global.add.noftz.{kind} [%rd3], %r2;")
    assert out[0, 0] == sum_of_32 and not out[1:].any()


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
