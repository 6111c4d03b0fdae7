"""PTX text to data, on text written by hand."""

import pytest

from warplab.simt.ptx.parser import (
    PTXSyntaxError,
    parse,
    parse_instruction,
)

PTX = """
// a comment
.version 9.0
.target sm_90a
.address_size 64
.const .align 4 .b8 table[8] = {1, 2, 3, 4, 0xff};
.visible .shared .align 16 .b8 tile[1024];
.shared .v2 .f32 pair;
.visible .entry scale(
    .param .u64 scale_param_0,
    .param .align 8 .b8 scale_param_1[24]
)
.maxntid 16, 4, 2
{
    .reg .pred %p<2>;
    .reg .f32 %f<4>;
    .reg .b64 %rd<5>;
    .loc 1 7 5
    ld.param.u64 %rd1, [scale_param_0];
    setp.gt.s64 %p1, %rd1, 3;
    @!%p1 bra $L_end;
    .loc 1 8 9, function_name $L__info_string0, inlined_at 1 20 3
    ld.global.v2.f32 {%f1, %f2}, [%rd1+-8];
    @%p1 add.f32 %f3, %f1, 0f3F800000;
$L_end:
    ret;
}
.file 1 "/tmp/lesson.py"
"""


def test_a_module_has_its_version_target_variables_and_files():
    m = parse(PTX)
    assert (m.version, m.target, m.files) == ("9.0", "sm_90a", {1: "/tmp/lesson.py"})
    table, tile, pair = m.variables
    assert (table.space, table.size, table.data) == ("const", 8, bytes([1, 2, 3, 4, 255, 0, 0, 0]))
    assert (tile.space, tile.size, tile.data) == ("shared", 1024, None)
    assert [v.align for v in m.variables] == [4, 16, 8] and pair.size == 8


def test_a_function_has_parameters_at_offsets_and_a_thread_limit():
    f = parse(PTX).functions["scale"]
    assert f.is_entry and f.max_threads == 128
    assert [(p.size, p.offset) for p in f.params] == [(8, 0), (24, 8)]
    assert f.regs["%p1"] == "pred" and f.regs["%rd4"] == "b64"


def test_inlined_code_is_at_the_line_that_called_it():
    """Through two files, however deep, to the first line of a function's own file."""
    text = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k()
{
    .reg .b32 %r<9>;
    .loc 1 10 2
    mov.u32 %r1, 1;
    .loc 2 70 5, function_name $L_a, inlined_at 1 12 3
    mov.u32 %r2, 2;
    .loc 3 90 6, function_name $L_b, inlined_at 2 70 5
    mov.u32 %r3, 3;
    .loc 2 71 7, function_name $L_a, inlined_at 1 13 4
    mov.u32 %r4, 4;
    .loc 1 0 0
    mov.u32 %r5, 5;
    ret;
}
.file 1 "kernel.py"
"""
    body = parse(text).functions["k"].body
    assert [(i.file, i.line) for i in body[:5]] == [(1, 10), (1, 12), (1, 12), (1, 13), (1, 13)]


def test_text_that_is_not_ptx_says_so():
    with pytest.raises(PTXSyntaxError, match="not a PTX file"):
        parse("int main() {}")


@pytest.mark.parametrize(
    "statement",
    [
        "extern.trap _",
        "recurse.f %r1",
        "results %r1",
        "add.(1)or(x %r1, %r2",
        "mov';x=1;' %r1",
        "ADD.s32 %r1",
    ],
)
def test_what_no_compiler_writes_is_no_instruction(statement):
    """The engine makes a Python program of the PTX:
    an instruction's name must not be able to say more than a name.
    """
    with pytest.raises(PTXSyntaxError, match="not a PTX instruction"):
        parse_instruction(statement, 1, 1)


def test_a_declaration_of_more_registers_than_any_kernel_has_is_refused():
    text = ".version 8.0\n.target sm_90\n.visible .entry k()\n{\n.reg .b64 %many<2000000000>;\nret;\n}"
    with pytest.raises(PTXSyntaxError, match="the limit is 1,048,576"):
        parse(text)
