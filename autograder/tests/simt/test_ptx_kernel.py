"""``warplab.ptx_kernel``: PTX from any compiler or hand, by C's convention."""

import numpy as np
import pytest

import warplab
from warplab.simt.abi import c_number

SCALE = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry scale(.param .u64 at, .param .f32 by, .param .b32 n)
{
    .reg .b64 %rd<3>;
    .reg .b32 %r<3>;
    .reg .f32 %f<4>;
    .reg .pred %late;
    ld.param.u64 %rd0, [at];
    ld.param.f32 %f0, [by];
    ld.param.b32 %r0, [n];
    mov.u32 %r1, %tid.x;
    setp.ge.u32 %late, %r1, %r0;
    @%late bra DONE;
    mul.wide.u32 %rd1, %r1, 4;
    add.s64 %rd2, %rd0, %rd1;
    ld.global.f32 %f1, [%rd2];
    mul.f32 %f2, %f1, %f0;
    st.global.f32 [%rd2], %f2;
DONE:
    ret;
}
"""


def test_it_runs_and_is_counted():
    kernel = warplab.ptx_kernel(SCALE, "scale")
    x = np.arange(40, dtype=np.float32)
    kernel[1, 64](x, 2.0, np.uint32(32))
    assert (x == np.where(np.arange(40) < 32, 2, 1) * np.arange(40)).all()
    p = warplab.profile(kernel[1, 64], x, 2.0, np.uint32(32))
    assert (p.global_load.sectors, p.global_store.sectors, p.flops) == (4, 4, 32)
    assert p.arch == "sm_90" and p.registers > 0


@pytest.mark.parametrize(
    "text, name, said",
    [
        (SCALE, "scal", r"no entry 'scal'; it has scale"),
        ("hello", "hello", r"no \.target|\.target directive"),
        (SCALE.replace("ld.global.f32", "ld.globe.f32"), "scale", r"kernel\.ptx, line 19.*globe"),
        (SCALE[:-12], "scale", r"ptxas refused the kernel"),
        (SCALE.replace(".version 8.0", ""), "scale", r"version"),
    ],
)
def test_what_is_no_kernel_is_refused_when_it_is_made(text, name, said):
    with pytest.raises(warplab.CompileError, match=said):
        warplab.ptx_kernel(text, name)


def test_older_ptx_runs_and_is_assembled_for_the_newer_architecture():
    old = SCALE.replace("sm_80", "sm_52").replace("8.0", "6.0")
    x = np.ones(32, np.float32)
    p = warplab.profile(warplab.ptx_kernel(old, "scale")[1, 32], x, 3.0, np.uint32(32))
    assert (x == 3).all() and p.registers > 0


@pytest.mark.parametrize("target, version", [("sm_100", "8.8"), ("sm_100a", "8.8")])
def test_ptx_for_what_is_not_here_is_refused_at_the_launch(target, version):
    kernel = warplab.ptx_kernel(SCALE.replace("sm_80", target).replace("8.0", version), "scale")
    with pytest.raises(warplab.InvalidLaunch, match=f"for {target}, which sm_90 does not run"):
        kernel[1, 32](np.ones(32, np.float32), 1.0, np.uint32(1))


def test_ptx_for_one_architecture_alone_runs_on_that_one_only():
    kernel = warplab.ptx_kernel(SCALE.replace("sm_80", "sm_90a"), "scale")
    x = np.ones(32, np.float32)
    kernel[1, 32](x, 3.0, np.uint32(32))
    assert (x == 3).all()
    with pytest.raises(warplab.InvalidLaunch, match="for sm_90a, which sm_100 does not run"):
        kernel.compiled("sm_100")


@pytest.mark.parametrize(
    "args, said",
    [
        ((np.ones(8, np.float32), 1.0), "takes 3 arguments and got 2"),
        ((np.ones(8, np.float32), "fast", np.uint32(1)), "is a str"),
        ((np.ones(8, np.float32), 1.0, np.uint64(1)), "has 8 bytes"),
    ],
)
def test_arguments_that_are_not_the_kernels(args, said):
    with pytest.raises(warplab.InvalidLaunch, match=said):
        warplab.ptx_kernel(SCALE, "scale")[1, 32](*args)


def test_hints_to_the_cache_change_nothing():
    """A policy is made and named by a load and a store, whose vectors Triton writes with one element too."""
    text = SCALE.replace(
        "ld.global.f32 %f1, [%rd2];",
        """
    .reg .b64 %kept;
    createpolicy.fractional.L2::evict_last.b64 %kept, 1.0;
    ld.global.L1::evict_last.L2::cache_hint.b32 {%f1}, [%rd2 + 0], %kept;""",
    ).replace(
        "st.global.f32 [%rd2], %f2;", "st.global.L1::evict_last.L2::cache_hint.b32 [%rd2 + 0], {%f2}, %kept;"
    )
    x = np.arange(32, dtype=np.float32)
    p = warplab.profile(warplab.ptx_kernel(text, "scale")[1, 32], x, 2.0, np.uint32(32))
    assert (x == 2 * np.arange(32)).all() and p.global_load.sectors == p.global_store.sectors == 4


def test_registers_in_a_row_may_have_names_without_a_percent_sign():
    """``.reg .f32 part<2>`` declares part0 and part1, as in Triton's conversions of 8-bit floats."""
    text = SCALE.replace(
        "mul.f32 %f2, %f1, %f0;",
        """
    {
        .reg .f32 part<2>;
        mul.f32 part0, %f1, %f0;
        add.f32 part1, part0, part0;
        mov.f32 %f2, part1;
    }""",
    )
    x = np.arange(32, dtype=np.float32)
    warplab.ptx_kernel(text, "scale")[1, 32](x, 2.0, np.uint32(32))
    assert (x == 4 * np.arange(32)).all()


