"""PTX written by hand, for what numba's compiler does not emit on demand: calls, carries, permutes,
vectors, fields.
"""

import numpy as np
import pytest
from ptx_runner import LANE, SQUARE, call, run

from warplab.simt.errors import OutOfBounds, UnsupportedInstruction

FACTORIAL = """
.func (.param .b32 func_retval0) factorial(.param .b32 factorial_param_0)
{
    .reg .b32 %r<5>; .reg .pred %p<2>;
    ld.param.u32 %r1, [factorial_param_0];
    mov.u32 %r4, 1;
    setp.lt.u32 %p1, %r1, 2;
    @%p1 bra DONE;
    sub.u32 %r2, %r1, 1;
    CALL
    mul.lo.u32 %r4, %r1, %r3;
DONE:
    st.param.b32 [func_retval0+0], %r4;
    ret;
}
"""


@pytest.mark.parametrize("after", ["", "mov.u64 %rd1, own;"], ids=["address before the call", "and after it"])
def test_each_call_of_a_recursive_function_has_local_memory_of_its_own(after):
    again = f""".local .align 4 .b8 own[4]; .reg .b64 %rd<2>;
    mov.u64 %rd1, own; st.local.u32 [%rd1], %r1; CALL {after} ld.local.u32 %r1, [%rd1];"""
    functions = FACTORIAL.replace("CALL", again.replace("CALL", call("factorial", "%r2", "%r3")))
    out = run(
        "and.b32 %r5, %r1, 7;" + call("factorial", "%r5", "%r6") + "st.global.u32 [%rd1], %r6;",
        functions=functions,
    )
    np.testing.assert_array_equal(out[:, 0], np.array([1, 1, 2, 6, 24, 120, 720, 5040])[LANE % 8])


PARTS = """
.func (.param .align 4 .b8 func_retval0[8]) parts(.param .align 4 .b8 parts_param_0[12])
{
    .reg .b32 %r<5>;
    ld.param.u32 %r1, [parts_param_0];
    ld.param.v2.u32 {%r2, %r3}, [parts_param_0+4];
    sub.u32 %r4, %r1, %r2;
    st.param.b32 [func_retval0+0], %r4;
    st.param.b32 [func_retval0+4], %r3;
    ret;
}
"""


def test_a_struct_goes_into_a_function_and_comes_back_in_its_parts():
    body = """{
        .param .align 4 .b8 param0[12]; .param .align 4 .b8 retval0[8];
        mov.u32 %r2, 100; mov.u32 %r3, 7;
        st.param.b32 [param0+0], %r2; st.param.v2.b32 [param0+4], {%r1, %r3};
        call.uni (retval0), parts, (param0);
        ld.param.v2.b32 {%r4, %r5}, [retval0+0];
    } st.global.v2.u32 [%rd1], {%r4, %r5};"""
    out = run(body, functions=PARTS, words=2)
    np.testing.assert_array_equal(out, np.stack([100 - LANE, np.full(32, 7)], axis=1))


def test_a_null_pointer_is_told():
    with pytest.raises(OutOfBounds, match="reads address 0x8, where nothing is allocated"):
        run("mov.u64 %rd3, 0; ld.global.u32 %r2, [%rd3+8]; st.global.u32 [%rd1], %r2;")


def test_an_extern_function_is_refused_by_name():
    with pytest.raises(UnsupportedInstruction, match="a call to cudaLaunchDeviceV2, which has no body"):
        run(call("cudaLaunchDeviceV2", "%r1", "%r2"))


def test_a_register_that_was_never_written_reads_as_zero():
    out = run("setp.lt.u32 %p1, %r1, 5; @%p1 mov.u32 %r2, 9; st.global.u32 [%rd1], %r2;")
    np.testing.assert_array_equal(out[:, 0], np.where(LANE < 5, 9, 0))


def test_a_base_below_the_array_is_legal_if_the_constant_brings_it_back():
    out = run("sub.s64 %rd3, %rd1, 4; st.global.u32 [%rd3+4], %r1;")
    np.testing.assert_array_equal(out[:, 0], LANE)
    with pytest.raises(OutOfBounds, match=r"writes element \[-1\] of out, which has 32 elements"):
        run("st.global.u32 [%rd1+-4], %r1;")


def test_lanes_that_come_together_with_zeros_of_both_signs_keep_them():
    out = run(
        "setp.lt.u32 %p1, %r1, 16; @%p1 bra LOW; mov.f32 %f1, 0f80000000; bra.uni MEET; "
        "LOW: mov.f32 %f1, 0f00000000; MEET: st.global.f32 [%rd1], %f1;"
    )
    np.testing.assert_array_equal(out[:, 0] >> 31, LANE >= 16)


