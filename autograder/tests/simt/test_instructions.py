"""The table of instructions: a row says all, and what the table has not is refused by name."""

import pytest
from ptx_runner import run

from warplab.simt.counters.collect import flops_of
from warplab.simt.errors import UnsupportedInstruction
from warplab.simt.ptx.parser import parse_instruction, uses_grid_barrier


@pytest.mark.parametrize(
    "statement, operations",
    [
        ("add.f32 %f1, %f2, %f3", 1),
        ("add.s32 %r1, %r2, %r3", 0),  # integers are no floating-point operations
        ("fma.rn.f64 %fd1, %fd2, %fd3, %fd4", 2),
        ("fma.rn.f16x2 %r1, %r2, %r3, %r4", 4),  # two values in a register
        ("setp.lt.f32 %p1, %f1, %f2", 0),
        ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1}, {%r1}, {%r2}, {%f2}", 128),  # 2 M N K / 32
        ("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%r1}, {%r1}, {%r2}, {%r3}", 0),
    ],
)
def test_operations_of_a_lane(statement, operations):
    assert flops_of(parse_instruction(statement, 1, 1)) == operations


@pytest.mark.parametrize(
    "statement, said",
    [
        ("mov.u32 %r2, %smid;", "%smid"),
        ("brkpt;", "does not execute `brkpt`; the statement is `brkpt;`"),
        ("add.b128 %r2, %r2, %r2;", r"does not execute `add.b128` \(type .b128\)"),
        ("add %r2, %r2, %r2;", r"does not execute `add` \(no type\)"),
        ("min.f32 %f1, %f1, %f1, %f1;", r"does not execute `min.f32` \(number of operands\)"),
        ("add.rna.f32 %f1, %f1, %f1;", r"does not execute `add.rna.f32` \(modifier .rna\)"),
        ("add.relu.f16x2 %r2, %r2, %r2;", r"`add.relu.f16x2` \(modifier .relu\)"),  # fma has it, add has not
        ("rcp.rn.ftz.f64 %fd1, %fd1;", r"`rcp.rn.ftz.f64` \(modifier .ftz\)"),
        ("ld.global.L2::cache_later.u32 %r2, [%rd1];", r"\(modifier .L2::cache_later\)"),
        ("st.later.u32 [%rd1], %r1;", r"`st.later.u32` \(modifier .later\)"),
        ("st.const.u32 [%rd1], %r1;", r"does not execute `st.const.u32`"),
        ("atom.local.add.u32 %r2, [%rd1], 1;", r"`atom.local.add.u32` \(modifier .local\)"),
        ("atom.global.max.f16x2 %r2, [%rd1], %r1;", r"does not execute `atom.global.max.f16x2`"),
        ("atom.global.add.later.u32 %r2, [%rd1], 1;", r"\(modifier .later\)"),
        ("cvt.u32 %r2, %r1;", r"`cvt.u32` \(type\)"),
        ("cvt.rn.satfinite.e4m3x2.s32 %rs1, %r1;", r"`cvt.rn.satfinite.e4m3x2.s32` \(type\)"),
        ("cvt.f32.s16x2 %f1, %r1;", r"`cvt.f32.s16x2` \(type\)"),
        ("bar.sync.later 0;", r"`bar.sync.later` \(modifier .later\)"),
        ("bra.later L; L:", r"`bra.later` \(modifier .later\)"),
        ("@%p1 bar.sync.later 0;", r"\(modifier .later\)"),
    ],
)
def test_what_the_table_has_not_is_refused_by_name(statement, said):
    with pytest.raises(UnsupportedInstruction, match=said):
        run(statement)


def test_a_kernel_that_reads_the_address_of_the_grid_barrier_meets_grid_wide():
    assert uses_grid_barrier("mov.u32 %r1, %envreg2;")
    assert not uses_grid_barrier("mov.u32 %r1, %tid.x;")
