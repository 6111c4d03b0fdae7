"""The table of instructions: a row says all, and what the table has not is refused by name."""

import pytest
from ptx_runner import run

from warplab.simt.counters.collect import flops_of
from warplab.simt.engine import bits
from warplab.simt.engine.instructions import INSTRUCTIONS, form, row
from warplab.simt.errors import UnsupportedInstruction
from warplab.simt.ptx.parser import meets_grid_wide, parse_instruction
from warplab.simt.ptx.ptx_types import WORDS


def row_of(statement):
    instr = parse_instruction(statement, 1, 1)
    return INSTRUCTIONS[instr.opcode], instr


def test_a_row_that_names_no_effect_computes_and_one_of_an_unknown_name_does_not_come_into_being():
    plain = row(form(WORDS, bits.lop3))
    instr = parse_instruction("popc.b32 %r1, %r2", 1, 1)
    assert plain.writes(instr) and not plain.polls(instr) and not plain.barrier(instr)
    assert (plain.flops(instr), plain.memory) == (0, "none")
    with pytest.raises(TypeError, match="reads"):
        row(form(WORDS, bits.lop3), reads=True)


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
    "statement, writes",
    [
        ("ld.global.f32 %f1, [%rd1]", True),
        ("st.global.f32 [%rd1], %f1", False),
        ("atom.global.add.u32 %r1, [%rd1], 1", True),
        ("red.global.add.u32 [%rd1], 1", False),
        ("bar.sync 0", False),
        ("bar.red.popc.u32 %r1, 0, %p1", True),
    ],
)
def test_whether_the_first_operand_is_a_destination(statement, writes):
    found, instr = row_of(statement)
    assert found.writes(instr) is writes


def test_a_thread_that_spins_looks_again_with_a_volatile_load_and_not_with_a_plain_one():
    for statement, polls in (("ld.volatile.u32 %r1, [%rd1]", True), ("ld.global.u32 %r1, [%rd1]", False)):
        found, instr = row_of(statement)
        assert found.polls(instr) is polls


def test_the_last_type_of_an_instruction_chooses_its_handler():
    handlers = [
        row_of(f"add.{kind} %r1, %r2, %r3")[0].form(parse_instruction(f"add.{kind} %r1, %r2, %r3", 1, 1))
        for kind in ("s32", "u64", "f32", "f16x2", "s16x2")
    ]
    assert handlers[0] is handlers[1] and len(set(handlers)) == 4


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
    assert meets_grid_wide("mov.u32 %r1, %envreg2;")
    assert not meets_grid_wide("mov.u32 %r1, %tid.x;")