@pytest.mark.parametrize(
    "register, expected",
    [
        ("%tid.x", np.arange(64)),
        ("%laneid", np.arange(64) % 32),
        ("%warpid", np.arange(64) // 32),
        ("%lanemask_lt", (1 << np.arange(64) % 32) - 1),
        ("%ntid.x", np.full(64, 64)),
    ],
)
def test_some_lanes_read_registers_of_the_hardware_of_their_own(register, expected):
    body = f"""rem.u32 %r2, %r1, 3; setp.ne.u32 %p1, %r2, 1; @%p1 bra DONE;
        mov.u32 %r3, {register}; add.u32 %r3, %r3, 1; st.global.u32 [%rd1], %r3; DONE:"""
    np.testing.assert_array_equal(
        run(body, threads=64)[:, 0], np.where(np.arange(64) % 3 == 1, expected + 1, 0)
    )


@pytest.mark.parametrize("last", ["@%p1 bra AGAIN;", "@!%p1 bra DONE; bra AGAIN; DONE:", "bar.sync 0;"])
def test_a_kernel_may_end_without_a_return(last):
    """ptxas takes it too: a thread that goes past the last instruction is done."""
    body = f"""mov.u32 %r2, 0;
        AGAIN: add.u32 %r2, %r2, 3; setp.lt.u32 %p1, %r2, %r1;
        st.global.u32 [%rd1], %r2; {last} }}
        .func unused() {{"""
    expected = 3 if "bar" in last else np.maximum((LANE + 2) // 3 * 3, 3)
    np.testing.assert_array_equal(run(body)[:, 0], expected)


def test_inline_assembly_may_declare_a_register_of_a_name_that_is_in_use():
    out = run(
        "mov.u32 %r5, 7; { .reg .b32 %r5; mov.u32 %r5, 99; add.u32 %r6, %r5, 1; } "
        "add.u32 %r7, %r5, %r6; st.global.u32 [%rd1], %r7;"
    )
    assert (out == 107).all()


def test_braces_around_one_register_are_that_register():
    body = """add.u32 %r2, %r1, 7; st.global.b32 [%rd1], {%r2}; ld.global.u32 {%r3}, [%rd1];
        setp.lt.u32 %p1, %r1, 16; mov.b32 {%r4}, %r3; @%p1 ld.global.u32 {%r4}, [%rd1];
        add.u32 %r5, %r3, %r4; st.global.u32 [%rd1], %r5;"""
    np.testing.assert_array_equal(run(body)[:, 0], 2 * (LANE + 7))


@pytest.mark.parametrize("space", ["shared::cta", "shared::cluster"])
@pytest.mark.parametrize(
    "statements",
    [
        "st.{0}.u32 [%r3], %r1; bar.sync 0; ld.{0}.u32 %r2, [%r4];",
        "st.{0}.v2.u32 [%r5], {{%r6, %r6}}; atom.{0}.exch.b32 %r7, [%r3], %r1; bar.sync 0; "
        "ld.{0}.u32 %r2, [%r4];",
        "st.volatile.{0}.u32 [%r3], %r6; red.{0}.add.u32 [%r3], %r1; bar.sync 0; "
        "ld.volatile.{0}.u32 %r2, [%r4];",
    ],
)
def test_shared_memory_under_its_full_name(space, statements):
    """A cluster is one block here: both name the block's own memory. Lane i reads lane 31 - i's word."""
    out = run(
        f"""mov.u32 %r8, tile; shl.b32 %r9, %r1, 2; add.u32 %r3, %r8, %r9; sub.u32 %r4, 124, %r9;
        add.u32 %r4, %r4, %r8; mov.u32 %r6, 0; and.b32 %r5, %r9, 0x78; add.u32 %r5, %r5, %r8;
        {statements.format(space)} st.global.u32 [%rd1], %r2;""",
        functions=".shared .align 8 .b8 tile[128];",
    )
    np.testing.assert_array_equal(out[:, 0], 31 - LANE)


def test_parameters_under_their_full_names():
    body = """ld.param::entry.u64 %rd3, [k_param_0]; add.s64 %rd3, %rd3, %rd2; st.global.u32 [%rd3], %r1;
        { .param .b32 a; st.param::func.b32 [a], %r1; .param .b32 r; call.uni (r), square, (a);
        ld.param::func.b32 %r2, [r]; } st.global.u32 [%rd3], %r2;"""
    square = SQUARE.replace("ld.param", "ld.param::func").replace("st.param", "st.param::func")
    np.testing.assert_array_equal(
        run(
            body.replace("(r)", "(retval0)")
            .replace("[r]", "[retval0]")
            .replace(".param .b32 r;", ".param .b32 retval0;"),
            functions=square,
        )[:, 0],
        LANE**2,
    )


def test_a_float_in_a_wider_register_is_its_bits_with_zeros_above():
    body = """mov.b32 %r2, 0f40490FDB; st.global.b32 [%rd1], %r2; ld.global.f32 %rd3, [%rd1];
        cvt.rn.f32.u32 %rd4, %r1; cvt.rn.f16.f32 %r3, %rd4; shr.u64 %rd4, %rd4, 16; cvt.u32.u64 %r4, %rd4;
        cvt.u32.u64 %r2, %rd3; st.global.v4.u32 [%rd1], {%r2, %r3, %r4, %r4};"""
    out = run(body, words=4)
    assert (out[:, 0] == 0x40490FDB).all()
    np.testing.assert_array_equal(out[:, 1], LANE.astype("f2").view("u2"))
    np.testing.assert_array_equal(out[:, 2], LANE.astype("f4").view("u4") >> 16)


@pytest.mark.parametrize(
    "body, half",
    [  # edges to which the random programs hardly come; 1.0 is 0x3F80 in bf16
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
