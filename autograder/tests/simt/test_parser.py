"""Lines of inlined code, and what is no PTX. What a module declares is in test_initialisers.py."""

import pytest

from warplab.simt.ptx.parser import (
    PTXSyntaxError,
    parse,
    parse_instruction,
)


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


def test_a_limit_of_threads_is_that_of_all_dimensions():
    text = ".version 8.0\n.target sm_90\n.visible .entry k()\n.maxntid 16, 4, 2\n{\nret;\n}"
    assert parse(text).functions["k"].max_threads == 128


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