CHOOSE = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry choose(.param .b32 one, .param .u64 out, .param .b32 other)
{
    .reg .b64 %rd<6>;
    .reg .b32 %r<3>;
    .reg .pred %p;
    mov.u32 %r0, %tid.x;
    and.b32 %r1, %r0, 1;
    setp.eq.u32 %p, %r1, 0;
    mov.b64 %rd0, one;
    mov.b64 %rd1, other;
    selp.b64 %rd2, %rd0, %rd1, %p;
    ld.param.b32 %r2, [%rd2];
    ld.param.u64 %rd3, [out];
    mul.wide.u32 %rd4, %r0, 4;
    add.s64 %rd5, %rd3, %rd4;
    st.global.b32 [%rd5], %r2;
    ret;
}
"""


def test_which_parameter_is_loaded_may_be_chosen_by_each_thread():
    kernel, out = warplab.ptx_kernel(CHOOSE, "choose"), np.zeros(64, np.int32)
    kernel[1, 64](np.int32(7), out, np.int32(9))
    assert out.tolist() == [7, 9] * 32


def test_what_lies_beyond_the_parameters_cannot_be_loaded():
    kernel = warplab.ptx_kernel(CHOOSE.replace("[%rd2]", "[%rd2+4]"), "choose")
    with pytest.raises(warplab.OutOfBounds, match="parameters, which have 20 bytes"):
        kernel[1, 64](np.int32(7), np.zeros(64, np.int32), np.int32(9))


def test_a_parameters_generic_address_is_one_of_memory_that_is_only_read():
    text = CHOOSE.replace("ld.param.b32 %r2", "ld.b32 %r2")
    for register, name in (("%rd0", "one"), ("%rd1", "other")):
        text = text.replace(
            f"mov.b64 {register}, {name};", f"mov.b64 %rd3, {name};\ncvta.param.u64 {register}, %rd3;"
        )
    out = np.zeros(64, np.int32)
    warplab.ptx_kernel(text, "choose")[1, 64](np.int32(7), out, np.int32(9))
    assert out.tolist() == [7, 9] * 32
    writes = text.replace("ld.b32 %r2, [%rd2];", "st.b32 [%rd2], %r1;")
    with pytest.raises(warplab.OutOfBounds, match="the kernel's parameters, which is read-only"):
        warplab.ptx_kernel(writes, "choose")[1, 64](np.int32(7), out, np.int32(9))


def test_an_error_names_the_instruction_where_there_are_no_lines():
    kernel = warplab.ptx_kernel(SCALE, "scale")
    with pytest.raises(warplab.OutOfBounds, match=r"in kernel scale, ld.global.f32 %f1, \[%rd2\]: thread"):
        kernel[1, 64](np.zeros(8, np.float32), 2.0, np.uint32(32))


def test_a_negative_number_passes_as_an_unsigned_one_of_the_same_bits_as_in_c():
    assert c_number("u32", -1, "x", "kernel") == 2**32 - 1


@pytest.mark.parametrize(
    "kind, value, why", [("s32", 1.5, "a whole number"), ("u8", 256, "8 bits"), ("s16", -32769, "16 bits")]
)
def test_a_number_that_does_not_fit_is_refused_by_name(kind, value, why):
    with pytest.raises(warplab.InvalidLaunch, match=f"argument x is {value}.*{why}"):
        c_number(kind, value, "x", "kernel")
